"""Flips as tables, figures and charts, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from broker.acl.authorizer import RuleKind
from pipeline.analysis.acl_text import resource_text
from pipeline.jobs.flips import NEWLY_ALLOWED, NEWLY_DENIED, Flips
from pipeline.jobs.ranking import Ranking, rankings
from pipeline.output import Output
from pipeline.result import Cell, Chart, Figure, Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EVENTS: Final = {NEWLY_DENIED: "denied_events", NEWLY_ALLOWED: "allowed_events"}


class Total(NamedTuple):
    """What flips in one direction: questions, their events, of whom, and from when to when."""

    questions: int = 0
    events: int = 0
    only_filtering: int = 0
    principals: int = 0
    first: str = ""
    last: str = ""


class FlipsReport(NamedTuple):
    """All that can be shown of flips."""

    totals: Mapping[str, Total]
    figures: Sequence[Figure]
    tables: Sequence[Table]
    charts: Sequence[Chart]
    outputs: Mapping[str, str]


def report_flips(
    flips: Flips, output: Output, job: str, days: Sequence[date], top: int
) -> FlipsReport:
    """Sum up flips; write the table ``JOB/causes``. ``days``: all those of the log."""
    totals = _totals(flips.table)
    outputs = {f"{job}/flips": "every question whose decision flips, with the ACLs of both sides"}
    figures = _figures(flips, totals)
    if not totals:
        none = {NEWLY_DENIED: Total(), NEWLY_ALLOWED: Total()}
        return FlipsReport(none, figures, [], [], outputs)
    causes = output.table(f"{job}/causes", _causes(flips.table))
    outputs[f"{job}/causes"] = "every change that makes decisions flip, with how many"
    tops = _tops(flips.table, top)
    by_day, hosts = _days_and_hosts(flips.usage, len(days), top)
    tables = [
        *(
            _examples(flips.table, direction, totals[direction].questions, top)
            for direction in (NEWLY_DENIED, NEWLY_ALLOWED)
            if direction in totals
        ),
        _causes_table(causes, top),
        _ranking("Principals whose decisions flip", "Principal", tops["principals"]),
        _ranking("Resources whose decisions flip", "Resource", tops["resources"]),
        _ranking("Operations whose decisions flip", "Operation", tops["operations"]),
        _ranking("Hosts they come from", "Host", hosts),
    ]
    charts = [_day_chart(days, by_day), _principal_chart(tops["principals"])]
    full = {each: totals.get(each, Total()) for each in (NEWLY_DENIED, NEWLY_ALLOWED)}
    return FlipsReport(full, figures, tables, charts, outputs)


def _totals(flips: DataFrame) -> dict[str, Total]:
    rows = (
        flips.groupBy("direction")
        .agg(
            F.count("*").alias("questions"),
            F.sum("flipped_events").alias("events"),
            F.count_if(F.col("loud_events") == 0).alias("only_filtering"),
            F.count_distinct("cluster", "principal").alias("principals"),
            F.date_format(F.min("first_seen"), "yyyy-MM-dd").alias("first"),
            F.date_format(F.max("last_seen"), "yyyy-MM-dd").alias("last"),
        )
        .collect()
    )
    return {row["direction"]: Total(*(row[name] for name in Total._fields)) for row in rows}


def _figures(flips: Flips, totals: Mapping[str, Total]) -> list[Figure]:
    found = [
        Figure("Events replayed", flips.events),
        Figure("Questions", flips.questions, "that differ to an authorizer"),
    ]
    for direction in (NEWLY_DENIED, NEWLY_ALLOWED):
        total = totals.get(direction, Total())
        label = direction.capitalize()
        note = f"from {total.first} to {total.last}" if total.questions else ""
        found += [
            Figure(f"{label}: events", total.events, note),
            Figure(f"{label}: questions", total.questions, _filtering_note(total)),
            Figure(f"{label}: principals", total.principals),
        ]
    return found


def _filtering_note(total: Total) -> str:
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


def _flipped() -> dict[str, Column]:
    events = F.col("flipped_events")
    by_direction = {name: _sum_where(each, events) for each, name in _EVENTS.items()}
    return {"events": F.sum(events), **by_direction}


def _tops(flips: DataFrame, top: int) -> dict[str, Ranking]:
    dimensions = {
        "principals": ("cluster", "principal"),
        "resources": ("cluster", "resource_type", "resource_name"),
        "operations": ("cluster", "operation"),
    }
    return rankings(flips, dimensions, _flipped(), count=top)


def _days_and_hosts(usage: DataFrame, days: int, top: int) -> tuple[dict[date, Any], Ranking]:
    found = rankings(
        usage.withColumnRenamed("example_host", "host"),
        {"hosts": ("cluster", "host"), "days": ("day",)},
        _flipped(),
        count=max(top, days),
    )
    by_day = {row["day"]: row for row in found["days"].rows}
    return by_day, Ranking(found["hosts"].rows[:top], found["hosts"].total)


def _examples(flips: DataFrame, direction: str, total: int, top: int) -> Table:
    rows = (
        flips.where(F.col("direction") == direction)
        .orderBy(F.desc("flipped_events"), "cluster", "principal", "operation", "resource_name")
        .limit(top)
        .withColumn("last_day", F.date_format("last_seen", "yyyy-MM-dd"))
        .collect()
    )
    columns = ("Cluster", "Principal", "Operation", "Resource", "Host", "Events", "Last", "Before")
    return Table(
        direction.capitalize(), [*columns, "After"], [_example(row) for row in rows], total
    )


def _example(row: Any) -> list[Cell]:
    return [
        row["cluster"],
        row["principal"],
        row["operation"],
        resource_text(row["resource_type"], row["resource_name"]),
        row["example_host"],
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
    if rule != RuleKind.MATCHING_ACL.value:
        return str(rule)
    first, *others = row[f"{name}_allows" if row[f"{name}_allowed"] else f"{name}_denies"]
    return f"{first} and {len(others)} more" if others else str(first)


def _causes_table(causes: DataFrame, top: int) -> Table:
    names = ("cluster", "change", "what", "questions", "denied_events", "allowed_events")
    rows = causes.orderBy(
        F.desc(F.col("denied_events") + F.col("allowed_events")), "cluster", "change", "what"
    )
    first = [[row[name] for name in names] for row in rows.limit(top).collect()]
    headings = ["Cluster", "Change", "ACL or setting", "Questions", "Newly denied", "Newly allowed"]
    total = len(first) if len(first) < top else causes.count()
    return Table("What makes decisions flip", headings, first, total)


def _ranking(title: str, heading: str, ranking: Ranking) -> Table:
    rows: list[list[Cell]] = [
        [row["cluster"], _named(row, heading), row["denied_events"], row["allowed_events"]]
        for row in ranking.rows
    ]
    headings = ["Cluster", heading, "Newly denied", "Newly allowed"]
    return Table(title, headings, rows, ranking.total, "events")


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
