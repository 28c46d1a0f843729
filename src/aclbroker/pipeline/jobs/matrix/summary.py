"""Effective use, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from aclbroker.acl.bindings import AclOperation
from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.jobs.matrix.find import COUNTS, USE, EffectiveUse
from aclbroker.pipeline.usage.ranking import Ranking

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def summary(found: EffectiveUse, window: Window) -> JobResult:
    """Return what was found as tables, figures and charts."""
    tops = found.tops
    return JobResult(
        job="matrix",
        title="Effective use",
        summary=_sentence(window, tops),
        figures=_figures(window, tops),
        tables=[
            _top_table("Top principals", tops["principals"], ("principal",)),
            _resources_table(tops["resources"]),
            _top_table("Operations", tops["operations"], ("operation",)),
            _heat_table(found.table, tops["principals"]),
        ],
        charts=[_day_chart(window.days, found.by_day), _principal_chart(tops["principals"])],
        outputs=found.outputs,
    )


def _sentence(window: Window, tops: Mapping[str, Ranking]) -> str:
    return (
        f"{tops['principals'].total:,} principals used {tops['resources'].total:,} resources in "
        f"{window.events:,} events from {window.first_day} to {window.last_day}."
    )


def _figures(window: Window, tops: Mapping[str, Ranking]) -> list[Figure]:
    return [
        Figure("Events", window.events),
        Figure("Allowed", window.allowed),
        Figure("Denied", window.denied),
        Figure("Principals", tops["principals"].total, "each in each cluster"),
        Figure("Resources", tops["resources"].total, "each in each cluster"),
        Figure("Operations", tops["operations"].total, "each in each cluster"),
    ]


def _top_table(title: str, top: Ranking, columns: Sequence[str]) -> Table:
    shown = ("cluster", *columns, *COUNTS)
    rows = [[row[name] for name in shown] for row in top.rows]
    return Table(title, _headings(shown), rows, top.total, source=USE)


def _resources_table(top: Ranking) -> Table:
    rows: list[list[Cell]] = [
        [
            row["cluster"],
            resource_text(row["resource_type"], row["resource_name"]),
            *(row[name] for name in COUNTS),
        ]
        for row in top.rows
    ]
    headings = _headings(("cluster", "resource", *COUNTS))
    return Table("Top resources", headings, rows, top.total, source=USE)


def _headings(names: Sequence[str]) -> list[str]:
    return [name.replace("_events", "").capitalize() for name in names]


def _heat_table(use: DataFrame, principals: Ranking) -> Table:
    """The events of the top principals by operation."""
    shown = [(row["cluster"], row["principal"]) for row in principals.rows]
    counts = (
        use.where(F.col("principal").isin([principal for _, principal in shown]))
        .groupBy("cluster", "principal", "operation")
        .agg(F.sum("events").alias("events"))
        .collect()
    )
    events = {(row["cluster"], row["principal"], row["operation"]): row["events"] for row in counts}
    used = {operation for *who, operation in events if tuple(who) in shown}
    operations = [each.name for each in AclOperation if each.name in used]
    rows = [[*who, *(events.get((*who, name), 0) for name in operations)] for who in shown]
    return Table(
        "Events by principal and operation",
        ["Cluster", "Principal", *operations],
        rows,
        principals.total,
        source=USE,
        matrix=True,
    )


def _day_chart(days: Sequence[date], by_day: Mapping[date, Any]) -> Chart:
    def series(name: str) -> list[float]:
        return [by_day[day][name] if day in by_day else 0 for day in days]

    return Chart(
        "Events by day",
        "columns",
        [str(day) for day in days],
        {"allowed": series("allowed_events"), "denied": series("denied_events")},
    )


def _principal_chart(top: Ranking) -> Chart:
    return Chart(
        "Top principals",
        "bars",
        [row["principal"] for row in top.rows],
        {
            "allowed": [row["allowed_events"] for row in top.rows],
            "denied": [row["denied_events"] for row in top.rows],
        },
    )
