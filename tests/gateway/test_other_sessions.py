"""A session of another connection is out of reach, before a cluster in memory and a real Kafka."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import share_fetch as sf
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aclbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.memory_cluster import raw
from tests.memory_cluster.test_fetching import batch_now, new_topic
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.gateway import gateway_before

GROUP, GROUP_CONFIG = 3, 32
LITERAL, ALLOW = 3, 3
SHARE_SESSION_NOT_FOUND = 122
MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"
WITHIN_S = 30.0
"""A coordinator has loaded a group by then, and has found its first offset."""


@pytest.fixture(params=["memory", "kafka"])
def gateway(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A gateway before either cluster."""
    if request.param == "kafka":
        yield request.getfixturevalue("before_kafka")
        return
    memory = request.getfixturevalue("memory")
    broker = gateway_before(memory.listeners["PLAINTEXT"], tmp_path)
    yield broker
    broker.terminate()


def new_group(admin: Client, *users: str) -> str:
    """Return a share group that users may read, and which begins with the earliest records."""
    group = f"share-{uuid.uuid4().hex}"
    acls = [AclCreation(GROUP, group, LITERAL, f"User:{u}", "*", raw.READ, ALLOW) for u in users]
    assert not any(admin.create(*acls))
    config = AlterableConfig("share.auto.offset.reset", 0, "earliest")
    change = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_CONFIG, group, [config])])
    answer = admin.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change)
    assert [each.error_code for each in answer.responses] == [0]
    return group


def join(client: Client, group: str, topic: str) -> None:
    """Join a share group, as soon as it has a coordinator, and wait for an assignment."""
    request = ShareGroupHeartbeatRequest(group, MEMBER, 0, None, [topic])
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(group))
        answer = client.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
        if not answer.error_code and answer.assignment and answer.assignment.topic_partitions:
            return
    raise AssertionError(answer)


def fetch(client: Client, group: str, epoch: int, topic_id: bytes | None = None) -> Any:
    """Send a ShareFetch of the member, which names a topic or continues its session."""
    topics = [sf.FetchTopic(topic_id, [sf.FetchPartition(0)])] if topic_id else []
    limits = 100, 1, 1 << 20, 100, 100
    request = sf.ShareFetchRequest(group, MEMBER, epoch, *limits, topics=topics)
    return client.ask(ApiKey.SHARE_FETCH, 1, request)


def acquired(answer: Any) -> list[tuple[int, int]]:
    """Return the offsets of acquired records, with the number of deliveries."""
    return [
        (records.first_offset, records.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for records in partition.acquired_records
    ]


def test_records_are_not_acquired_by_a_session_of_another_connection_without_the_right(
    gateway: Broker,
) -> None:
    admin = raw.admin(gateway)
    topic = new_topic(admin)
    group = new_group(admin, "alice", "bob")
    assert admin.create(raw.acl("alice", raw.READ, topic)) == [0]
    raw.write(admin, topic, batch_now(b"first"))
    alice, bob = raw.logged_in(gateway, "alice"), raw.logged_in(gateway, "bob")
    join(alice, group, topic)
    answer, epoch = fetch(alice, group, 0, raw.id_of(admin, topic)), 1
    deadline = time.monotonic() + WITHIN_S
    while not acquired(answer) and time.monotonic() < deadline:
        answer, epoch = fetch(alice, group, epoch), epoch + 1
    assert acquired(answer) == [(0, 1)]
    raw.write(admin, topic, batch_now(b"second"))
    # Bob may read the group, but not the topic.
    assert fetch(bob, group, epoch).error_code == SHARE_SESSION_NOT_FOUND
    assert acquired(fetch(alice, group, epoch)) == [(1, 1)]
