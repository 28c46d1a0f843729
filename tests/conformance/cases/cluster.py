"""What a broker without topics tells of itself."""

from __future__ import annotations

import uuid

from tests.conformance.cases.scenario import Scenario, Step, as_admin, as_alice
from tests.conformance.requests import (
    DESCRIBE,
    acl,
    create,
    describe_cluster,
    metadata,
)

EVERY = tuple(range(14))
"""The versions of Metadata."""
TOPICS = tuple({"name": name, "topic_id": None} for name in ("seen", "unseen", "bad name", "", "."))
TOPIC_IDS = tuple({"name": None, "topic_id": uuid.UUID(int=number)} for number in (1, 2))


def cluster() -> list[Scenario]:
    """Return Metadata of no topic, of topics that do not exist and of all, and DescribeCluster."""
    rights = metadata(
        include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    topics = metadata(TOPICS, include_topic_authorized_operations=True)
    may_describe = create(acl(name="seen", principal="User:alice", operation=DESCRIBE))
    granted = (Step("admin", may_describe, 3), *as_alice(topics))
    return [
        Scenario("Metadata of no topic", as_admin(metadata()), EVERY[1:]),
        Scenario("Metadata of all topics", as_admin(metadata(None)), EVERY[1:]),
        Scenario("Metadata of all topics at version 0", as_admin(metadata()), (0,)),
        Scenario("Metadata with rights", (*as_admin(rights), *as_alice(rights)), (8, 9, 10)),
        Scenario("Metadata of topics", (*as_admin(topics), *as_alice(topics)), EVERY[4:]),
        Scenario("Metadata of topics that alice may describe", granted, EVERY[4:]),
        Scenario("Metadata by topic id", as_admin(metadata(TOPIC_IDS)), EVERY[12:]),
        Scenario("DescribeCluster by alice", as_alice(describe_cluster()), (0, 1, 2)),
        *(
            Scenario(
                f"DescribeCluster of endpoint {kind}", as_admin(describe_cluster(kind)), (0, 1, 2)
            )
            for kind in (0, 1, 2, 3)
        ),
    ]
