"""kafka-consumer-groups.sh on a cluster in memory, with no more rights than it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from aclbroker.testing import AclBroker
from tests.clients.acl_command import Commands
from tests.memory_cluster.rights import grant, rights, was_enough
from tests.memory_cluster.toolbox import Toolbox

COMMAND = "consumer-groups"
WITHIN = 30
HOUR_MS = 3_600_000
GROUP = "shop"
QUIET = {"log_level": 0}

SEEING = [*rights("group", GROUP, "DESCRIBE"), *rights("topic", "orders", "DESCRIBE")]
RESETTING = [*rights("group", GROUP, "READ"), *rights("topic", "orders", "READ")]


class Setting(NamedTuple):
    """How many nodes there are, and the protocol of the group."""

    nodes: int
    protocol: str


SETTINGS = [Setting(1, "classic"), Setting(3, "consumer")]


@pytest.fixture(params=SETTINGS, ids=[each.protocol for each in SETTINGS])
def setting(request: pytest.FixtureRequest) -> Setting:
    found: Setting = request.param
    return found


@pytest.fixture
def broker(setting: Setting) -> Iterator[AclBroker]:
    """A cluster with a record of each of the last ten hours, by turns in both partitions."""
    interval = {"group.consumer.heartbeat.interval.ms": "500"}
    topics = {"orders": 2, "payments": 1}
    with AclBroker(topics=topics, nodes=setting.nodes, properties=interval) as running:
        producer = Producer(running.client_config("admin") | QUIET)
        now_ms = round(time.time() * 1000)
        for number in range(10):
            at_ms = now_ms - (10 - number) * HOUR_MS
            producer.produce("orders", b"%d" % number, partition=number % 2, timestamp=at_ms)
        assert producer.flush(WITHIN) == 0
        yield running


@pytest.fixture
def tools(commands: Commands, broker: AclBroker, tmp_path: Path) -> Toolbox:
    return Toolbox(commands, broker, tmp_path, "ops")


def member(broker: AclBroker, protocol: str, topic: str = "orders", count: int = 2) -> Consumer:
    """Return a member of the group that has been given all partitions of a topic."""
    config = {"group.id": GROUP, "group.protocol": protocol, "client.id": "till"}
    consumer = Consumer(broker.client_config("admin") | QUIET | config)
    consumer.subscribe([topic])
    end = time.monotonic() + WITHIN
    while len(consumer.assignment()) < count:
        assert time.monotonic() < end
        consumer.poll(0.05)
    return consumer


def commit(consumer: Consumer, *offsets: int) -> None:
    places = [TopicPartition("orders", index, offset) for index, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)


def had_come_to(broker: AclBroker, protocol: str, *offsets: int) -> None:
    """Let a group be that committed offsets, and has no member now."""
    consumer = member(broker, protocol)
    commit(consumer, *offsets)
    consumer.close()


def committed(broker: AclBroker) -> list[int]:
    """Return the offsets of the group in orders."""
    reader = Consumer(broker.client_config("admin") | QUIET | {"group.id": GROUP})
    places = [TopicPartition("orders", index) for index in range(2)]
    try:
        return [each.offset for each in reader.committed(places, timeout=WITHIN)]
    finally:
        reader.close()


def test_groups_are_listed_to_who_may_describe_them(broker, tools, setting):
    consumer = member(broker, setting.protocol)
    assert tools.runs(COMMAND, "--list").split() == []
    needed = rights("group", GROUP, "DESCRIBE")
    grant(broker, "ops", needed)
    assert tools.runs(COMMAND, "--list").split() == [GROUP]
    assert tools.table(COMMAND, "--list", "--state") == [[GROUP, "Stable"]]
    assert tools.table(COMMAND, "--list", "--state", "empty,dead") == []
    for kind in ("classic", "consumer"):
        of_kind = [[GROUP, kind.title()]] if kind == setting.protocol else []
        assert tools.table(COMMAND, "--list", "--type", kind) == of_kind
    consumer.close()
    assert tools.table(COMMAND, "--list", "--state", "Empty") == [[GROUP, "Empty"]]
    assert broker.denials() == []


def test_a_group_is_described_to_who_may_describe_it_and_its_offsets_who_may_its_topics(
    broker, tools, setting
):
    consumer = member(broker, setting.protocol)
    commit(consumer, 2, 3)
    describe = (COMMAND, "--describe", "--group", GROUP)
    for what in ("--members", "--offsets", "--state"):
        assert "GroupAuthorizationException" in tools.complains(*describe, what)
    assert f"needs DESCRIBE on GROUP {GROUP}" in str(broker.denials()[-1])
    of_group, of_topic = SEEING[:1], SEEING[1:]
    broker.forget_denials()
    grant(broker, "ops", of_group)
    assert "TopicAuthorizationException" in tools.complains(*describe, "--offsets")
    if setting.protocol == "classic":
        [told] = tools.table(*describe, "--members")
        assert (told[0], told[-2:]) == (GROUP, ["till", "2"])
    else:
        # A description of the newer kind has topics, and is refused as a whole (KIP-848).
        assert "TopicAuthorizationException" in tools.complains(*describe, "--members")
    assert "needs DESCRIBE on TOPIC orders" in str(broker.denials()[-1])
    grant(broker, "ops", of_topic)
    broker.forget_denials()
    [state] = tools.table(*describe, "--state", "--verbose")
    strategy = "range" if setting.protocol == "classic" else "uniform"
    assert (state[0], state[3:5]) == (GROUP, [strategy, "Stable"])
    assert state[-1] == "1"
    [told] = tools.table(*describe, "--members")
    assert (told[0], told[-2:]) == (GROUP, ["till", "2"])
    assert "orders:0,1" in tools.runs(*describe, "--members", "--verbose")
    rows = sorted(tools.table(*describe, "--offsets"))
    assert [row[1:6] for row in rows] == [
        ["orders", "0", "2", "5", "3"],
        ["orders", "1", "3", "5", "2"],
    ]
    assert {row[-1] for row in rows} == {"till"}
    assert len(tools.table(*describe, "--offsets", "--verbose")) == 2
    assert f"{GROUP} orders 1 3 5 2" in " ".join(
        tools.runs(COMMAND, "--describe", "--all-groups").split()
    )
    was_enough(broker, SEEING)
    consumer.close()
    assert "has no active members" in " ".join(tools.run(*describe, "--members")[1:])


def hours_ago(hours: float) -> str:
    then = datetime.fromtimestamp(time.time() - hours * 3600, UTC)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")


RESETS: dict[tuple[Any, ...], list[int]] = {
    ("--to-earliest",): [1, 0],
    ("--to-latest",): [5, 5],
    ("--to-offset", 4): [4, 4],
    ("--to-offset", 99): [5, 5],
    ("--shift-by", 1): [3, 4],
    ("--shift-by", -2): [1, 1],
    ("--by-duration", "PT5H30M"): [3, 2],
    ("--to-datetime", 5.5): [3, 2],
    ("--to-current",): [2, 3],
}
"""Where a group is put that had come to 2 and 3, of records from 1 and from 0 on, up to 5."""


def test_offsets_are_reset_in_all_ways_and_only_if_it_is_said(broker, tools, setting):
    had_come_to(broker, setting.protocol, 2, 3)
    admin = AdminClient(broker.client_config("admin") | QUIET)
    for deleted in admin.delete_records([TopicPartition("orders", 0, 1)]).values():
        deleted.result(WITHIN)
    grant(broker, "ops", RESETTING)
    reset = (COMMAND, "--reset-offsets", "--group", GROUP)
    back = (*reset, "--from-file", tools.file("back.csv", "orders,0,2\norders,1,3\n"), "--execute")
    for (option, *values), wanted in RESETS.items():
        given = [hours_ago(each) if option == "--to-datetime" else each for each in values]
        for topics in (("--topic", "orders"), ("--all-topics",)):
            plan = (*reset, *topics, option, *given)
            rows = [
                [GROUP, "orders", str(index), str(offset)] for index, offset in enumerate(wanted)
            ]
            assert sorted(tools.table(*plan, "--dry-run")) == rows, plan
            assert committed(broker) == [2, 3]
        assert sorted(tools.table(*plan, "--execute")) == rows, plan
        assert committed(broker) == wanted
        tools.runs(*back)
        assert committed(broker) == [2, 3]
    tools.runs(*reset, "--topic", "orders:1", "--to-earliest", "--execute")
    assert committed(broker) == [2, 0]
    exported = tools.runs(*reset, "--all-topics", "--to-current", "--dry-run", "--export")
    assert sorted(exported.split()) == ["orders,0,2", "orders,1,0"]
    was_enough(broker, RESETTING)


def test_a_reset_needs_reading_and_to_look_what_it_would_do_describing(broker, tools, setting):
    had_come_to(broker, setting.protocol, 2, 3)
    latest = (COMMAND, "--reset-offsets", "--group", GROUP, "--topic", "orders", "--to-latest")
    grant(broker, "ops", SEEING)
    assert len(tools.table(*latest, "--dry-run")) == 2
    was_enough(broker, SEEING)
    assert "GroupAuthorizationException" in tools.complains(*latest, "--execute")
    assert f"OffsetCommit needs READ on GROUP {GROUP}" in str(broker.denials()[-1])
    grant(broker, "ops", RESETTING[:1])
    assert "TopicAuthorizationException" in tools.complains(*latest, "--execute")
    assert "OffsetCommit needs READ on TOPIC orders" in str(broker.denials()[-1])
    assert committed(broker) == [2, 3]


def test_the_offsets_of_a_group_with_members_stay_and_of_a_new_one_are_made(broker, tools, setting):
    grant(broker, "ops", RESETTING)
    latest = (
        *(COMMAND, "--reset-offsets", "--group", GROUP, "--topic", "orders"),
        *("--to-latest", "--execute"),
    )
    assert len(tools.table(*latest)) == 2
    assert committed(broker) == [5, 5]
    consumer = member(broker, setting.protocol)
    commit(consumer, 2, 3)
    assert f"only be reset if the group '{GROUP}' is inactive" in tools.complains(*latest)
    assert committed(broker) == [2, 3]
    consumer.close()
    was_enough(broker, RESETTING)


def test_offsets_and_groups_are_deleted_by_who_may_delete_the_group(broker, tools, setting):
    consumer = member(broker, setting.protocol, "payments", 1)
    commit(consumer, 2, 3)
    of_offsets = (COMMAND, "--delete-offsets", "--group", GROUP, "--topic")
    of_group = (COMMAND, "--delete", "--group", GROUP)
    grant(broker, "ops", RESETTING)
    assert "GroupAuthorizationException" in tools.complains(*of_offsets, "orders:0")
    assert "GroupAuthorizationException" in tools.complains(*of_group)
    assert f"DeleteGroups needs DELETE on GROUP {GROUP}" in str(broker.denials()[-1])
    broker.forget_denials()
    broker.revoke(broker.grant("ops", "READ", group=GROUP))
    needed = [*rights("group", GROUP, "DELETE"), *rights("topic", "orders", "READ")]
    grant(broker, "ops", needed)
    assert "GroupNotEmptyException" in tools.complains(*of_group)
    [deleted] = tools.table(*of_offsets, "orders:0")[-1:]
    assert deleted == ["orders", "0", "Successful"]
    assert committed(broker)[1:] == [3]
    assert committed(broker)[0] < 0
    was_enough(broker, needed)
    subscribed = tools.complains(*of_offsets, "payments")
    assert "TopicAuthorizationException" in subscribed or "Topic authorization" in subscribed
    broker.grant("ops", "READ", topic="payments")
    assert "GroupSubscribedToTopicException" in tools.complains(*of_offsets, "payments")
    consumer.close()
    tools.runs(*of_offsets, "orders")
    assert all(offset < 0 for offset in committed(broker))
    assert "was successful" in tools.runs(COMMAND, "--delete", "--all-groups")
    assert tools.runs(COMMAND, "--list").split() == []
