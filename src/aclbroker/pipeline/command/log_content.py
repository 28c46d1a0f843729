"""Counts what the tables of a log hold: its days, its events by cluster, its quarantined lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.ingest.doubts import NOT_DECISIONS
from aclbroker.pipeline.ingest.unread import FORMS
from aclbroker.pipeline.interface.coverage import Days
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.usage.summary import NEEDED, summed, summed_type
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Content(NamedTuple):
    """The content of a log.

    ``clusters`` has the number of events by cluster, and ``quarantined`` that of lines by reason.
    ``not_decisions`` counts lines that cannot be decisions, by reason. Lines of other loggers are
    an example. ``super_users`` has, by cluster, the events of the principals that the log calls
    super users, as far as `usage.summary` names them. ``days`` has the allowed and the denied
    events of each cluster and day.
    """

    window: Window
    clusters: dict[str, int]
    quarantined: dict[str, int]
    super_users: dict[str, Counter[str]]
    days: Days
    not_decisions: dict[str, int]

    def unlisted(self, listed: Mapping[str, frozenset[str]]) -> Counter[str]:
        """Return the events of those super users whom ``listed``, by cluster, does not name."""
        found: Counter[str] = Counter()
        for cluster, users in self.super_users.items():
            others = users.keys() - listed.get(cluster, frozenset())
            found.update({name: users[name] for name in others})
        return found


class _Row(NamedTuple):
    """Events; ``super_user`` if they are of one whom the log calls so."""

    cluster: str
    day: date
    allowed: bool
    super_user: str | None
    events: int


def content(usage: Usage, quarantine: DataFrame, summary: pa.Table | None = None) -> Content:
    """Count the tables `pipeline.schemas.usage` and ``quarantine``.

    ``summary``: what `usage.summary` has of both, if that is known. Raises InputError if there are
    no events.
    """
    if summary is None:
        rows, lines = _counted(usage, quarantine)
    else:
        rows, lines = _of_summary(summary)
    in_order = dict(sorted(lines.items(), key=lambda each: -each[1]))
    if not rows:
        raise InputError("the input holds no events in these days" + _none(in_order))
    quarantined = {
        reason: count for reason, count in in_order.items() if reason not in NOT_DECISIONS
    }
    others = {reason: count for reason, count in in_order.items() if reason in NOT_DECISIONS}
    clusters: Counter[str] = Counter()
    super_users: dict[str, Counter[str]] = {}
    for row in rows:
        clusters[row.cluster] += row.events
        if row.super_user is not None:
            super_users.setdefault(row.cluster, Counter())[row.super_user] += row.events
    by_day: Counter[date] = Counter()
    days: dict[tuple[str, date], tuple[int, int]] = {}
    for row in rows:
        by_day[row.day] += row.events
        allowed, denied = days.get((row.cluster, row.day), (0, 0))
        more = (row.events, 0) if row.allowed else (0, row.events)
        days[row.cluster, row.day] = allowed + more[0], denied + more[1]
    events = clusters.total()
    allowed = sum(row.events for row in rows if row.allowed)
    window = Window(
        min(by_day),
        max(by_day),
        events,
        allowed,
        events - allowed,
        sum(quarantined.values()),
        dict(sorted(by_day.items())),
    )
    return Content(window, dict(sorted(clusters.items())), quarantined, super_users, days, others)


def _counted(usage: Usage, quarantine: DataFrame) -> tuple[list[_Row], dict[str, int]]:
    """Return what `content` counts, and the lines in quarantine by reason."""
    from aclbroker.pipeline.frames import functions as F

    rows = usage.map(summed, summed_type(), NEEDED).select(*_Row._fields).collect()
    reasons = quarantine.groupBy("reason").agg(F.count("*").alias("lines")).collect()
    return [_Row(*row) for row in rows], {row["reason"]: row["lines"] for row in reasons}


def _of_summary(summary: pa.Table) -> tuple[list[_Row], dict[str, int]]:
    are_events = pc.is_null(summary["reason"])
    found = summary.filter(are_events).select(_Row._fields).to_pylist()
    lines: Counter[str] = Counter()
    for row in summary.filter(pc.invert(are_events)).to_pylist():
        lines[row["reason"]] += row["events"]
    return [_Row(**row) for row in found], lines


def _none(quarantined: Mapping[str, int]) -> str:
    """Say which lines are no events, and what can be read."""
    if not quarantined:
        return ""
    reason, lines = next(iter(quarantined.items()))
    return f", and {sum(quarantined.values()):,} lines that are none ({lines:,}: {reason}); {FORMS}"
