"""The ACLs that clusters had, noted each time a log is gathered: so their age becomes known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.spark.files import exists

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACLS: Final = "acls"
"""The table: the columns of `acl_table`, ``taken_at``, and ``snapshot``, which names the set."""

_TAKEN_AT: Final = pa.field("taken_at", pa.timestamp("us", tz="UTC"))


def take(
    spark: SparkSession, place: str, current: Mapping[str, Ruleset], taken_at: datetime
) -> None:
    """Note the ACLs of each cluster; a set that is there already keeps the time it has."""
    for cluster, rules in current.items():
        snapshot = _name(cluster, rules)
        if exists(spark, f"{place}/{ACLS}/snapshot={snapshot}"):
            continue
        rows = ((cluster, acl, (taken_at,)) for acl in rules.acls)
        table = acl_table(spark, rows, [_TAKEN_AT]).withColumn("snapshot", F.lit(snapshot))
        table.coalesce(1).write.mode("overwrite").option("compression", "zstd").partitionBy(
            "snapshot"
        ).parquet(f"{place}/{ACLS}")


def earlier(spark: SparkSession, place: str, day: date) -> dict[str, Ruleset]:
    """Return the ACLs of the newest snapshot of each cluster that is not younger than a day.

    A cluster is left out if there is none.
    """
    if not exists(spark, f"{place}/{ACLS}"):
        return {}
    found = spark.read.parquet(f"{place}/{ACLS}").where(F.to_date("taken_at") <= F.lit(day))
    newest = found.groupBy("cluster").agg(F.max_by("snapshot", "taken_at").alias("snapshot"))
    acls: dict[str, list[AclBinding]] = {}
    for row in _bindings(found.join(F.broadcast(newest), ["cluster", "snapshot"])):
        acls.setdefault(row[0], []).append(row[1])
    return {cluster: Ruleset().with_acls(theirs) for cluster, theirs in acls.items()}


def _bindings(table: DataFrame) -> list[tuple[str, AclBinding]]:
    return [
        (
            row["cluster"],
            AclBinding(
                ResourceType[row["resource_type"]],
                row["resource_name"],
                PatternType[row["pattern_type"]],
                row["principal"],
                row["host"],
                AclOperation[row["operation"]],
                AclPermission[row["permission"]],
            ),
        )
        for row in table.toArrow().to_pylist()
    ]


def _name(cluster: str, rules: Ruleset) -> str:
    text = "\n".join([cluster, *(acl_id(acl) for acl in rules.acls)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
