"""Counts what the tables of a log hold: its days, its events by cluster, its quarantined lines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.errors import InputError
from pipeline.inputs import Window
from pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_PRINCIPALS: Final = 1000


class Content(NamedTuple):
    """What a log holds: ``clusters`` has the events of each, ``quarantined`` lines by reason."""

    window: Window
    clusters: dict[str, int]
    quarantined: dict[str, int]


def content(usage: Usage, quarantine: DataFrame) -> Content:
    """Count the tables `pipeline.schemas.usage` and ``quarantine``.

    Raises InputError if there are no events.
    """
    from pyspark.sql import functions as F

    rows = usage.by("cluster", "day", "allowed").collect()
    reasons = quarantine.groupBy("reason").agg(F.count("*").alias("lines")).collect()
    quarantined = {row.reason: row.lines for row in sorted(reasons, key=lambda row: -row.lines)}
    if not rows:
        lines = sum(quarantined.values())
        raise InputError(
            "the input holds no events in these days"
            + (f", and {lines:,} lines that are none" if lines else "")
        )
    clusters: Counter[str] = Counter()
    for row in rows:
        clusters[row.cluster] += row.events
    days = [row.day for row in rows]
    events = clusters.total()
    allowed = sum(row.events for row in rows if row.allowed)
    window = Window(
        min(days), max(days), events, allowed, events - allowed, sum(quarantined.values())
    )
    return Content(window, dict(sorted(clusters.items())), quarantined)


def unlisted_super_users(usage: Usage, listed: dict[str, frozenset[str]]) -> dict[str, int]:
    """Return the principals whom the log calls super users and ``listed``, by cluster, does not.

    With the number of their events, the busiest first; at most a thousand.
    """
    from pyspark.sql import functions as F

    from broker.acl.authorizer import RuleKind

    rows = (
        usage.part(rule=RuleKind.SUPER_USER.value, allowed=True)
        .by("cluster", "principal", "other_principals")
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
