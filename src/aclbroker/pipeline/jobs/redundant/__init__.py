"""Which ACLs others make superfluous, whatever is asked, and which contradict one another.

What is covered follows from the ACLs alone (`pipeline.analysis.redundancy`), so no log is needed;
if there is one, the proposal is replayed as well. Contradictions are reported, and left as they
are: a person has to say which of the two sides was meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import TOP, Job
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class RedundantOptions:
    """``top``: how many rows the tables of the summary show."""

    top: int = 20


def run(inputs: Inputs, options: RedundantOptions | None = None) -> JobResult:
    """Return the ACLs that can go for others, and the ALLOWs that DENYs take back.

    Writes both as tables, the ACLs without the covered ones, and the commands that remove these.
    Raises InputError if there are no ACLs.
    """
    from aclbroker.pipeline.jobs.redundant.find import find
    from aclbroker.pipeline.jobs.redundant.summary import summary

    options = options or RedundantOptions()
    return summary(find(inputs), options.top)


JOB: Final = Job(
    "redundant",
    "find ACLs that others cover, duplicates and contradictions",
    RedundantOptions,
    run,
    (TOP,),
    needs=("acls",),
)
