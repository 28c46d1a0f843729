"""Gathers logs in tables, which all jobs can read instead of logs, and tells what they hold.

The command line has the tables written before the job runs (`pipeline.command.log_tables.gather`),
because every job begins with the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import Job, Option
from aclbroker.pipeline.interface.result import Figure, JobResult
from aclbroker.pipeline.report.words import counted


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """``follow``: go on with what is added, until interrupted."""

    follow: bool = False


def run(inputs: Inputs, options: IngestOptions | None = None) -> JobResult:
    """Count what was gathered, and note the current ACLs beside it."""
    from aclbroker.pipeline.acls import snapshots
    from aclbroker.pipeline.ingest.stored import EVENTS, QUARANTINE, USAGE

    snapshots.take(inputs.spark, inputs.output.place, inputs.current, datetime.now(UTC))
    window = inputs.window
    rows = inputs.usage.rows.count()
    lines = counted(window.quarantined, "line")
    return JobResult(
        JOB.name,
        "What the log holds",
        f"The tables hold {counted(window.events, 'event')} in {counted(rows, 'row')} of usage, "
        f"and {lines} in quarantine.",
        [Figure("Rows of usage", rows, "events that differ in nothing but the time of a day")],
        outputs={
            EVENTS: "every event",
            USAGE: "the events of a day, counted by all that a decision depends on",
            QUARANTINE: "the lines that are no events, with the reason",
            snapshots.ACLS: "the ACLs given with --acls, and when each set was first seen",
        },
    )


JOB: Final = Job(
    "ingest",
    "gather logs in tables, each line once, which all jobs can read instead of logs",
    IngestOptions,
    run,
    (Option("follow", "follow", "go on with what is added, until interrupted"),),
)
