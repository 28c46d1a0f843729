"""A session of another connection is out of reach, before a cluster in memory and a real Kafka."""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
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
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.memory_cluster import raw
from tests.memory_cluster.test_fetching import batch_now, new_topic
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.gateway import gateway_before
from tests.support.process import wait_for

GROUP, GROUP_CONFIG = 3, 32
LITERAL, ALLOW = 3, 3
INVALID_REQUEST, SHARE_SESSION_NOT_FOUND = 42, 122
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


def led_topic(admin: Client) -> str:
    """Create a topic, and wait until it has a leader."""
    topic = new_topic(admin)
    asked = MetadataRequest([MetadataRequestTopic(name=topic)], False)

    def is_led() -> bool | None:
        [found] = admin.ask(ApiKey.METADATA, 12, asked).topics
        return True if not found.error_code and not found.partitions[0].error_code else None

    wait_for("a leader", is_led, WITHIN_S)
    return topic


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


def acquired(answer: Any) -> list[range]:
    """Return the offsets of acquired records."""
    return [
        range(records.first_offset, records.last_offset + 1)
        for topic in answer.responses
        for partition in topic.partitions
        for records in partition.acquired_records
    ]


@dataclass
class Scene:
    """A share group that alice and bob may read, with a topic that alice alone may read."""

    admin: Client
    alice: Client
    bob: Client
    group: str
    topic: str
    epoch: int = 0
    last: int = -1
    """The offset of the last record."""

    def begin(self) -> None:
        """Let alice begin a share session, and acquire a record."""
        join(self.alice, self.group, self.topic)
        answer = fetch(self.alice, self.group, 0, raw.id_of(self.admin, self.topic))
        assert answer.error_code == 0
        self.epoch = 1
        # The group may begin at the end of the topic, wherever that is by then.
        wait_for("a record", self.written_and_acquired, WITHIN_S)
        self.write()

    def written_and_acquired(self) -> list[range] | None:
        """Write a record; return what alice acquires then, if anything."""
        self.write()
        return self.next_acquired() or None

    def write(self) -> None:
        """Write a record."""
        answer = raw.write(self.admin, self.topic, batch_now(b"record"))
        assert answer.error_code == 0
        self.last = answer.base_offset

    def next_acquired(self) -> list[range]:
        """Return the offsets of records that alice acquires by the next request of her session."""
        answer = fetch(self.alice, self.group, self.epoch)
        assert answer.error_code == 0
        self.epoch += 1
        return acquired(answer)

    def acquires_last(self) -> bool:
        """Return whether alice acquires the last record."""
        offsets: list[range] = []

        def is_there() -> bool | None:
            offsets.extend(self.next_acquired())
            return True if any(self.last in each for each in offsets) else None

        return wait_for("the last record", is_there, WITHIN_S)


@pytest.fixture
def scene(gateway: Broker) -> Scene:
    admin = raw.admin(gateway)
    topic = led_topic(admin)
    group = new_group(admin, "alice", "bob")
    assert admin.create(raw.acl("alice", raw.READ, topic)) == [0]
    alice, bob = raw.logged_in(gateway, "alice"), raw.logged_in(gateway, "bob")
    return Scene(admin, alice, bob, group, topic)


def test_a_session_of_another_connection_acquires_no_records_without_the_right(
    scene: Scene,
) -> None:
    scene.begin()
    assert fetch(scene.bob, scene.group, scene.epoch).error_code == SHARE_SESSION_NOT_FOUND
    assert scene.acquires_last()


def test_a_session_that_another_client_has_begun_anew_is_unknown(scene: Scene) -> None:
    of_bob = led_topic(scene.admin)
    assert scene.admin.create(raw.acl("bob", raw.READ, of_bob)) == [0]
    assert fetch(scene.bob, scene.group, 0, raw.id_of(scene.admin, of_bob)).error_code == 0
    scene.begin()
    assert fetch(scene.bob, scene.group, scene.epoch).error_code == SHARE_SESSION_NOT_FOUND
    assert scene.acquires_last()


def test_a_request_that_begins_no_session_does_not_take_one_over(scene: Scene) -> None:
    of_bob = led_topic(scene.admin)
    assert scene.admin.create(raw.acl("bob", raw.READ, of_bob)) == [0]
    scene.begin()
    # A request that begins a session may not acknowledge records.
    acknowledged = [sf.AcknowledgementBatch(0, 0, [1])]
    topic_id = raw.id_of(scene.admin, of_bob)
    topic = sf.FetchTopic(topic_id, [sf.FetchPartition(0, acknowledged)])
    begins = sf.ShareFetchRequest(scene.group, MEMBER, 0, topics=[topic])
    assert scene.bob.ask(ApiKey.SHARE_FETCH, 1, begins).error_code == INVALID_REQUEST
    assert fetch(scene.bob, scene.group, scene.epoch).error_code == SHARE_SESSION_NOT_FOUND
