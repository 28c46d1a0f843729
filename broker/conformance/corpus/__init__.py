"""The requests: for every API key one or more cases, in the order in which they are sent."""

from __future__ import annotations

from aclbroker.broker.conformance.case import Case
from aclbroker.broker.conformance.corpus import (
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
from aclbroker.broker.conformance.resources import TopicIds


def corpus(ids: TopicIds) -> list[Case]:
    """Return all cases; `ids` are the topics' on the broker that they are for."""
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
