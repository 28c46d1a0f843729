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

from typing import Final

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
from aclbroker.pipeline.jobs.recommend.options import RecommendOptions


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
