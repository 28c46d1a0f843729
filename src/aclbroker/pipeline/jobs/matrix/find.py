"""Writes the table of use, and finds its largest groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.matrix.decisions import decisions
from aclbroker.pipeline.usage.ranking import Ranking, rankings
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

USE: Final = "matrix/use"
"""The table of use."""

_DECISIONS: Final = "matrix/decisions"

COUNTS: Final = ("events", "allowed_events", "denied_events")
"""The columns of the table that are added up for its groups."""

_GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "principals": ("cluster", "principal"),
    "resources": ("cluster", "resource_type", "resource_name"),
    "operations": ("cluster", "operation"),
    "days": ("day",),
}


class EffectiveUse(NamedTuple):
    """The table of use as it was written, its largest groups, and the counts of each day.

    ``tops`` are those of ``principals``, ``resources`` and ``operations``. ``outputs`` are what was
    written, with what it is.
    """

    table: DataFrame
    tops: Mapping[str, Ranking]
    by_day: Mapping[date, Mapping[str, Any]]
    outputs: dict[str, str]


def find(inputs: Inputs, top: int) -> EffectiveUse:
    """Write the table, and what the current rules decide; return the ``top`` largest groups."""
    outputs = {USE: "use by cluster, day, principal, resource and operation"}
    if inputs.current:
        decided = decisions(inputs.usage, inputs.current)
        inputs.output.table(_DECISIONS, decided, partition_by=["cluster"])
        outputs[_DECISIONS] = "what the current ACLs decide on it, and which of them do"
    table = inputs.output.table(USE, _use(inputs.usage.rows), partition_by=("cluster", "day"))
    tops = rankings(Usage(table), _GROUPS, COUNTS, count=max(top, len(inputs.window.days)))
    by_day = {row["day"]: row for row in tops.pop("days").rows}
    first = {name: ranking.first(top) for name, ranking in tops.items()}
    return EffectiveUse(table, first, by_day, outputs)


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
        # One file a day, not one from each task; sorted by the column that most readers look for.
        .repartition("cluster", "day")
        .sortWithinPartitions("cluster", "day", "principal")
    )


def _events_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("events")).otherwise(0))
