"""Decides a log by the ACLs of each time, and writes what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline import schemas
from aclbroker.pipeline.acls.history import AclHistory
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.point_in_time.columns import (
    COUNTS,
    DECIDED_KEYS,
    Verdict,
    decided_type,
    told_type,
)
from aclbroker.pipeline.jobs.point_in_time.deciding import decided
from aclbroker.pipeline.jobs.point_in_time.gathering import gathered, part_count
from aclbroker.pipeline.jobs.point_in_time.telling import told
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.packing import decoded, of_parts, parts_of
from aclbroker.pipeline.usage.table import Batches, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DECISIONS: Final = "point-in-time/decisions"
"""The table of what was decided, and which ACL did."""

OTHERWISE: Final = "point-in-time/otherwise"
"""What of it is not as the ACLs of its time say."""

UNTOLD: Final = "point-in-time/untold"
"""What cannot be told."""


class PointInTime(NamedTuple):
    """What was found. ``events`` has those of each verdict; the tables are as they were written."""

    events: Mapping[str, int]
    decisions: DataFrame
    otherwise: DataFrame
    untold: Sequence[Mapping[str, Any]]
    outputs: dict[str, str]


def find(inputs: Inputs, usage: Usage) -> PointInTime:
    """Decide and write all of it.

    ``usage``: rows of `pipeline.ingest.positioned`, marked by `timing.Clock`.
    """
    histories, output = inputs.histories, inputs.output
    context = inputs.spark.sparkContext
    with uncollected(in_worker=False):
        shipped = context.broadcast(dict(histories))
    parts = gathered(usage, histories)
    work = _in_worker(_decided, shipped)
    rows = of_parts(parts, part_count(parts)).mapInArrow(work, decided_type())
    functions = {"sum": F.sum, "min": F.min, "max": F.max}
    sums = [functions[how](name).alias(name) for name, how in COUNTS.items()]
    # A question whose positions are of several parts has a row of each.
    found = rows.groupBy(*DECIDED_KEYS).agg(*sums).persist()
    untold = F.col("verdict") == Verdict.UNTOLD.value
    tell = _in_worker(_told, shipped)
    decisions = output.table(DECISIONS, found.where(~untold).mapInArrow(tell, told_type()))
    otherwise = decisions.where(F.col("verdict") != Verdict.AS_LOGGED.value)
    cannot = _untold(found.where(untold))
    result = PointInTime(
        {row["verdict"]: row["events"] for row in _by_verdict(found)},
        decisions,
        output.table(OTHERWISE, otherwise),
        output.table(UNTOLD, cannot).orderBy("cluster", "why").collect(),
        {
            DECISIONS: "what was asked and decided, by which ACL, and who had granted it",
            OTHERWISE: "what was not decided as the ACLs of its time say",
            UNTOLD: "of how many events that cannot be told, and why",
        },
    )
    found.unpersist()
    return result


def _by_verdict(found: DataFrame) -> Sequence[Any]:
    rows: Sequence[Any] = found.groupBy("verdict").agg(F.sum("events").alias("events")).collect()
    return rows


def _untold(found: DataFrame) -> DataFrame:
    return found.groupBy("cluster", "why").agg(
        F.sum("events").alias("events"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.min("first_position").alias("first_position"),
        F.max("last_position").alias("last_position"),
    )


WorkerFunction = Callable[[Batches, Mapping[str, AclHistory]], Batches]


def _in_worker(function: WorkerFunction, shipped: Any) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        with uncollected():
            yield from function(batches, shipped.value)

    return work


def _decided(batches: Batches, histories: Mapping[str, AclHistory]) -> Batches:
    schema = schemas.arrow(decided_type())
    for rows in decided(parts_of(batches), histories):
        yield from decoded(rows, schema).to_batches()


def _told(batches: Batches, histories: Mapping[str, AclHistory]) -> Batches:
    schema: pa.Schema = schemas.arrow(told_type())
    return told(batches, histories, schema)
