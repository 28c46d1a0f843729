"""The requests of the suite: at least one case for every API key, in the order of sending."""

from __future__ import annotations

from aclbroker.conformance.case import Case
from aclbroker.conformance.corpus import (
    cluster,
    configs,
    data,
    groups,
    member_groups,
    security,
    share_groups,
    topics,
    transactions,
)
from aclbroker.conformance.resources import TopicIds


def corpus(ids: TopicIds) -> list[Case]:
    """Return all cases; ``ids`` has the topic ids of the broker that they are sent to."""
    return [
        *data.cases(ids),
        *topics.cases(ids),
        *groups.cases(ids),
        *member_groups.cases(),
        *share_groups.cases(ids),
        *transactions.cases(),
        *configs.cases(),
        *cluster.cases(),
        *security.cases(),
    ]
