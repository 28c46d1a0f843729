"""The options of the job `unused`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aclbroker.pipeline.jobs.unused.keeping import Keep


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
