"""Which ACLs can go: those that nothing in the log needed, all together, proven by a replay.

Decisions are those under the current rules (`pipeline.replay`), not the recorded ones: an ACL that
the log never names as the reason may be one of two that allow the same, and of these one has to
stay. Events of super users, and of broker users on their listener, need no ACL and count for none.

The files are the ACLs that remain and the commands that remove the others; replayed under what
remains, every event of the log is decided as it is now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import Job, Option
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class UnusedOptions:
    """What counts as use, and what may go.

    - ``filtering``: also decisions that only filtered an answer, or filled one in (level TRACE):
      with them, whoever lists all topics uses every ACL by which a topic is shown
    - ``unmatched_denies``: also remove DENYs that no event met
    """

    filtering: bool = True
    unmatched_denies: bool = False


def run(inputs: Inputs, options: UnusedOptions | None = None) -> JobResult:
    """Return which ACLs can go, and write the table, the ACLs that remain, and the commands.

    Raises InputError if there are no ACLs, or no allowed events in the log.
    """
    from aclbroker.pipeline.jobs.unused.find import find
    from aclbroker.pipeline.jobs.unused.summary import summary

    options = options or UnusedOptions()
    found = find(inputs, filtering=options.filtering, unmatched_denies=options.unmatched_denies)
    return summary(inputs, found)


JOB: Final = Job(
    "unused",
    "find the ACLs that can go, with the proof by a replay",
    UnusedOptions,
    run,
    (
        Option(
            "no-filtering",
            "filtering",
            "do not count as use what only filtered an answer, as when a client lists all topics",
            flag=False,
        ),
        Option("unmatched-denies", "unmatched_denies", "also remove DENYs that no event met"),
    ),
    needs=("acls",),
    looks_back=True,
)
