"""Which ACLs can go: those that nothing in the log needed, all together, with two proofs.

Decisions are those under the current rules (`pipeline.replay`), not the recorded ones: an ACL that
the log never names as the reason may be one of two that allow the same, and of these one has to
stay. Events of super users, and of broker users on their listener, need no ACL and count for none.

The files are the ACLs that remain and the commands that remove the others. Replayed under what
remains, every event of the log is decided as it is now; and a comparison of all requests shows that
none becomes allowed that is denied now. What is closed, and was not used, is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from aclbroker.pipeline.jobs.unused.keeping import Keep, kept_principals, kept_resources


@dataclass(frozen=True, slots=True)
class UnusedOptions:
    """The options of the job: the events that count as use, and the clusters without a proposal.

    - ``filtering``: count decisions that only filtered an answer, or filled one in (level TRACE);
      then a client that lists all topics uses every ACL that shows it a topic
    - ``max_drift``: leave out a cluster if more than this percentage of its events was decided
      otherwise than its rules decide
    - ``min_coverage``: leave out a cluster if less than this percentage of its logged hours has
      allowed events
    - ``keep``, ``keep_resources``: the principals and resources whose ACLs stay
    - ``by_principal``: list the ACLs by principal, and not by resource
    - ``max_quarantined``: leave out a cluster if more than this percentage of its log's lines is in
      quarantine
    - ``top``: the number of rows in the tables of the summary
    """

    filtering: bool = True
    max_drift: float = 1.0
    min_coverage: float = 100.0
    keep: Sequence[Keep] = ()
    keep_resources: Sequence[Keep] = ()
    by_principal: bool = False
    max_quarantined: float = 10.0
    top: int = 20

    @property
    def keeps(self) -> list[Keep]:
        """All entries of the keep-list."""
        return [*self.keep, *self.keep_resources]


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
