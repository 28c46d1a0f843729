"""Which ACLs can go: those that nothing in the log needed, all together, with two proofs.

Decisions are those under the current rules (`pipeline.replay`), not the recorded ones: an ACL that
the log never names as the reason may be one of two that allow the same, and of these one has to
stay. Events of super users, and of broker users on their listener, need no ACL and count for none.

The files are the ACLs that remain and the commands that remove the others. Replayed under what
remains, every event of the log is decided as it is now; and a comparison of all requests shows that
none becomes allowed that is denied now. What is closed, and was not used, is told.
"""

from __future__ import annotations

from typing import Final

from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import (
    MAX_DRIFT,
    MAX_QUARANTINED,
    MIN_COVERAGE,
    TOP,
    Job,
    Option,
)
from aclbroker.pipeline.interface.result import JobResult
from aclbroker.pipeline.jobs.unused.keeping import kept_principals, kept_resources
from aclbroker.pipeline.jobs.unused.options import UnusedOptions


def run(inputs: Inputs, options: UnusedOptions | None = None) -> JobResult:
    """Return the ACLs that can go, and write the table, the ACLs that remain, and the commands.

    A cluster is left out if its log has no allowed event. The same holds for less coverage, more
    drift, or more quarantined lines than the options allow. Raises InputError if no cluster is
    left, or if there are no ACLs.
    """
    from aclbroker.pipeline.jobs.unused.find import find
    from aclbroker.pipeline.jobs.unused.summary import summary

    options = options or UnusedOptions()
    return summary(inputs, find(inputs, options), options)


JOB: Final = Job(
    "unused",
    "find the ACLs that can go, with the proof that nothing opens",
    UnusedOptions,
    run,
    (
        Option(
            "no-filtering",
            "filtering",
            "do not count as use what only filtered an answer, as when a client lists all topics",
            flag=False,
        ),
        Option(
            "keep",
            "keep",
            "leave the ACLs of this principal alone, such as those for disaster recovery; * stands "
            "for any characters, @FILE for a list; may be given several times",
            kept_principals,
            "PRINCIPAL",
            many=True,
        ),
        Option(
            "keep-resource",
            "keep_resources",
            "leave the ACLs on this resource alone, such as topic:dr.*, in the same way",
            kept_resources,
            "TYPE:NAME",
            many=True,
        ),
        Option("by-principal", "by_principal", "list the ACLs by principal, not by resource"),
        MAX_DRIFT,
        MIN_COVERAGE,
        MAX_QUARANTINED,
        TOP,
    ),
    needs=("acls",),
    looks_back=True,
)
