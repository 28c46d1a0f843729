"""Who used what: effective use by principal, resource, operation and day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from aclbroker.broker.acl.bindings import AclOperation
from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.interface.inputs import Inputs, Window
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, Result, Table
from aclbroker.pipeline.jobs.decisions import decisions
from aclbroker.pipeline.usage.ranking import Ranking, rankings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TABLE: Final = "matrix/use"
_DECISIONS: Final = "matrix/decisions"
_COUNTS: Final = ("events", "allowed_events", "denied_events")


@dataclass(frozen=True, slots=True)
class MatrixOptions:
    """``top``: how many rows the tables of the summary show."""

    top: int = 20


def run(inputs: Inputs, options: MatrixOptions | None = None) -> Result:
    """Write the table of use, partitioned by cluster and day, and sum it up.

    A row is what one principal (the first one of its sessions) did with one operation on one
    resource of a cluster on a day: ``events``, of them ``allowed_events``, ``denied_events`` and
    ``quiet_events`` (which only filtered an answer), ``reference_count``, ``first_seen`` and
    ``last_seen``. If rules are given, also write what they decide on it, and by which ACLs (see
    `pipeline.jobs.decisions.decisions`).
    """
    options = options or MatrixOptions()
    outputs = {_TABLE: "use by cluster, day, principal, resource and operation"}
    if inputs.current:
        decided = decisions(inputs.usage, inputs.current)
        inputs.output.table(_DECISIONS, decided, partition_by=["cluster"])
        outputs[_DECISIONS] = "what the current ACLs decide on it, and which of them do"
    use = inputs.output.table(_TABLE, _use(inputs.usage.rows), partition_by=("cluster", "day"))
    tops = rankings(
        use,
        {
            "principals": ("cluster", "principal"),
            "resources": ("cluster", "resource_type", "resource_name"),
            "operations": ("cluster", "operation"),
            "days": ("day",),
        },
        _COUNTS,
        count=max(options.top, len(inputs.window.days)),
    )
    by_day = {row["day"]: row for row in tops.pop("days").rows}
    tops = {name: ranking.first(options.top) for name, ranking in tops.items()}
    return Result(
        job="matrix",
        title="Effective use",
        summary=_summary(inputs.window, tops),
        figures=_figures(inputs.window, tops),
        tables=[
            _top_table("Top principals", tops["principals"], ("principal",)),
            _resources_table(tops["resources"]),
            _top_table("Operations", tops["operations"], ("operation",)),
            _heat_table(use, tops["principals"]),
        ],
        charts=[_day_chart(inputs.window.days, by_day), _principal_chart(tops["principals"])],
        outputs=outputs,
    )


def _use(usage: DataFrame) -> DataFrame:
    keys = ("cluster", "day", "principal", "operation", "resource_type", "resource_name")
    return (
        usage.groupBy(*keys)
        .agg(
            F.sum("events").alias("events"),
            _events_where(F.col("allowed")).alias("allowed_events"),
            _events_where(~F.col("allowed")).alias("denied_events"),
            _events_where(F.col("quiet")).alias("quiet_events"),
            F.sum("reference_count").alias("reference_count"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
        )
        # One file for a day, not one from each task; sorted by whom most questions are about.
        .repartition("cluster", "day")
        .sortWithinPartitions("cluster", "day", "principal")
    )


def _events_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("events")).otherwise(0))


def _summary(window: Window, tops: Mapping[str, Ranking]) -> str:
    return (
        f"{tops['principals'].total:,} principals used {tops['resources'].total:,} resources with "
        f"{tops['operations'].total:,} operations in {window.events:,} events from "
        f"{window.first_day} to {window.last_day}."
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
    shown = ("cluster", *columns, *_COUNTS)
    rows = [[row[name] for name in shown] for row in top.rows]
    return Table(title, _headings(shown), rows, top.total)


def _resources_table(top: Ranking) -> Table:
    rows: list[list[Cell]] = [
        [
            row["cluster"],
            resource_text(row["resource_type"], row["resource_name"]),
            *(row[name] for name in _COUNTS),
        ]
        for row in top.rows
    ]
    return Table("Top resources", _headings(("cluster", "resource", *_COUNTS)), rows, top.total)


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
