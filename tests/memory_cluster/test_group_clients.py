"""Groups of a cluster in memory, with clients that nobody here wrote, with rights, and on nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from aclbroker.broker.memory.topics import coordinator_of
from aclbroker.conformance.behaviour.stories.group_requests import (
    beat_until_rebalance,
    commit,
    heartbeat,
    join,
    stable,
    sync,
)
from aclbroker.conformance.behaviour.story import Scene, Story, Teller
from aclbroker.conformance.cluster import Cluster
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.heartbeat import HeartbeatRequest
from aclbroker.protocol.messages.join_group import JoinGroupRequestProtocol
from aclbroker.protocol.messages.leave_group import LeaveGroupRequest
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.offset_delete import OffsetDeleteRequest
from aclbroker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from aclbroker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from aclbroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.support.broker import Broker
from tests.support.client import Client

_COMMAND: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_SETTINGS: Final = {
    "super.users": "User:ANONYMOUS",
    "aclbroker.cluster": "memory",
    "aclbroker.catalog.topics": "orders:4,orders-eu:2,payments:2",
    "group.consumer.heartbeat.interval.ms": "100",
}
_PATIENCE_SECONDS: Final = 30
_MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAA"

StartBroker = Callable[..., Broker]


@pytest.fixture
def address(start_broker: StartBroker) -> str:
    return start_broker(_SETTINGS).listeners["PLAINTEXT"]


@contextmanager
def telling(address: str) -> Iterator[Teller]:
    """Yield a teller of group requests, whose group is called "group"."""
    with Client(address) as admin:
        offered = Cluster(admin).offered
        scene = Scene(offered, False, "member", lambda: Client(address), admin, lambda: None)
        teller = Teller(scene, Story(lambda _: None), "", {})
        try:
            yield teller
        finally:
            teller.close()


def until(what: Callable[[], Any]) -> Any:
    """Return what a function returns as soon as it is true."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        if result := what():
            return result
    raise TimeoutError("it did not happen in time")


def consumer_of(address: str, group_id: str, protocol: str, *topics: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group_id,
            "group.protocol": protocol,
            "client.id": "client",
        }
    )
    consumer.subscribe(list(topics))
    return consumer


def _has(consumer: Consumer, count: int) -> bool:
    consumer.poll(0.05)
    return len(consumer.assignment()) == count


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_consumers_share_out_what_an_expression_matches(address: str, protocol: str):
    consumers = [consumer_of(address, "group", protocol, "^orders.*") for _ in range(2)]

    def shares() -> list[int]:
        for consumer in consumers:
            consumer.poll(0.05)
        return [len(consumer.assignment()) for consumer in consumers]

    until(lambda: shares() == [3, 3])
    mine = [TopicPartition(each.topic, each.partition, 7) for each in consumers[0].assignment()]
    consumers[0].commit(offsets=mine, asynchronous=False)
    assert [each.offset for each in consumers[0].committed(mine)] == [7, 7, 7]
    # Nothing is answered to a client that nobody refers to any more.
    admin = AdminClient({"bootstrap.servers": address})
    group = admin.describe_consumer_groups(["group"])["group"].result(_PATIENCE_SECONDS)
    assert (group.state.name, len(group.members)) == ("STABLE", 2)
    assert {each.host for each in group.members} == {"/127.0.0.1"}
    consumers.pop().close()
    until(lambda: shares() == [6])
    consumers.pop().close()


def test_consumers_of_both_protocols_are_in_one_group(address: str):
    classic = consumer_of(address, "group", "classic", "orders")
    until(partial(_has, classic, 4))
    newer = consumer_of(address, "group", "consumer", "orders")

    def shares() -> list[int]:
        classic.poll(0.05)
        newer.poll(0.05)
        return [len(classic.assignment()), len(newer.assignment())]

    until(lambda: shares() == [2, 2])
    newer.close()
    until(partial(_has, classic, 4))
    classic.close()


async def test_consumers_of_aiokafka_are_in_one_group_with_others(address: str):
    options: Any = {"bootstrap_servers": address, "group_id": "group"}
    async with AIOKafkaConsumer("orders", **options) as first:
        assert len(first.assignment()) == 4
        async with AIOKafkaConsumer("orders", **options) as second:
            assert (len(first.assignment()), len(second.assignment())) == (2, 2)


def test_kafkas_command_for_groups_does_all_that_it_can(address: str, commands: Commands):
    def run(*arguments: str) -> str:
        words = ("--bootstrap-server", address, *arguments)
        return " ".join(commands.run(*words, tool=_COMMAND).out.split())

    for protocol in ("classic", "consumer"):
        consumer = consumer_of(address, protocol, protocol, "payments")
        until(partial(_has, consumer, 2))
        offset = TopicPartition("payments", 0, 0)
        consumer.commit(offsets=[offset], asynchronous=False)
        if protocol == "classic":
            assert "consumer" not in run("--list")
            assert "GroupSubscribedToTopicException" in run(
                "--delete-offsets", "--group", protocol, "--topic", "payments"
            )
            assert "GroupNotEmptyException" in run("--delete", "--group", protocol)
            consumer.close()
    assert "classic Empty" in run("--list", "--state")
    assert "consumer Consumer" in run("--list", "--type")
    described = run("--describe", "--all-groups", "--offsets")
    assert "classic payments 0 0 0 0 - - -" in described
    assert "consumer payments 0 0 0 0 " in described
    assert "payments:0,1 2 payments:0,1" in run(
        "--describe", "--group", "consumer", "--members", "--verbose"
    )
    assert "uniform Stable 1" in run("--describe", "--group", "consumer", "--state")
    consumer.close()
    reset = ("--reset-offsets", "--topic", "orders:1", "--to-earliest", "--execute")
    assert "new orders 1 0" in run(*reset, "--group", "new")
    assert "payments 0 Successful" in run(
        "--delete-offsets", "--group", "consumer", "--topic", "payments"
    )
    assert "was successful" in run("--delete", "--all-groups")
    assert run("--list") == ""


def test_an_expression_matches_what_its_member_may_describe(start_broker: StartBroker):
    broker = start_broker(_SETTINGS)
    with Client(broker.listeners["PLAINTEXT"]) as admin:
        allowed = [
            AclCreation(3, "group", 3, "User:alice", "*", 3, 3),
            AclCreation(3, "group", 3, "User:bob", "*", 8, 3),
            AclCreation(2, "orders-eu", 3, "User:alice", "*", 8, 3),
        ]
        assert admin.create(*allowed) == [0, 0, 0]
        ids = {raw.id_of(admin, name): name for name in ("orders", "orders-eu", "payments")}
    with telling(broker.listeners["PLAINTEXT"]) as teller:
        named = heartbeat(teller, "m", 0)
        matched = heartbeat(
            teller, "m", 0, subscribed_topic_names=None, subscribed_topic_regex="orders.*"
        )
    with Client(broker.listeners["SASL_PLAINTEXT"]) as alice:
        alice.login("alice", "alice-secret")
        answer = alice.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, matched)
        given = [ids[each.topic_id] for each in answer.assignment.topic_partitions]
        assert given == ["orders-eu"]
        answer = alice.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, named)
        assert answer.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        [group] = _described(alice)
        assert (group.error_code, len(group.members)) == (0, 1)
    with Client(broker.listeners["SASL_PLAINTEXT"]) as bob:
        bob.login("bob", "bob-secret")
        [group] = _described(bob)
        assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def _described(client: Client) -> Any:
    request = ConsumerGroupDescribeRequest(["group"])
    return client.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups


_OTHER_GROUPS: Final = (
    (ApiKey.STREAMS_GROUP_HEARTBEAT, 0, StreamsGroupHeartbeatRequest("g", _MEMBER)),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 0, StreamsGroupDescribeRequest(["g"])),
)


def test_streams_groups_are_refused_as_by_a_kafka_whose_feature_is_off(address: str):
    with Client(address) as client:
        for key, version, request in _OTHER_GROUPS:
            answer = client.ask(key, version, request)
            [told] = getattr(answer, "groups", None) or [answer]
            assert told.error_code == ErrorCode.UNSUPPORTED_VERSION, key
            assert "There are no streams groups in a cluster in memory" in told.error_message


def test_a_group_is_one_nodes_business(start_broker: StartBroker):
    broker = start_broker({**_SETTINGS, "aclbroker.nodes": "3"})
    nodes = broker.listeners["PLAINTEXT"].split(",")
    mine = coordinator_of("group", [1, 2, 3]) - 1
    right, wrong = nodes[mine], nodes[mine - 1]
    with telling(right) as there, Client(wrong) as client:
        member_id, generation = stable(there)
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("group", None, -1, None)])
        alive = HeartbeatRequest("group", generation, member_id)
        sent = commit(there, member_id, generation)
        leave = LeaveGroupRequest("group", member_id)
        described = DescribeGroupsRequest(["group"])
        deleted = DeleteGroupsRequest(["group"])
        codes = [
            client.ask(ApiKey.JOIN_GROUP, 9, join(there)).error_code,
            client.ask(ApiKey.SYNC_GROUP, 5, sync(there, member_id, generation)).error_code,
            client.ask(ApiKey.HEARTBEAT, 4, alive).error_code,
            client.ask(ApiKey.LEAVE_GROUP, 0, leave).error_code,
            client.ask(ApiKey.OFFSET_COMMIT, 9, sent).topics[0].partitions[0].error_code,
            client.ask(ApiKey.OFFSET_FETCH, 9, fetch).groups[0].error_code,
            client.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest("group", None)).error_code,
            client.ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest("group")).error_code,
            client.ask(ApiKey.DESCRIBE_GROUPS, 6, described).groups[0].error_code,
            client.ask(ApiKey.DELETE_GROUPS, 2, deleted).results[0].error_code,
            client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat(there, "m", 0)).error_code,
            _described(client)[0].error_code,
        ]
        assert codes == [ErrorCode.NOT_COORDINATOR] * len(codes)
        assert client.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups == []
        assert there.quietly(ApiKey.HEARTBEAT, alive).error_code == 0


def test_a_member_whose_client_goes_away_stays_until_its_time_is_up(address: str):
    with telling(address) as teller:
        first, generation = stable(teller)
        client = teller.client()
        second = client.ask(ApiKey.JOIN_GROUP, 9, join(teller)).member_id
        client.request(ApiKey.JOIN_GROUP, 9, join(teller, member_id=second))
        beat_until_rebalance(teller, first, generation)
        client.close()
        answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller, member_id=first))
        assert {each.member_id for each in answer.members} == {first, second}


def test_a_broker_that_ends_keeps_nobody_waiting(start_broker: StartBroker):
    broker = start_broker({**_SETTINGS, "group.initial.rebalance.delay.ms": "600000"})
    with telling(broker.listeners["PLAINTEXT"]) as teller:
        answered = teller.later(ApiKey.JOIN_GROUP, join(teller), version=3)
        until(lambda: _states(teller) == ["PreparingRebalance"])
        broker.terminate()
        assert answered().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def _states(teller: Teller) -> list[str]:
    groups = teller.quietly(ApiKey.LIST_GROUPS, ListGroupsRequest()).groups
    return [each.group_state for each in groups]


def test_a_member_offers_so_many_assignors_and_no_more(address: str):
    with telling(address) as teller:
        protocols = [JoinGroupRequestProtocol(f"p{n}", b"") for n in range(101)]
        answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller, protocols=protocols))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
