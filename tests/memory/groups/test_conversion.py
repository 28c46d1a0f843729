"""Groups with members of both protocols, and how groups change from one to the other."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import GroupError, Groups
from aclbroker.broker.memory.groups.consumer import HeartbeatAnswer, HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_protocol import (
    Malformed,
    assignment_bytes,
    read_assignment,
    read_subscription,
    read_topics,
    version_of,
)
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.protocol.errors import ErrorCode
from tests.memory.groups.support import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Member,
    groups_at,
    stable,
    still_clock,
    subscription,
)


@pytest.fixture
def clock() -> Clock:
    return still_clock()


@pytest.fixture
def groups(clock: Clock) -> Groups:
    return groups_at(clock)


def owning(*partitions: int, topics: Sequence[str] = ("t",)) -> dict[str, bytes]:
    """Return the protocols of a consumer that has partitions of t."""
    owned = struct.pack(f">ih1sI{len(partitions)}i", 1, 1, b"t", len(partitions), *partitions)
    return {"range": subscription(*topics, version=1) + (owned if partitions else bytes(4))}


def classic(groups: Groups, *partitions: int, **more: Any) -> Member:
    return Member(groups, protocols=owning(*partitions), **more)


def assigned_to(groups: Groups, clock: Clock, *members: Member) -> None:
    """Let members make a classic group, in which the first has all partitions of t."""
    for member in members:
        member.enter()
    clock.advance(0)
    for member in members[1:]:
        member.sync()
    members[0].sync({members[0].member_id: assignment_bytes({"t": [0, 1, 2, 3]}, 1)})


def heartbeat(groups: Groups, epoch: int = 0, **changes: Any) -> HeartbeatAnswer:
    request = HeartbeatRequest(GROUP, "new", epoch, client_host="/127.0.0.1")
    if epoch == 0:
        request = request._replace(rebalance_timeout_ms=REBALANCE_MS, names=("t",), owned={})
    return groups.consumer_heartbeat(request._replace(**changes), lambda found: found)


def kind_of(groups: Groups) -> tuple[str, str]:
    group = groups.table.find(GROUP)
    return group.kind, group.state_name


def partitions_of(member: Member) -> Sequence[int]:
    return read_assignment(member.synced[-1].assignment).get("t", ())


def rejoin(member: Member, *owned: int) -> None:
    """Let a member of the classic protocol join again and ask for its assignment."""
    member.protocols = owning(*owned)
    assert member.join() is not None
    assert member.joined[-1].code == 0
    member.sync()


def test_a_group_changes_with_the_first_member_of_the_newer_protocol_and_back(
    groups: Groups, clock: Clock
):
    old = classic(groups)
    assigned_to(groups, clock, old)
    answer = heartbeat(groups)
    assert (answer.epoch, answer.assignment) == (2, {})
    assert kind_of(groups) == ("consumer", "Reconciling")
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(old, 0, 1, 2, 3)
    assert (old.generation, len(partitions_of(old))) == (1, 2)
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "it has yet to give up"
    kept = partitions_of(old)
    rejoin(old, *kept)
    assert (old.generation, partitions_of(old)) == (2, kept)
    assert old.heartbeat() == 0
    given = heartbeat(groups, 2).assignment
    assert given is not None
    assert sorted([*kept, *given[groups.topics.id_of("t")]]) == [0, 1, 2, 3]
    assert kind_of(groups) == ("consumer", "Stable")
    heartbeat(groups, -1)
    assert kind_of(groups) == ("classic", "PreparingRebalance")
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join() is not None
    assert old.joined[-1].leader == old.member_id
    assert old.generation == 3


def test_who_waits_for_a_rebalance_is_told_to_join_again_when_the_group_changes(
    groups: Groups, clock: Clock
):
    first, second = classic(groups), classic(groups)
    assigned_to(groups, clock, first, second)
    first.join()
    heartbeat(groups)
    assert first.joined[-1].code == ErrorCode.REBALANCE_IN_PROGRESS
    third = Member(groups, group_id="other")
    fourth = Member(groups, group_id="other")
    third.enter()
    fourth.enter()
    clock.advance(0)
    fourth.sync()
    heartbeat(groups, group_id="other")
    assert fourth.synced[-1].code == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_no_group_changes_to_the_newer_protocol_where_it_may_not(clock: Clock, policy: str):
    groups = groups_at(clock, consumer_migration_policy=policy)
    assigned_to(groups, clock, classic(groups))
    with pytest.raises(GroupError, match="online upgrade is disabled") as refused:
        heartbeat(groups)
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_no_group_changes_back_where_it_may_not(clock: Clock, policy: str):
    groups = groups_at(clock)
    assigned_to(groups, clock, classic(groups))
    heartbeat(groups)
    groups._mixed._settings = groups.settings._replace(consumer_migration_policy=policy)
    heartbeat(groups, -1)
    assert kind_of(groups)[0] == "consumer"


def test_a_group_of_others_than_consumers_does_not_change(groups: Groups, clock: Clock):
    worker = Member(groups, protocol_type="connect", protocols={"default": b"x"})
    stable(groups, clock, worker)
    with pytest.raises(GroupError, match="does not use the consumer embedded protocol"):
        heartbeat(groups)
    assert worker.heartbeat() == 0


def test_a_group_with_more_members_than_one_of_the_newer_protocol_may_have_stays(clock: Clock):
    groups = groups_at(clock, consumer_max_size=1)
    assigned_to(groups, clock, classic(groups), classic(groups))
    with pytest.raises(GroupError, match="exceeds the consumer group maximum size"):
        heartbeat(groups)


@pytest.mark.parametrize(
    ("assignment", "why"),
    [
        (assignment_bytes({"t": [0]}, 1)[:-4] + b"\0\0\0\1x", "unsupported custom assignor"),
        (b"\xff\xff", "malformed"),
        (b"\0", "too short"),
    ],
)
def test_a_group_whose_assignments_are_not_understood_stays(
    groups: Groups, clock: Clock, assignment: bytes, why: str
):
    old = classic(groups)
    old.enter()
    clock.advance(0)
    old.sync({old.member_id: assignment})
    with pytest.raises(GroupError, match=why):
        heartbeat(groups)
    assert old.heartbeat() == 0


def test_a_group_for_whose_change_there_is_no_room_stays(clock: Clock):
    groups = groups_at(clock, max_bytes=7_000)
    old = classic(groups)
    old.protocols = {
        "range": subscription(*(f"topic-{n}" for n in range(30)), version=1) + bytes(4)
    }
    assigned_to(groups, clock, old)
    with pytest.raises(GroupError) as refused:
        heartbeat(groups)
    assert refused.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert old.heartbeat() == 0
    assert kind_of(groups) == ("classic", "Stable")


def mixed(groups: Groups, clock: Clock) -> Member:
    """Make a group of the newer protocol with a member of the classic one, all settled."""
    old = classic(groups)
    assigned_to(groups, clock, old)
    heartbeat(groups)
    rejoin(old, 0, 1, 2, 3)
    rejoin(old, *partitions_of(old))
    heartbeat(groups, 2)
    return old


def test_a_member_of_the_classic_protocol_hears_of_no_topic_that_its_client_may_not_describe(
    groups: Groups, clock: Clock
):
    old = mixed(groups, clock)
    assert partitions_of(old) != ()
    old.hidden = {"t"}
    old.sync()
    assert partitions_of(old) == ()


def test_a_member_of_the_classic_protocol_joins_a_group_of_the_newer_one(
    groups: Groups, clock: Clock
):
    mixed(groups, clock)
    newcomer = classic(groups)
    answer = newcomer.join()
    assert answer is not None
    assert answer.code == ErrorCode.MEMBER_ID_REQUIRED
    rejoin(newcomer)
    assert (newcomer.generation, partitions_of(newcomer)) == (3, ())
    group = groups.consumer_group(GROUP)
    assert len(group.members) == 3
    static = classic(groups, instance_id="i")
    rejoin(static)
    again = classic(groups, instance_id="i")
    rejoin(again)
    assert static.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert static.join() is not None
    assert static.joined[-1].code == ErrorCode.FENCED_INSTANCE_ID
    rejoin(again)
    assert len(group.members) == 4


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": [("other", b"")]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": [("range", b"x")]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "nobody", "instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_member_that_does_not_fit_cannot_join(
    groups: Groups, clock: Clock, changes: dict[str, Any], code: ErrorCode
):
    mixed(groups, clock)
    answer = classic(groups).join(**changes)
    assert answer is not None
    assert answer.code == code


def test_a_full_group_takes_no_member_of_the_classic_protocol(clock: Clock):
    groups = groups_at(clock, consumer_max_size=2)
    old = mixed(groups, clock)
    answer = classic(groups).join()
    assert answer is not None
    assert answer.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert old.join() is not None
    assert old.joined[-1].code == 0
    stretched = {"range": subscription(*("x" * 30_000 for _ in range(3_000)), version=1) + bytes(4)}
    old.protocols = stretched
    assert old.join() is not None
    assert old.joined[-1].code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_of_the_classic_protocol_are_held_to_their_generation(groups: Groups, clock: Clock):
    old = mixed(groups, clock)

    def synced(**changes: Any) -> int:
        for name, value in changes.items():
            setattr(old, name, value)
        answer = old.sync()
        assert answer is not None
        return answer.code

    commit = groups.offsets.commit
    commit(GROUP, [NewOffset("t", 0, 1)], member_id=old.member_id, epoch=2, version=5)
    with pytest.raises(GroupError) as refused:
        commit(GROUP, [NewOffset("t", 0, 1)], member_id=old.member_id, epoch=9, version=5)
    assert refused.value.code == ErrorCode.ILLEGAL_GENERATION
    member_id = old.member_id
    assert synced(generation=1) == ErrorCode.ILLEGAL_GENERATION
    assert old.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    assert synced(generation=2, member_id="nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert synced(member_id="new") == ErrorCode.UNKNOWN_MEMBER_ID
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert synced(member_id=member_id, instance_id="i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert synced(instance_id=None) == 0
    heartbeat(groups, member_id="second")
    assert synced() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_of_the_classic_protocol_that_does_not_join_or_sync_in_time_is_out(
    groups: Groups, clock: Clock
):
    old = mixed(groups, clock)
    heartbeat(groups, member_id="second")
    for _ in range(REBALANCE_MS // 5_000):
        assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        heartbeat(groups, groups.consumer_group(GROUP).members["new"].epoch, owned={})
        clock.advance(5_000)
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    newcomer = classic(groups)
    newcomer.enter()
    assert newcomer.joined[-1].code == 0
    for _ in range(REBALANCE_MS // 5_000):
        heartbeat(groups, groups.consumer_group(GROUP).members["new"].epoch, owned={})
        newcomer.heartbeat()
        clock.advance(5_000)
    assert newcomer.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_of_the_classic_protocol_that_is_not_heard_of_is_out(groups: Groups, clock: Clock):
    old = mixed(groups, clock)
    clock.advance(SESSION_MS)
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert kind_of(groups)[0] == "consumer"


def test_members_of_the_classic_protocol_leave_a_group_of_the_newer_one(
    groups: Groups, clock: Clock
):
    old = mixed(groups, clock)
    rejoin(classic(groups, instance_id="i"))
    fenced = groups.leave(GROUP, [("nobody", None), ("nobody", "i"), ("", "j")])
    assert fenced == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert groups.leave(GROUP, [(old.member_id, None), ("", "i")]) == [0, 0]
    assert list(groups.consumer_group(GROUP).members) == ["new"]


def test_a_static_member_that_returns_with_the_classic_protocol_takes_the_group_along(
    groups: Groups,
):
    heartbeat(groups, instance_id="i")
    returned = classic(groups, instance_id="i")
    assert returned.join() is not None
    assert kind_of(groups) == ("classic", "Stable")
    assert returned.joined[-1].code == 0
    returned.generation = returned.joined[-1].generation
    assert returned.heartbeat() == 0
    returned.sync()
    assert list(partitions_of(returned)) == [0, 1, 2, 3]


def test_a_static_member_that_returns_to_read_other_topics_begins_a_rebalance(groups: Groups):
    groups.topics.create("u", 1)
    heartbeat(groups, instance_id="i")
    returned = classic(groups, instance_id="i")
    returned.protocols = owning(topics=("u",))
    assert returned.join() is not None
    assert kind_of(groups) == ("classic", "PreparingRebalance")


def test_an_empty_group_is_of_the_protocol_of_who_joins_it(groups: Groups, clock: Clock):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    heartbeat(groups)
    assert kind_of(groups)[0] == "consumer"
    heartbeat(groups, -1)
    member = classic(groups)
    assert member.join() is not None
    assert kind_of(groups) == ("classic", "Empty")
    assert groups.offsets.get(GROUP, "t", 0) is not None
    groups.delete(GROUP)
    assert groups.account.taken == 0


def test_subscriptions_and_assignments_are_read_as_they_are_written():
    assert read_topics(subscription("a", "b", version=3)) == ("a", "b")
    newest = subscription("a", version=3) + owning(1, 2)["range"][-19:]
    newest += struct.pack(">ih4s", 7, 4, b"rack")
    read = read_subscription(newest)
    assert (read.version, read.topics, dict(read.owned)) == (3, ("a",), {"t": (1, 2)})
    assert (read.generation, read.rack) == (7, "rack")
    assert version_of(b"\0\x09") == 3
    assert read_assignment(assignment_bytes({"a": [1, 2], "b": []}, 0)) == {"a": (1, 2), "b": ()}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\0\0\0\0\0\5",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
        b"\xff\xff\0\0\0\0\0\0\0\0",
    ],
)
def test_what_is_no_subscription_is_refused(metadata: bytes):
    with pytest.raises(Malformed):
        read_subscription(metadata)


def test_an_assignment_is_of_the_oldest_version_for_who_tells_none():
    assert version_of(b"\xff\xff") == version_of(b"\0") == 0


def test_a_group_changes_back_with_a_member_that_offers_what_cannot_be_read(
    groups: Groups, clock: Clock
):
    old = classic(groups)
    old.protocols = {"mine": b"\0", **owning()}
    other = classic(groups)
    assigned_to(groups, clock, old, other)
    heartbeat(groups)
    heartbeat(groups, -1)
    assert kind_of(groups) == ("classic", "PreparingRebalance")
    assert old.heartbeat() == ErrorCode.ILLEGAL_GENERATION, "it was never told of the last one"
