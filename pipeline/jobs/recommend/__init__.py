"""The smallest set of ACLs that still allows everything that was used, proven by a replay.

What was used are the questions of the log that the current rules allow, whatever they allowed when
they were asked; of a cluster whose rules are not given, those that were recorded as allowed. Super
users, and broker users on their listener, need no ACL.

Each principal gets one ACL for each operation and resource, without operations that others imply,
each within what the current rules allow; of a session with several principals, the first to whom
they allow it. DENYs are kept where they hold for something granted. So nothing is allowed that is
not allowed now, asked or not, which a comparison of both sets for all requests proves. What is
allowed now and would not be is listed, too. Where resources without ACLs are open to everyone,
those that were used get ACLs, and so are closed to all others.

If it is asked for, `pipeline.analysis.prefixes` finds PREFIXED ACLs for several names. Nothing that
was asked and denied becomes allowed by them. What else they open is listed, and how many existing
names are of it is their price.

Whether a principal may write to *any* topic (KIP-679) is no question about one resource: it follows
from the ACLs for what was written. Where it does not, the narrowest current ALLOW is kept for it.

The ACLs may be a Kafka's, or hosts in CIDR notation may be subnets though nobody said so: nothing
opens in these cases, either.

Tasks do this for some principals each (`pipeline.jobs.recommend.part`). The driver has the ACLs
packed, and the policy and the commands are written one principal after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.job import (
    MAX_DRIFT,
    MAX_QUARANTINED,
    MIN_COVERAGE,
    Job,
    Option,
    zero_or_more,
)
from aclbroker.pipeline.interface.result import JobResult


@dataclass(frozen=True, slots=True)
class RecommendOptions:
    """The options of the job.

    - ``prefixes``: recommend PREFIXED ACLs in place of several names, which may open other names; a
      ``maximum_price`` above 0 does so, too
    - ``minimum_names``, ``minimum_length``, ``maximum_price``, ``any_prefix``: the limits of such
      prefixes, see `pipeline.analysis.prefixes.PrefixOptions`
    - ``hosts``: name the hosts of principals that came from at most ``most_hosts`` hosts
    - ``max_drift``: leave out a cluster if more than this percentage of its events was decided
      otherwise than its rules decide
    - ``min_coverage``: leave out a cluster if less than this percentage of its logged hours has
      allowed events
    - ``max_quarantined``: leave out a cluster if more than this percentage of its log's lines is in
      quarantine
    - ``top``: the number of rows in the tables of the report

    Raises ValueError for a number below what is sensible.
    """

    prefixes: bool = False
    minimum_names: int = 3
    minimum_length: int = 4
    maximum_price: int = 0
    any_prefix: bool = False
    hosts: bool = False
    most_hosts: int = 3
    max_drift: float = 1.0
    min_coverage: float = 100.0
    max_quarantined: float = 10.0
    top: int = 20

    def __post_init__(self) -> None:
        self.of_prefixes()
        if self.most_hosts < 1:
            raise ValueError(f"most_hosts must be at least 1, not {self.most_hosts}")

    def of_prefixes(self) -> PrefixOptions | None:
        """Return the options of prefixes; None if there are to be none."""
        found = PrefixOptions(
            self.minimum_names, self.minimum_length, self.maximum_price, self.any_prefix
        )
        return found if self.prefixes or self.maximum_price else None


def run(inputs: Inputs, options: RecommendOptions | None = None) -> JobResult:
    """Return the recommendation, and write the ACLs and the prefixes that were considered.

    A cluster is left out if its log has no allowed event. The same holds for less coverage, more
    drift, or more quarantined lines than the options allow. Raises InputError if no cluster is
    left.
    """
    from aclbroker.pipeline.jobs.recommend.find import find
    from aclbroker.pipeline.jobs.recommend.summary import summary

    options = options or RecommendOptions()
    return summary(inputs, find(inputs, options), prefixes=options.of_prefixes(), top=options.top)


JOB: Final = Job(
    "recommend",
    "find the smallest set of ACLs that allows what was used",
    RecommendOptions,
    run,
    (
        Option("hosts", "hosts", "name the hosts of principals that came from at most three"),
        Option(
            "prefixes",
            "prefixes",
            "let PREFIXED ACLs stand for several names, and tell what else they open",
        ),
        Option(
            "max-price",
            "maximum_price",
            "as --prefixes; how many other existing names one may newly allow (default: 0)",
            zero_or_more,
            "N",
        ),
        MAX_DRIFT,
        MIN_COVERAGE,
        MAX_QUARANTINED,
    ),
    needs=("acls",),
)
