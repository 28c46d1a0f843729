"""Flips as tables, figures and charts, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.frames import Window, new_observation
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, Table
from aclbroker.pipeline.replay.flips.comparing import DIRECTIONS, NEWLY_ALLOWED, NEWLY_DENIED
from aclbroker.pipeline.replay.flips.find import Flips, FlipTotal
from aclbroker.pipeline.replay.hosts import ANY_HOST
from aclbroker.pipeline.usage.ranking import Ranking, rankings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DIMENSIONS: Final = {
    "principals": ("cluster", "principal"),
    "resources": ("cluster", "resource_type", "resource_name"),
    "operations": ("cluster", "operation"),
    "hosts": ("cluster", "host"),
    "days": ("day",),
}

_EVENTS: Final = {NEWLY_DENIED: "denied_events", NEWLY_ALLOWED: "allowed_events"}
_MEASURES: Final = ("events", *_EVENTS.values())


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
    tops = rankings(_measured(flips.usage), _DIMENSIONS, _MEASURES, count=max(top, len(days)))
    by_day = {row["day"]: row for row in tops.pop("days").rows}
    tops = {name: ranking.first(top) for name, ranking in tops.items()}
    affected = tops["principals"].above_zero
    principals = {direction: affected[name] for direction, name in _EVENTS.items()}
    tables = [
        *_examples(flips, source, top),
        _causes_table(flips.table, output, f"{job}/causes", top),
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


def _causes(flips: DataFrame) -> DataFrame:
    """Each change with how much flips because of it; a flip may have several causes."""

    def marked(column: str, change: str) -> Column:
        return F.transform(
            column, lambda what: F.struct(F.lit(change).alias("change"), what.alias("what"))
        )

    all_changes = F.concat(
        marked("removed", "removed"), marked("added", "added"), marked("settings", "setting")
    )
    return (
        flips.withColumn("cause", F.explode(all_changes))
        .groupBy("cluster", "cause.change", "cause.what")
        .agg(
            F.count("*").alias("questions"),
            *(
                _sum_where(direction, F.col("flipped_events")).alias(name)
                for direction, name in _EVENTS.items()
            ),
        )
    )


def _sum_where(direction: str, events: Column) -> Column:
    return F.sum(F.when(F.col("direction") == direction, events).otherwise(0))


def _measured(usage: DataFrame) -> DataFrame:
    """Return flipped usage with the columns `_MEASURES`."""
    events = F.col("flipped_events")
    flips = {
        name: F.when(F.col("direction") == each, events).otherwise(0)
        for each, name in _EVENTS.items()
    }
    return usage.withColumns({"events": events, **flips})


def _examples(flips: Flips, source: str, top: int) -> list[Table]:
    largest = Window.partitionBy("direction").orderBy(
        F.desc("flipped_events"), "cluster", "principal", "operation", "resource_name"
    )
    rows = (
        flips.table.withColumn("rank", F.row_number().over(largest))
        .where(F.col("rank") <= top)
        .withColumn("last_day", F.date_format("last_seen", "yyyy-MM-dd"))
        .orderBy("rank")
        .collect()
    )
    columns = ["Cluster", "Principal", "Operation", "Resource", "Host", "Events", "Last"]
    return [
        Table(
            direction.capitalize(),
            [*columns, "Before", "After"],
            [_example(row) for row in rows if row["direction"] == direction],
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
        row["last_day"],
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


def _causes_table(flips: DataFrame, output: Output, name: str, top: int) -> Table:
    counted = new_observation()
    causes = output.table(name, _causes(flips).observe(counted, F.count(F.lit(1)).alias("causes")))
    columns = ("cluster", "change", "what", "questions", "denied_events", "allowed_events")
    rows = causes.orderBy(
        F.desc(F.col("denied_events") + F.col("allowed_events")), "cluster", "change", "what"
    )
    first = [[row[column] for column in columns] for row in rows.limit(top).collect()]
    headings = ["Cluster", "Change", "ACL or setting", "Questions", "Newly denied", "Newly allowed"]
    total = counted.get["causes"]
    return Table("What makes decisions flip", headings, first, total, source=name)


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
        for direction, name in _EVENTS.items()
    }
    return Chart("Flipped events by day", "columns", [str(day) for day in days], series)


def _principal_chart(principals: Ranking) -> Chart:
    series: dict[str, Sequence[float]] = {
        direction: [row[name] for row in principals.rows] for direction, name in _EVENTS.items()
    }
    labels = [row["principal"] for row in principals.rows]
    return Chart("Flipped events by principal", "bars", labels, series)
