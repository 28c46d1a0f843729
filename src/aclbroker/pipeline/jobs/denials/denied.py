"""What was denied: each principal, operation and resource once, with how often and when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import ResourceType
from aclbroker.pipeline.frames import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DenialKey = tuple[str, str, str, str, str | None]
"""Cluster, principal, operation, resource type and name of something that was denied."""

KEY: Final = ("cluster", "principal", "operation", "resource_type", "resource_name")
"""The columns of a `DenialKey`."""

SELDOM_KEY: Final = KEY[:-1]
"""The columns by which rare denials are grouped."""

_MOST_PRINCIPALS: Final = 10


class DenialCounts(NamedTuple):
    """The numbers of denied events, by how the report shows them.

    ``rare`` counts the denials with fewer than ``min_events`` events, except those on the cluster.
    They are grouped by kind of resource. ``told`` counts the other denials, each of a principal, an
    operation and a resource.
    """

    events: int
    quiet_events: int
    rare: int
    rare_events: int
    told: int
    min_events: int


def grouped(usage: DataFrame) -> DataFrame:
    """Return what was denied: one row for each principal, operation and resource."""
    loud = ~F.col("quiet")

    def of_loud(column: str) -> Column:
        return F.when(loud, F.col(column))

    by_acl = F.col("rule").eqNullSafe(RuleKind.MATCHING_ACL.value)
    return (
        usage.where(~F.col("allowed"))
        .groupBy(*KEY)
        .agg(
            F.sum(F.when(loud, F.col("events")).otherwise(0)).alias("events"),
            F.sum(F.when(loud, 0).otherwise(F.col("events"))).alias("quiet_events"),
            F.sum(F.when(loud & by_acl, F.col("events")).otherwise(0)).alias("events_by_acl"),
            F.size(F.collect_set(of_loud("day"))).alias("days"),
            F.size(F.collect_set(of_loud("host"))).alias("hosts"),
            F.min(of_loud("host")).alias("example_host"),
            F.sort_array(F.collect_set(of_loud("api"))).alias("apis"),
            F.min(of_loud("first_seen")).alias("first_seen"),
            F.max(of_loud("last_seen")).alias("last_seen"),
        )
    )


def is_told(least: int) -> Column:
    """Tell which rows of `grouped` the report lists one by one.

    These are the rows with at least ``least`` events, and all rows of the cluster: each denial on
    the cluster matters, and there are few operations.
    """
    of_cluster = F.col("resource_type") == ResourceType.CLUSTER.name
    return (F.col("events") >= least) | (of_cluster & (F.col("events") > 0))


def seldom(grouped: DataFrame, least: int) -> DataFrame:
    """Return the other rows grouped by `SELDOM_KEY`.

    ``names`` is the number of resources in a group, and ``example`` is the first name.
    """
    return (
        grouped.where((F.col("events") > 0) & ~is_told(least))
        .groupBy(*SELDOM_KEY)
        .agg(
            F.count("*").alias("names"),
            F.min("resource_name").alias("example"),
            F.sum("events").alias("events"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
        )
    )


def counts_of(grouped: DataFrame, least: int) -> DenialCounts:
    """Return the numbers of denied events; ``least``: see `is_told`."""
    is_rare = (F.col("events") > 0) & ~is_told(least)
    row = grouped.agg(
        F.sum("events"),
        F.sum("quiet_events"),
        F.count_if(is_rare),
        F.sum(F.when(is_rare, F.col("events"))),
        F.count_if(is_told(least)),
    ).collect()[0]
    events, quiet, rare, rare_events, told = (each or 0 for each in row)
    return DenialCounts(events, quiet, rare, rare_events, told, least)


def with_allowed(denied: DataFrame, usage: DataFrame) -> DataFrame:
    """Return what was denied with the events and the last time that the same was allowed."""
    # A request that named no resource was never allowed, so nulls need not match.
    allowed = (
        usage.where("allowed")
        .join(denied.select(*KEY), list(KEY), "left_semi")
        .groupBy(*KEY)
        .agg(
            F.sum("events").alias("allowed_events"), F.max("last_seen").alias("last_allowed"),
        )
    )  # fmt: skip
    joined = denied.join(allowed, list(KEY), "left")
    return joined.withColumn("allowed_events", F.coalesce("allowed_events", F.lit(0)))


def key_of(row: Mapping[str, Any]) -> DenialKey:
    """Return what a row with the columns of `KEY` is about."""
    cluster, principal, operation, resource_type, name = (row[each] for each in KEY)
    return cluster, principal, operation, resource_type, name


def by_day(denied: DataFrame) -> dict[date, tuple[int, int]]:
    """Return how many events were denied on each day: first the loud ones, then the quiet."""
    quiet, events = F.col("quiet"), F.col("events")
    rows = (
        denied.groupBy("day")
        .agg(F.sum(F.when(quiet, 0).otherwise(events)), F.sum(F.when(quiet, events).otherwise(0)))
        .collect()
    )
    return {day: (loud, quietly) for day, loud, quietly in rows}


def by_principal(table: DataFrame) -> list[tuple[str, int]]:
    """Return the principals that were denied most, with how many events."""
    rows = (
        table.groupBy("principal")
        .agg(F.sum("events").alias("events"))
        .orderBy(F.desc("events"), "principal")
        .limit(_MOST_PRINCIPALS)
        .collect()
    )
    return [(row["principal"], row["events"]) for row in rows]
