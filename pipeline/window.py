"""Counts what the tables of a log hold: its days, its events by cluster, its quarantined lines."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.errors import InputError
from pipeline.inputs import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_PRINCIPALS: Final = 1000


class Content(NamedTuple):
    """What a log holds: ``clusters`` has the events of each, ``quarantined`` lines by reason."""

    window: Window
    clusters: dict[str, int]
    quarantined: dict[str, int]


def of_days(table: DataFrame, since: date | None, until: date | None) -> DataFrame:
    """Return the rows of some days; those without a day are in all of them."""
    from pyspark.sql import functions as F

    if since is not None:
        table = table.where(F.col("day").isNull() | (F.col("day") >= F.lit(since)))
    if until is not None:
        table = table.where(F.col("day").isNull() | (F.col("day") <= F.lit(until)))
    return table


def content(usage: DataFrame, quarantine: DataFrame) -> Content:
    """Count the tables `pipeline.schemas.usage` and ``quarantine``.

    Raises InputError if there are no events.
    """
    from pyspark.sql import functions as F

    allowed = F.when(F.col("allowed"), F.col("events")).otherwise(0)
    rows = (
        usage.groupBy("cluster")
        .agg(
            F.min("day").alias("first_day"),
            F.max("day").alias("last_day"),
            F.sum("events").alias("events"),
            F.sum(allowed).alias("allowed"),
        )
        .orderBy("cluster")
        .collect()
    )
    reasons = quarantine.groupBy("reason").agg(F.count("*").alias("lines")).collect()
    quarantined = {row.reason: row.lines for row in sorted(reasons, key=lambda row: -row.lines)}
    if not rows:
        lines = sum(quarantined.values())
        raise InputError(
            "the input holds no events in these days"
            + (f", and {lines:,} lines that are none" if lines else "")
        )
    events = sum(row.events for row in rows)
    granted = sum(row.allowed for row in rows)
    window = Window(
        min(row.first_day for row in rows),
        max(row.last_day for row in rows),
        events,
        granted,
        events - granted,
        sum(quarantined.values()),
    )
    return Content(window, {row.cluster: row.events for row in rows}, quarantined)


def unlisted_super_users(usage: DataFrame, listed: dict[str, frozenset[str]]) -> dict[str, int]:
    """Return the principals whom the log calls super users and ``listed``, by cluster, does not.

    With the number of their events, the busiest first; at most a thousand.
    """
    from pyspark.sql import functions as F

    from broker.acl.authorizer import RuleKind

    rows = (
        usage.where((F.col("rule") == RuleKind.SUPER_USER.value) & F.col("allowed"))
        # Which of several principals of a session is the super user is not told.
        .where(F.col("other_principals").isNull())
        .groupBy("cluster", "principal")
        .agg(F.sum("events").alias("events"))
        .orderBy(F.desc("events"), "principal")
        .limit(_MOST_PRINCIPALS)
        .collect()
    )
    return {
        row.principal: row.events
        for row in rows
        if row.principal not in listed.get(row.cluster, frozenset())
    }
