"""The fields that a gateway changes or refuses do not reach the cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from aclbroker.broker.backends.upstream.keys import FORWARDED
from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages import consumer_group_heartbeat as cgh
from aclbroker.protocol.messages import share_fetch as sf
from aclbroker.protocol.messages import streams_group_heartbeat as sgh
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.tags import has_unknown_tags, without_unknown_tags
from tests.gate.requests import filled
from tests.gateway.meddling import World
from tests.gateway.patched import PATCHED
from tests.memory_cluster import raw
from tests.memory_cluster.test_fetching import batch_now, new_topic
from tests.support.client import Client
from tests.support.tables import check_each

GROUP, LITERAL, ALLOW = 3, 3, 3
STREAMS_INVALID_TOPOLOGY = 130
SHARE_SESSION_NOT_FOUND = 122
TAGS = ((99, b"undeclared"),)


def check_regex(world: World, alice: Client, topics: tuple[str, str]) -> None:
    """Subscribe by an expression that matches one topic of alice's and a hidden one."""
    visible, _ = topics
    request = cgh.ConsumerGroupHeartbeatRequest("group", "member", subscribed_topic_regex="fetch.*")
    request.rebalance_timeout_ms, request.topic_partitions = 1000, []
    assert alice.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request).error_code == 0
    [sent] = world.requests(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    assert (sent.subscribed_topic_regex, sent.subscribed_topic_names) == (None, [visible])


def check_source_regex(world: World, alice: Client, _topics: tuple[str, str]) -> None:
    """Send a topology with an expression for its sources."""
    part = sgh.Subtopology("0", source_topic_regex=["fetch.*"])
    request = sgh.StreamsGroupHeartbeatRequest("group", "member", topology=sgh.Topology(0, [part]))
    answer = alice.ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request)
    assert answer.error_code == STREAMS_INVALID_TOPOLOGY
    assert not world.requests(ApiKey.STREAMS_GROUP_HEARTBEAT)


def check_share_epoch(world: World, alice: Client, _topics: tuple[str, str]) -> None:
    """Continue a share session that no request of the connection has begun."""
    request = sf.ShareFetchRequest("group", "member", 1)
    answer = alice.ask(ApiKey.SHARE_FETCH, 1, request)
    assert answer.error_code == SHARE_SESSION_NOT_FOUND
    assert not world.requests(ApiKey.SHARE_FETCH)


CHECKS: dict[str, Callable[[World, Client, tuple[str, str]], None]] = {
    "ConsumerGroupHeartbeat subscribed_topic_regex": check_regex,
    "StreamsGroupHeartbeat topology.subtopologies.source_topic_regex[]": check_source_regex,
    "ShareFetch share_session_epoch": check_share_epoch,
}


def test_every_patched_field_has_a_check() -> None:
    assert set(CHECKS) == set(PATCHED)


@pytest.fixture
def topics(world: World) -> tuple[str, str]:
    """A topic that alice may describe, and one that she may not; she may also read a group."""
    admin = raw.admin(world.gateway)
    visible, hidden = new_topic(admin), new_topic(admin)
    group = AclCreation(GROUP, "group", LITERAL, "User:alice", "*", raw.READ, ALLOW)
    assert admin.create(raw.acl("alice", raw.DESCRIBE, visible), group) == [0, 0]
    return visible, hidden


@pytest.mark.parametrize("field", PATCHED)
def test_a_patched_field_does_not_reach_the_cluster(
    world: World, topics: tuple[str, str], field: str
) -> None:
    CHECKS[field](world, raw.logged_in(world.gateway, "alice"), topics)


def test_an_unknown_fetch_session_is_not_ended_upstream(world: World) -> None:
    admin = raw.admin(world.gateway)
    topic = new_topic(admin)
    raw.write(admin, topic, batch_now(b"one"))
    answer = raw.fetched(admin, 12, raw.request({topic: [raw.partition(0)]}, (77, -1)))
    assert answer.error_code == 0
    assert [sent.session_id for sent in world.requests(ApiKey.FETCH)] == [0]


def test_a_metadata_without_the_right_to_create_is_forwarded_without_creation(
    world: World, topics: tuple[str, str]
) -> None:
    visible, _ = topics
    admin = raw.admin(world.gateway)
    assert admin.create(raw.acl("alice", raw.DESCRIBE, "missing")) == [0]
    alice = raw.logged_in(world.gateway, "alice")
    asked = APIS[ApiKey.METADATA].request
    struct = type(filled(ApiKey.METADATA, ["name"]).topics[0])
    request = asked([struct(name=visible), struct(name="missing")])
    answer = alice.ask(ApiKey.METADATA, 1, request)
    assert {topic.name: topic.error_code for topic in answer.topics} == {visible: 0, "missing": 29}
    creating = [sent for sent in world.requests(ApiKey.METADATA) if sent.allow_auto_topic_creation]
    named = {topic.name for sent in creating for topic in sent.topics or ()}
    assert "missing" not in named


def tagged(item: Any) -> None:
    """Give a message, and each struct inside of it, an undeclared tagged field."""
    item.unknown_tags = TAGS
    for value in (getattr(item, field.name) for field in dataclasses.fields(item)):
        for entry in value if isinstance(value, list | tuple) else (value,):
            if dataclasses.is_dataclass(entry):
                tagged(entry)


def test_undeclared_tagged_fields_are_dropped_from_each_struct_of_each_request() -> None:
    def check(key: int) -> None:
        api = APIS[key]
        version = api.versions[-1]
        if api.flexible is None or version < api.flexible:
            return
        request = filled(key, ["name"])
        before = encode(request, version)
        tagged(request)
        arrived = decode(api.request, version, encode(request, version))
        assert has_unknown_tags(arrived)
        assert encode(without_unknown_tags(arrived), version) == before
        assert has_unknown_tags(arrived)

    check_each(FORWARDED, check)


@pytest.mark.parametrize(
    "key", [ApiKey.PRODUCE, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.OFFSET_FETCH]
)
def test_undeclared_tagged_fields_never_reach_the_cluster(world: World, key: int) -> None:
    admin = raw.admin(world.gateway)
    version = APIS[key].versions[-1]
    topic = new_topic(admin)
    request = filled(key, [topic])
    tagged(request)
    if key == ApiKey.PRODUCE:
        request.acks, request.topic_data[0].topic_id = -1, raw.id_of(admin, topic)
    # The gateway remembers small requests that clients send again and again.
    for _ in range(2):
        admin.ask(key, version, request)
    assert len(world.requests(key)) >= 2
    assert not any(b"undeclared" in stream for stream in world.proxy.sent)
