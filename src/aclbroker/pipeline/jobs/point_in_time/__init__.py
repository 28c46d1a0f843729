"""Decides each event of a log anew by the ACLs as they were when it was decided.

A broker's log names the position of the store whose ACLs decided, and the store keeps its history.
So it can be told which events were decided otherwise than the ACLs of their time say, and of each
decision which ACL made it, who granted that, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import TOP, Job, Option, zero_or_more
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class PointInTimeOptions:
    """``tolerance``: by how many seconds the time of an event may lie outside of its position's.

    ``top``: how many rows the tables of the summary show.
    """

    tolerance: int = 60
    top: int = 20


def run(inputs: Inputs, options: PointInTimeOptions | None = None) -> JobResult:
    """Write what the ACLs of each time decide, and what was decided otherwise; sum it up.

    Raises InputError if no history is of a cluster of the log.
    """
    from aclbroker.pipeline.jobs.point_in_time.find import find
    from aclbroker.pipeline.jobs.point_in_time.summary import summary
    from aclbroker.pipeline.jobs.point_in_time.timing import Clock

    options = options or PointInTimeOptions()
    if not inputs.histories or inputs.positioned is None:
        raise InputError(
            "point-in-time needs a store with the history of the ACLs: --history sqlite:///FILE"
        )
    usage = inputs.positioned(Clock(inputs.histories, options.tolerance))
    found = find(inputs, usage)
    return summary(inputs, found, options.top)


JOB: Final = Job(
    "point-in-time",
    "decide each event anew by the ACLs of its time, and tell who had granted them",
    PointInTimeOptions,
    run,
    (
        TOP,
        Option(
            "tolerance",
            "tolerance",
            "by how many seconds an event's time may differ from when its ACLs were in force "
            "(default: 60)",
            zero_or_more,
            "SECONDS",
        ),
    ),
    needs=("history",),
)
