"""Flips as tables, figures and charts, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

import pyarrow as pa

from aclbroker.acl.authorizer import RuleKind
from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, Table
from aclbroker.pipeline.replay.flips.comparing import DIRECTIONS, EVENTS
from aclbroker.pipeline.replay.flips.digest import CAUSE
from aclbroker.pipeline.replay.flips.find import Flips, FlipTotal
from aclbroker.pipeline.replay.flips.usage import MEASURES
from aclbroker.pipeline.replay.hosts import ANY_HOST
from aclbroker.pipeline.spark.frames import frame_of
from aclbroker.pipeline.usage.ranking import Ranking, rankings

_DIMENSIONS: Final = {
    "principals": ("cluster", "principal"),
    "resources": ("cluster", "resource_type", "resource_name"),
    "operations": ("cluster", "operation"),
    "hosts": ("cluster", "host"),
    "days": ("day",),
}


class FlipsReport(NamedTuple):
    """All that can be shown of flips. ``principals``: how many there are, by direction."""

    principals: Mapping[str, int]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    charts: Sequence[Chart]
    outputs: Mapping[str, str]


def report_flips(
    flips: Flips, output: Output, job: str, days: Sequence[date], top: int
) -> FlipsReport:
    """Sum up flips; write the table ``JOB/causes``. ``days``: all those of the log."""
    source = f"{job}/flips"
    outputs = {source: "every question whose decision flips, with the ACLs of both sides"}
    if not flips.totals:
        principals = dict.fromkeys(DIRECTIONS, 0)
        return FlipsReport(principals, _figures(flips, principals), [], [], outputs)
    outputs[f"{job}/causes"] = "every change that makes decisions flip, with how many"
    tops = rankings(flips.usage, _DIMENSIONS, MEASURES, count=max(top, len(days)))
    by_day = {row["day"]: row for row in tops.pop("days").rows}
    tops = {name: ranking.first(top) for name, ranking in tops.items()}
    affected = tops["principals"].above_zero
    principals = {direction: affected[name] for direction, name in EVENTS.items()}
    tables = [
        *_examples(flips, source),
        _causes_table(flips, output, f"{job}/causes", top),
        _ranking("Principals whose decisions flip", "Principal", tops["principals"], source),
        _ranking("Resources whose decisions flip", "Resource", tops["resources"], source),
        _ranking("Operations whose decisions flip", "Operation", tops["operations"], source),
        _ranking("Hosts they come from", "Host", tops["hosts"], source),
    ]
    charts = [_day_chart(days, by_day), _principal_chart(tops["principals"])]
    return FlipsReport(principals, _figures(flips, principals), tables, charts, outputs)


def _figures(flips: Flips, principals: Mapping[str, int]) -> list[Figure]:
    found = [
        Figure("Events replayed", flips.events),
        Figure("Questions", flips.questions, "that an authorizer can tell apart"),
    ]
    for direction in DIRECTIONS:
        total = flips.totals.get(direction, FlipTotal())
        label = direction.capitalize()
        note = f"from {total.first_day} to {total.last_day}" if total.questions else ""
        found += [
            Figure(f"{label}: events", total.events, note),
            Figure(f"{label}: questions", total.questions, _filtering_note(total)),
            Figure(f"{label}: principals", principals[direction]),
        ]
    return found


def _filtering_note(total: FlipTotal) -> str:
    if not total.only_filtering:
        return ""
    return f"{total.only_filtering:,} of them were only asked to filter an answer"


def _examples(flips: Flips, source: str) -> list[Table]:
    columns = ["Cluster", "Principal", "Operation", "Resource", "Host", "Events", "Last"]
    return [
        Table(
            direction.capitalize(),
            [*columns, "Before", "After"],
            [_example(row) for row in flips.digest.examples[direction]],
            total.questions,
            source=source,
        )
        for direction, total in flips.totals.items()
    ]


def _example(row: Any) -> list[Cell]:
    return [
        row["cluster"],
        row["principal"],
        row["operation"],
        resource_text(row["resource_type"], row["resource_name"]),
        row["example_host"] or ANY_HOST,
        row["flipped_events"],
        str(row["last_seen"].date()),
        _decided_by(row, "before"),
        _decided_by(row, "after"),
    ]


def _decided_by(row: Any, name: str) -> str:
    """What decided on one side, as the rule or the ACLs behind it."""
    rule = row[f"{name}_rule"]
    if rule is None:
        return "recorded in the log"
    acls = row[f"{name}_allows" if row[f"{name}_allowed"] else f"{name}_denies"]
    if rule != RuleKind.MATCHING_ACL.value or not acls:
        return str(rule)
    first, *others = acls
    return f"{first} and {len(others)} more" if others else str(first)


def _causes_table(flips: Flips, output: Output, name: str, top: int) -> Table:
    rows = [[row[column] for column in CAUSE] for row in flips.digest.causes]
    output.table(name, frame_of(flips.usage.spark, pa.schema(list(CAUSE.items())), rows))
    headings = ["Cluster", "Change", "ACL or setting", "Questions", "Newly denied", "Newly allowed"]
    return Table("What makes decisions flip", headings, rows[:top], len(rows), source=name)


def _ranking(title: str, heading: str, ranking: Ranking, source: str) -> Table:
    rows: list[list[Cell]] = [
        [row["cluster"], _named(row, heading), row["denied_events"], row["allowed_events"]]
        for row in ranking.rows
    ]
    headings = ["Cluster", heading, "Newly denied", "Newly allowed"]
    return Table(title, headings, rows, ranking.total, "events", source)


def _named(row: Any, heading: str) -> str:
    if heading == "Resource":
        return resource_text(row["resource_type"], row["resource_name"])
    return str(row[heading.lower()])


def _day_chart(days: Sequence[date], by_day: Mapping[date, Any]) -> Chart:
    series: dict[str, Sequence[float]] = {
        direction: [by_day[day][name] if day in by_day else 0 for day in days]
        for direction, name in EVENTS.items()
    }
    return Chart("Flipped events by day", "columns", [str(day) for day in days], series)


def _principal_chart(principals: Ranking) -> Chart:
    series: dict[str, Sequence[float]] = {
        direction: [row[name] for row in principals.rows] for direction, name in EVENTS.items()
    }
    labels = [row["principal"] for row in principals.rows]
    return Chart("Flipped events by principal", "bars", labels, series)
