"""Tables with one ACL a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.ruleset import acl_id
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ACL_COLUMNS: Final = pa.schema(
    [
        pa.field(name, pa.string())
        for name in (
            *("cluster", "acl_id", "resource_type", "resource_name", "pattern_type"),
            *("principal", "host", "operation", "permission"),
        )
    ]
)
"""The columns that such tables begin with; `acl_values` has what is in them."""


def acl_table(
    spark: SparkSession,
    rows: Iterable[tuple[str, AclBinding, Sequence[Any]]],
    further: Sequence[pa.Field],
) -> DataFrame:
    """Return a table of clusters, their ACLs, and ``further`` columns with the values of each."""
    schema = pa.schema([*ACL_COLUMNS, *further])
    return frame_of(
        spark, schema, ((*acl_values(cluster, acl), *more) for cluster, acl, more in rows)
    )


def acl_values(cluster: str, acl: AclBinding) -> tuple[str, ...]:
    """Return what a row has of an ACL and its cluster."""
    return (
        cluster,
        acl_id(acl),
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    )
