"""What the coordinator of groups refuses before a group is asked, and what turns may change."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import GroupError, Groups
from aclbroker.broker.memory.groups.classic import SyncRequest
from aclbroker.broker.memory.groups.consumer import HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_group import ConsumerGroup
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.protocol.errors import ErrorCode
from tests.memory.groups.support import (
    GROUP,
    Member,
    groups_at,
    stable,
    still_clock,
    subscription,
)

T = TypeVar("T")


@pytest.fixture
def clock() -> Clock:
    return still_clock()


@pytest.fixture
def groups(clock: Clock) -> Groups:
    return groups_at(clock)


def test_a_group_needs_a_name(groups: Groups):
    member = Member(groups, group_id="")
    answers = [member.join(), member.sync()]
    assert [each and each.code for each in answers] == [ErrorCode.INVALID_GROUP_ID] * 2
    assert member.heartbeat() == ErrorCode.INVALID_GROUP_ID
    with pytest.raises(GroupError) as refused:
        member.leave()
    assert refused.value.code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_is_neither_too_short_nor_too_long(groups: Groups, session_ms: int):
    answer = Member(groups).join(session_timeout_ms=session_ms)
    assert answer is not None
    assert answer.code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_nobody_is_in_a_group_that_does_not_exist(groups: Groups):
    member = Member(groups)
    member.member_id = "nobody"
    answers = [member.join(), member.sync()]
    assert [each and each.code for each in answers] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert member.heartbeat() == member.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.delete(GROUP) == ErrorCode.GROUP_ID_NOT_FOUND


def test_who_is_wrong_about_itself_is_told(groups: Groups, clock: Clock):
    worker = Member(groups, protocol_type="connect", protocols={"a": b"x"})
    stable(groups, clock, worker)
    assert groups.delete(GROUP) == ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(GroupError):
        groups.consumer_group(GROUP)
    with pytest.raises(GroupError):
        groups.classic_group(GROUP).check_offset_delete()
    for changes in ({"protocol_type": "consumer"}, {"protocols": [("b", b"x")]}):
        answer = worker.join(**changes)
        assert answer is not None
        assert answer.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    worker.generation = 7
    assert worker.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    answer_to_sync = worker.sync()
    assert answer_to_sync is not None
    assert answer_to_sync.code == ErrorCode.ILLEGAL_GENERATION
    worker.member_id = "nobody"
    answer = worker.join()
    assert answer is not None
    assert answer.code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_a_rebalance_goes_on_in_assigns_nothing(groups: Groups, clock: Clock):
    first, second = Member(groups), Member(groups)
    stable(groups, clock, first, second)
    first.join()
    answer = second.sync()
    assert answer is not None
    assert answer.code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_is_deleted_between_turns_keeps_no_offsets(groups: Groups):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    many = [NewOffset("t", index, 5) for index in range(100)]
    pauses = iter(range(1_000))

    def delete_at_the_third() -> None:
        if next(pauses) == 3:
            groups.delete(GROUP)

    codes = _paused(delete_at_the_third, lambda: groups.offsets.commit(GROUP, many))
    assert {0, ErrorCode.GROUP_ID_NOT_FOUND} == set(codes)
    assert groups.account.taken == 0
    groups.offsets.pend(7, GROUP, [])
    codes = _paused(lambda: groups.delete(GROUP), lambda: groups.offsets.pend(7, GROUP, many))
    assert set(codes) == {ErrorCode.GROUP_ID_NOT_FOUND}
    groups.offsets.pend(7, GROUP, many)
    steps = groups.offsets.complete(7, GROUP, commits=True)
    next(steps)
    groups.delete(GROUP)
    assert list(steps) == []
    assert groups.account.taken == 0


def _heartbeat(groups: Groups, member_id: str, *names: str) -> HeartbeatRequest:
    return HeartbeatRequest(GROUP, member_id, 0, rebalance_timeout_ms=1_000, names=names, owned={})


def test_a_member_that_is_removed_while_partitions_are_assigned_has_none(groups: Groups):
    names = [f"t{n}" for n in range(20)]
    for name in names:
        groups.topics.create(name, 1)
    groups.consumer_heartbeat(_heartbeat(groups, "m1", *names), lambda found: found)
    leaving = HeartbeatRequest(GROUP, "m2", -1)

    def leave() -> None:
        if "m2" in groups.consumer_group(GROUP).members:
            groups.consumer_heartbeat(leaving, lambda found: found)

    def join() -> object:
        return groups.consumer_heartbeat(_heartbeat(groups, "m2", *names), lambda found: found)

    with pytest.raises(GroupError) as refused:
        _paused(leave, join)
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    group = groups.consumer_group(GROUP)
    assert list(group.members) == ["m1"]
    assert {owner for some in group.owners.values() for owner in some.values()} == {"m1"}


@pytest.mark.parametrize("place", range(10))
def test_a_member_may_leave_at_any_time_while_it_is_served(
    groups: Groups, clock: Clock, place: int
):
    names = [f"t{n}" for n in range(20)]
    for name in names:
        groups.topics.create(name, 1)
    turns = iter(range(1_000))

    def leave() -> None:
        group = groups.table.groups.get(GROUP)
        if next(turns) == place and isinstance(group, ConsumerGroup) and group.members:
            groups.consumer_heartbeat(HeartbeatRequest(GROUP, "m", -1), lambda found: found)

    with suppress(GroupError):
        _paused(
            leave,
            lambda: groups.consumer_heartbeat(_heartbeat(groups, "m", *names), lambda found: found),
        )
    assert next(turns) > place, "it left at that place"
    clock.advance(120_000)
    assert not groups.consumer_group(GROUP).owners
    assert groups.delete(GROUP) == 0
    assert groups.account.taken == 0


def test_a_group_that_changes_while_it_is_made_one_of_the_newer_protocol_stays(
    groups: Groups, clock: Clock
):
    topics = [f"t{n}" for n in range(40)]
    old = Member(groups, protocols={"range": subscription(*topics, version=1) + bytes(4)})
    stable(groups, clock, old)
    old.sync()
    groups.classic_group(GROUP).members[old.member_id].assignment = b""
    other = Member(groups, protocols=old.protocols)

    def come() -> None:
        if not other.member_id:
            other.join(needs_id=False)

    with pytest.raises(GroupError) as refused:
        _paused(
            come,
            lambda: groups.consumer_heartbeat(_heartbeat(groups, "m", "t"), lambda found: found),
        )
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.table.find(GROUP).kind == "classic"


def test_a_member_that_syncs_for_another_protocol_is_refused(groups: Groups, clock: Clock):
    member = Member(groups)
    stable(groups, clock, member)
    wrongs: list[dict[str, Any]] = [{"protocol_type": "connect"}, {"protocol_name": "other"}]
    for wrong in wrongs:
        request = SyncRequest(GROUP, member.member_id, None, 1, {})._replace(**wrong)
        groups.sync(request, member.synced.append, list)
        assert member.synced[-1].code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_static_member_is_removed_by_its_instance_alone(groups: Groups, clock: Clock):
    first, second = Member(groups, instance_id="i"), Member(groups)
    stable(groups, clock, first, second)
    codes = groups.leave(GROUP, [("", "j"), ("", None), ("", "i"), (second.member_id, "i")])
    assert codes == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        0,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(groups.classic_group(GROUP).members) == [second.member_id]


def test_what_a_group_took_is_free_when_it_is_deleted(groups: Groups, clock: Clock):
    for kind in ("classic", "mixed"):
        member = Member(groups, instance_id="i", protocols=_reads_t())
        stable(groups, clock, member)
        groups.offsets.pend(7, GROUP, [NewOffset("t", 0, 5)])
        if kind == "mixed":
            member.join()
            clock.advance(0)
            member.sync({})
            groups.consumer_heartbeat(_heartbeat(groups, "m", "t"), lambda found: found)
            assert groups.table.find(GROUP).kind == "consumer"
            groups.consumer_heartbeat(HeartbeatRequest(GROUP, "m", -1), lambda found: found)
        returned = Member(groups, instance_id="i", protocols=_reads_t(), client_id="longer" * 9)
        returned.join()
        clock.advance(120_000)
        assert groups.table.find(GROUP).is_empty
        assert groups.delete(GROUP) == 0
        assert groups.account.taken == 0


def _reads_t() -> dict[str, bytes]:
    return {"range": subscription("t", version=1) + bytes(4)}


def _paused(others: Callable[[], object], work: Callable[[], T]) -> T:
    """Do work, at each pause of which others have their turn."""
    is_paused = False

    def turn() -> None:
        nonlocal is_paused
        if not is_paused:
            is_paused = True
            others()
            is_paused = False

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("aclbroker.turns._pause", turn)
        return work()
