"""Share groups of a cluster in memory: several members, time, waits, rights that are revoked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from aclbroker.testing import AclBroker
from tests.memory_cluster.sharing import LONG_MS, TOPIC, Member, configured, connected, write

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
REFUSED, NO_GROUP, NO_SESSION, NOT_YOURS, UNKNOWN_MEMBER, FULL = 29, 30, 122, 121, 25, 81
NOT_COORDINATOR, NOT_LEADER = 16, 6


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    with AclBroker(topics={TOPIC: 4}) as started:
        configured(connected(started), auto_offset_reset="earliest")
        yield started


def sharers(broker: AclBroker, *names: str) -> list[Member]:
    """Members that have joined."""
    members = [Member(broker, name) for name in names]
    for member in members:
        assert member.beat().error_code == 0
    return members


def meanwhile(action: Callable[[], Any]) -> threading.Timer:
    """Do something while this thread waits for an answer."""
    timer = threading.Timer(0.3, action)
    timer.start()
    return timer


def test_what_one_member_has_no_other_gets_until_its_time_is_up(broker: AclBroker):
    one, two = sharers(broker, "one", "two")
    write(one.client, b"a", b"b")
    assert one.fetch() == [(0, 1, 1)]
    assert two.fetch() == []
    assert one.say(0, 1, RENEW, is_renew_ack=True) == 0
    broker.advance(29)
    assert two.fetch() == []
    assert one.say(0, 0, ACCEPT) == 0
    broker.advance(2)
    assert two.fetch() == [(1, 1, 2)]
    assert one.say(1, 1, ACCEPT) == NOT_YOURS
    assert two.say(1, 1, ACCEPT) == 0


def test_a_member_that_waits_gets_what_another_gives_back(broker: AclBroker):
    one, two = sharers(broker, "one", "two")
    write(one.client, b"a", b"b")
    assert one.fetch() == [(0, 1, 1)]
    assert two.fetch() == []
    timer = meanwhile(lambda: one.say(0, 1, REJECT, RELEASE))
    assert two.fetch(max_wait_ms=LONG_MS) == [(1, 1, 2)]
    timer.join()


def test_a_client_that_is_gone_gives_back_what_it_had(broker: AclBroker):
    one, two = sharers(broker, "one", "two")
    write(two.client, b"a")
    assert one.fetch() == [(0, 0, 1)]
    assert two.fetch() == []
    one.client.close()
    assert two.fetch(max_wait_ms=LONG_MS) == [(0, 0, 2)]


def test_a_record_that_fails_again_and_again_is_given_up_and_others_are_not(broker: AclBroker):
    [one] = sharers(broker, "one")
    write(one.client, *(b"%d" % n for n in range(8)))
    accepted: set[int] = set()
    deliveries = 0
    while found := one.fetch():
        deliveries += 1
        assert deliveries < 50
        offsets = [n for first, last, _ in found for n in range(first, last + 1)]
        # Who fails at one record gives back all that it has got with it.
        kind = RELEASE if 3 in offsets else ACCEPT
        for first, last, _ in found:
            assert one.say(first, last, kind) == 0
        accepted |= set(offsets) if kind == ACCEPT else set()
    assert accepted == set(range(8)) - {3}


def test_partitions_are_shared_out_evenly_and_stay_where_they_are(broker: AclBroker):
    one, two, three = (Member(broker, name) for name in ("one", "two", "three"))
    assert one.assigned() == [0, 1, 2, 3]
    second = two.assigned()
    first = one.assigned()
    assert len(first) == len(second) == 2
    assert sorted(first + second) == [0, 1, 2, 3]
    third = three.assigned()
    told = [one.assigned(), two.assigned()]
    kept = [told[0] or first, told[1] or second]
    assert set(kept[0]) <= set(first)
    assert set(kept[1]) <= set(second)
    assert sorted(kept[0] + kept[1] + third) == [0, 1, 2, 3]


def test_with_more_members_than_partitions_each_partition_is_several_members(broker: AclBroker):
    members = sharers(broker, *(f"m{n}" for n in range(10)))
    everyone = [index for member in members for index in member.assigned([TOPIC])]
    for member in members:
        member.member_epoch = 0
    everyone = [index for member in members for index in member.assigned()]
    assert set(everyone) == {0, 1, 2, 3}
    assert all(2 <= everyone.count(index) <= 3 for index in range(4))


def test_a_member_without_heartbeats_is_out(broker: AclBroker):
    one, two = sharers(broker, "one", "two")
    broker.advance(40)
    assert one.beat().error_code == 0
    broker.advance(10)
    assert one.assigned() == [0, 1, 2, 3]
    assert two.beat().error_code == UNKNOWN_MEMBER


def test_a_group_has_only_so_many_members():
    with AclBroker(topics={TOPIC: 1}, properties={"group.share.max.size": "2"}) as broker:
        one, two = sharers(broker, "one", "two")
        assert Member(broker, "three").beat().error_code == FULL
        assert one.beat().error_code == two.beat().error_code == 0


def test_only_so_many_records_are_in_flight(broker: AclBroker):
    [one] = sharers(broker, "one")
    configured(one.client, partition_max_record_locks="100")
    for _ in range(30):
        write(one.client, *(b"x" for _ in range(5)))
    assert one.fetch() == [(0, 99, 1)]
    assert one.fetch() == []
    assert one.say(5, 9, RELEASE) == 0
    assert one.fetch() == [(5, 9, 2)]
    assert one.say(0, 9, ACCEPT) == 0
    assert one.fetch() == [(100, 109, 1)]


def test_a_right_that_is_revoked_while_a_share_fetch_waits_holds(broker: AclBroker):
    admin = connected(broker)
    broker.grant("alice", "READ", group="workers")
    on_topic = broker.grant("alice", "READ", topic=TOPIC)
    alice = Member(broker, "m", "alice")
    alice.beat()
    assert alice.fetch() == []

    def change() -> None:
        broker.revoke(on_topic)
        write(admin, b"secret")

    timer = meanwhile(change)
    answer = alice.asks(max_wait_ms=LONG_MS)
    timer.join()
    [partition] = answer.responses[0].partitions
    assert (partition.error_code, list(partition.acquired_records)) == (REFUSED, [])
    assert bytes(partition.records or b"") == b""
    # It is part of the session all the same, and can be read when that is allowed again.
    broker.grant("alice", "READ", topic=TOPIC)
    assert alice.fetch() == [(0, 0, 1)]


def test_a_right_to_a_group_that_is_revoked_while_a_share_fetch_waits_holds(broker: AclBroker):
    admin = connected(broker)
    broker.grant("alice", "READ", topic=TOPIC)
    on_group = broker.grant("alice", "READ", group="workers")
    alice = Member(broker, "m", "alice")
    alice.beat()
    assert alice.fetch() == []

    def change() -> None:
        broker.revoke(on_group)
        write(admin, b"secret")

    timer = meanwhile(change)
    answer = alice.asks(max_wait_ms=LONG_MS)
    timer.join()
    assert {p.error_code for t in answer.responses for p in t.partitions} == {NO_GROUP}
    assert alice.asks().error_code == NO_GROUP


def test_a_topic_that_is_deleted_is_no_longer_shared(broker: AclBroker):
    one, two = sharers(broker, "one", "two")
    write(one.client, b"a")
    assert one.fetch() == [(0, 0, 1)]
    timer = meanwhile(
        lambda: two.client.ask(
            ApiKey.DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1000)
        )
    )
    answer = one.asks(max_wait_ms=LONG_MS)
    timer.join()
    [partition] = answer.responses[0].partitions
    assert partition.error_code == 100
    broker.create_topic(TOPIC, 1)
    write(one.client, b"b")
    [three] = sharers(broker, "three")
    assert three.fetch() == [(0, 0, 1)]


def test_a_share_group_is_one_nodes_business_and_a_partition_its_leaders():
    with AclBroker(topics={TOPIC: 1}, nodes=3) as broker:
        found = {member.beat().error_code: member for member in at_each_node(broker)}
        assert set(found) == {0, NOT_COORDINATOR}
        members = at_each_node(broker)
        answers = [member.asks() for member in members]
        partitions = [answer.responses[0].partitions[0] for answer in answers]
        wrong = [each for each in partitions if each.error_code == NOT_LEADER]
        assert len(wrong) == 2
        [leader] = {each.current_leader.leader_id for each in wrong}
        told = [answer.node_endpoints for answer in answers if answer.node_endpoints]
        assert [[node.node_id for node in nodes] for nodes in told] == [[leader], [leader]]
        at_leader = members[leader - 1]
        write(at_leader.client, b"a")
        assert at_leader.fetch(max_wait_ms=LONG_MS) == [(0, 0, 1)]
        other = members[leader % 3]
        assert other.say(0, 0, ACCEPT) == NOT_LEADER
        assert at_leader.say(0, 0, ACCEPT) == 0


def at_each_node(broker: AclBroker) -> list[Member]:
    """A member at each of three nodes."""
    return [Member(broker, f"m{node}", node=node) for node in range(3)]
