"""The classic protocol of groups: who joins when, who assigns, and what runs out."""

from __future__ import annotations

import pytest

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import Groups
from aclbroker.broker.memory.groups.classic_group import ClassicGroup
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


def group_of(groups: Groups) -> ClassicGroup:
    return groups.classic_group(GROUP)


def test_the_first_members_wait_for_others_and_longer_when_some_come(clock: Clock):
    groups = groups_at(clock, initial_rebalance_delay_ms=3_000)
    first, second, third = Member(groups), Member(groups), Member(groups)
    first.enter()
    clock.advance(2_999)
    second.enter()
    clock.advance(2_999)
    assert first.joined[-1].code == ErrorCode.MEMBER_ID_REQUIRED
    clock.advance(3_000)
    assert (first.generation, second.generation) == (1, 1)
    assert [each.member_id for each in first.joined[-1].members] == [
        first.member_id,
        second.member_id,
    ]
    assert second.joined[-1].members == ()
    assert first.joined[-1].leader == second.joined[-1].leader == first.member_id
    third.enter()
    assert third.generation == -1, "the others have to join again"


def test_newcomers_are_waited_for_no_longer_than_a_rebalance_may_take(clock: Clock):
    groups = groups_at(clock, initial_rebalance_delay_ms=3_000)
    first = Member(groups)
    first.join(member_id="", needs_id=False, rebalance_timeout_ms=7_000)
    newcomers = 0
    while first.generation < 1 and newcomers < 20:
        clock.advance(1_000)
        Member(groups).join(needs_id=False, rebalance_timeout_ms=7_000)
        newcomers += 1
    assert newcomers in range(7, 11)


def test_members_vote_for_the_protocol(groups: Groups, clock: Clock):
    data = subscription("t")
    for preferences in (["range", "sticky"], ["sticky", "range"], ["sticky", "range", "other"]):
        member = Member(groups, protocols=dict.fromkeys(preferences, data))
        member.enter()
    clock.advance(0)
    assert member.joined[-1].protocol_name == "sticky"
    assert group_of(groups).subscribed_topics() == frozenset({"t"})


def test_a_leader_that_does_not_join_again_in_time_is_replaced(groups: Groups, clock: Clock):
    leader, member = Member(groups, instance_id="leader"), Member(groups)
    stable(groups, clock, leader, member)
    newcomer = Member(groups)
    newcomer.enter()
    member.join()
    for _ in range(REBALANCE_MS // 9_000 + 1):
        assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        clock.advance(9_000)
    assert member.generation == newcomer.generation == 2
    assert member.joined[-1].leader in (member.member_id, newcomer.member_id)
    assert "leader" in group_of(groups).static_members


def test_who_does_not_join_again_in_time_is_out(groups: Groups, clock: Clock):
    first, second = Member(groups), Member(groups)
    stable(groups, clock, first, second)
    first.join()
    for _ in range(REBALANCE_MS // 9_000 + 1):
        second.heartbeat()
        clock.advance(9_000)
    assert first.generation == 2
    assert list(group_of(groups).members) == [first.member_id]
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_that_nobody_joins_waits_until_sessions_run_out(groups: Groups, clock: Clock):
    first = Member(groups, instance_id="i")
    second = Member(groups)
    stable(groups, clock, first, second)
    second.leave()
    assert group_of(groups).state_name == "PreparingRebalance"
    for _ in range(3 * REBALANCE_MS // 9_000):
        assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        clock.advance(9_000)
    assert group_of(groups).state_name == "PreparingRebalance"
    clock.advance(SESSION_MS)
    assert group_of(groups).state_name == "Empty"


def test_who_does_not_ask_for_its_assignment_in_time_is_out(groups: Groups, clock: Clock):
    first, second = Member(groups), Member(groups)
    first.enter()
    second.enter()
    clock.advance(0)
    assert first.sync({}) is not None
    assert group_of(groups).state_name == "Stable"
    for _ in range(REBALANCE_MS // 9_000 + 1):
        first.heartbeat()
        second.heartbeat()
        clock.advance(9_000)
    assert group_of(groups).state_name == "PreparingRebalance"
    assert list(group_of(groups).members) == [first.member_id]


def test_members_wait_for_the_leader_to_assign(groups: Groups, clock: Clock):
    leader, member = Member(groups), Member(groups)
    leader.enter()
    member.enter()
    clock.advance(0)
    assert member.sync() is None
    member.sync()
    assert [each.code for each in member.synced] == [ErrorCode.REBALANCE_IN_PROGRESS]
    answer = leader.sync({member.member_id: b"yours"})
    assert answer is not None
    assert answer.assignment == b""
    assert member.synced[-1].assignment == b"yours"
    later = member.sync()
    assert later is not None
    assert later.assignment == b"yours"


def test_who_waits_for_an_assignment_is_told_of_a_new_rebalance(groups: Groups, clock: Clock):
    leader, member = Member(groups), Member(groups)
    leader.enter()
    member.enter()
    clock.advance(0)
    member.sync()
    Member(groups).enter()
    assert member.synced[-1].code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_is_not_heard_of_is_out(groups: Groups, clock: Clock):
    first, second = Member(groups), Member(groups)
    stable(groups, clock, first, second)
    clock.advance(SESSION_MS - 1)
    assert first.heartbeat() == 0
    clock.advance(1)
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.join() is not None
    assert first.generation == 2


def test_a_member_whose_join_waits_needs_no_heartbeats_unless_it_is_new(
    groups: Groups, clock: Clock
):
    first, second = Member(groups), Member(groups, instance_id="i")
    stable(groups, clock, first, second)
    newcomer = Member(groups)
    newcomer.enter()
    first.join()
    for _ in range(5):
        second.heartbeat()
        clock.advance(9_000)
    assert first.member_id in group_of(groups).members
    clock.advance(REBALANCE_MS)
    assert newcomer.generation == 2


def test_a_new_member_that_waits_for_too_long_is_told_to_begin_anew(clock: Clock):
    groups = groups_at(clock, initial_rebalance_delay_ms=10 * 60_000)
    member = Member(groups)
    member.join(needs_id=False, rebalance_timeout_ms=30 * 60_000)
    clock.advance(5 * 60_000)
    assert member.joined[-1].code == ErrorCode.UNKNOWN_MEMBER_ID
    assert group_of(groups).state_name == "Empty"


def test_an_id_that_nobody_joins_with_is_forgotten(groups: Groups, clock: Clock):
    member, other = Member(groups), Member(groups)
    stable(groups, clock, other)
    member.join()
    other.join()
    clock.advance(SESSION_MS)
    assert other.generation == 2, "the rebalance no longer waits for who was given an id"
    assert member.join() is not None
    assert member.joined[-1].code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_was_given_an_id_can_leave_without_joining(groups: Groups):
    member = Member(groups)
    member.join()
    assert member.leave() == 0
    assert member.leave() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_is_empty_when_all_have_left(groups: Groups, clock: Clock):
    first, second = Member(groups), Member(groups)
    stable(groups, clock, first, second)
    assert groups.leave(GROUP, [(first.member_id, None), (second.member_id, None)]) == [0, 0]
    assert group_of(groups).state_name == "Empty"
    assert groups.delete(GROUP) == 0
    assert groups.account.taken == 0


def test_who_leaves_while_it_waits_is_answered(groups: Groups, clock: Clock):
    leader, member = Member(groups), Member(groups)
    leader.enter()
    member.enter()
    clock.advance(0)
    member.sync()
    assert member.leave() == 0
    assert member.synced[-1].code == ErrorCode.UNKNOWN_MEMBER_ID
    leader.join()
    newcomer = Member(groups)
    newcomer.enter()
    assert newcomer.leave() == 0
    assert newcomer.joined[-1].code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_without_a_rebalance(groups: Groups, clock: Clock):
    leader, member = Member(groups), Member(groups, instance_id="i")
    stable(groups, clock, leader, member)
    returned = Member(groups, instance_id="i")
    answer = returned.join()
    assert answer is not None
    assert (answer.code, answer.generation) == (0, 1)
    assert returned.sync() is not None
    assert returned.synced[-1].assignment == member.member_id.encode()
    assert member.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert returned.heartbeat() == 0
    clock.advance(SESSION_MS)
    assert group_of(groups).state_name == "Empty"


def test_a_static_leader_comes_back_and_need_not_assign_anew(groups: Groups, clock: Clock):
    leader = Member(groups, instance_id="i")
    stable(groups, clock, leader)
    returned = Member(groups, instance_id="i")
    answer = returned.join()
    assert answer is not None
    assert answer.skip_assignment
    assert answer.leader == returned.member_id
    assert [each.member_id for each in answer.members] == [returned.member_id]
    of_old = Member(groups, instance_id="i").join(skips_assignment=False)
    assert of_old is not None
    assert (of_old.leader, of_old.members) == (returned.member_id, ())


def test_a_static_member_that_votes_otherwise_begins_a_rebalance(groups: Groups, clock: Clock):
    data = subscription("t")
    leader = Member(groups, instance_id="i", protocols={"a": data, "b": data})
    stable(groups, clock, leader)
    Member(groups, instance_id="i", protocols={"b": data, "a": data}).join()
    assert group_of(groups).protocol_name == "b"


def test_a_static_member_that_comes_back_in_a_rebalance_joins_it(groups: Groups, clock: Clock):
    leader, member = Member(groups), Member(groups, instance_id="i")
    stable(groups, clock, leader, member)
    leader.join()
    first = Member(groups, instance_id="i")
    first.join()
    assert first.generation == 2
    second = Member(groups, instance_id="i")
    assert second.join() is None
    assert group_of(groups).state_name == "PreparingRebalance", "the assignment has the former id"
    third = Member(groups, instance_id="i")
    assert third.join() is None
    assert second.joined[-1].code == ErrorCode.FENCED_INSTANCE_ID
    leader.join()
    assert third.generation == 3


def test_a_join_of_the_same_member_on_another_connection_takes_the_place_of_the_first(
    groups: Groups, clock: Clock
):
    first, second = Member(groups), Member(groups)
    stable(groups, clock, first, second)
    assert first.join() is None
    first.join()
    assert first.joined[-1].code == ErrorCode.REBALANCE_IN_PROGRESS
    second.join()
    assert first.generation == 2


def test_a_follower_that_says_nothing_new_is_told_how_things_are(groups: Groups, clock: Clock):
    leader, member = Member(groups), Member(groups)
    stable(groups, clock, leader, member)
    answer = member.join()
    assert answer is not None
    assert (answer.code, answer.generation, answer.members) == (0, 1, ())
    assert leader.join() is None, "a leader that joins wants to assign anew"


def test_a_group_has_no_more_members_than_it_may(clock: Clock):
    groups = groups_at(clock, max_size=2)
    members = [Member(groups) for _ in range(2)]
    stable(groups, clock, *members)
    third = Member(groups).join()
    assert third is not None
    assert third.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    static = Member(groups, instance_id="i").join()
    assert static is not None
    assert static.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    members[0].join()
    assert members[1].join() is not None
    assert members[0].generation == members[1].generation == 2


def test_ids_that_are_given_away_are_limited_as_members_are(clock: Clock):
    groups = groups_at(clock, max_size=2)
    codes = [answer.code for _ in range(3) if (answer := Member(groups).join())]
    assert codes == [79, 79, ErrorCode.GROUP_MAX_SIZE_REACHED]


def test_in_a_rebalance_the_last_to_join_are_out_if_they_are_too_many(clock: Clock):
    groups = groups_at(clock, max_size=2, initial_rebalance_delay_ms=1_000)
    members = [Member(groups) for _ in range(3)]
    for member in members:
        member.join(needs_id=False)
    assert members[2].joined[-1].code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_are_refused_when_there_is_no_more_room(clock: Clock):
    groups = groups_at(clock, max_bytes=20_000)
    codes = []
    for number in range(20):
        answer = Member(groups, instance_id=f"i{number}").join()
        codes.append(0 if answer is None else answer.code)
    assert codes.count(0) == 8
    assert codes[8:] == [ErrorCode.GROUP_MAX_SIZE_REACHED] * 12
    assert Member(groups).join() is not None
    other = Member(groups, group_id="another group" * 200).join()
    assert other is not None
    assert other.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.account.taken <= 20_000


def test_long_names_take_room(clock: Clock):
    groups = groups_at(clock, max_bytes=100_000)
    codes = []
    for _ in range(5):
        answer = Member(groups, client_id="x" * 30_000).join()
        codes.append(None if answer is None else answer.code)
    assert codes == [*[ErrorCode.MEMBER_ID_REQUIRED] * 3, *[ErrorCode.GROUP_MAX_SIZE_REACHED] * 2]
    static = Member(groups, client_id="x" * 30_000, instance_id="i").join()
    assert static is not None
    assert static.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.delete(GROUP) == 0
    assert groups.account.taken == 0


def test_an_assignment_that_there_is_no_room_for_is_refused(clock: Clock):
    groups = groups_at(clock, max_bytes=20_000)
    member = Member(groups)
    member.enter()
    clock.advance(0)
    answer = member.sync({member.member_id: bytes(20_000)})
    assert answer is not None
    assert answer.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.sync({member.member_id: bytes(10_000)}) is not None
    assert member.synced[-1].code == 0
    stretched = Member(groups, protocols={"range": bytes(20_000)})
    stretched.member_id, stretched.generation = member.member_id, 1
    assert stretched.join() is not None
    assert stretched.joined[-1].code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_topics_that_members_read_are_known_only_of_consumers_that_tell_them(
    groups: Groups, clock: Clock
):
    member = Member(groups, protocols={"range": b"\0"})
    stable(groups, clock, member)
    assert group_of(groups).is_subscribed("anything")
    assert group_of(groups).retention_from(5) is None
    member.leave()
    assert not group_of(groups).is_subscribed("anything")
    large = Member(groups, protocols={"range": subscription("t") + bytes(1 << 20)})
    stable(groups, clock, large)
    assert group_of(groups).is_subscribed("anything")
    large.leave()
    workers = Member(groups, protocol_type="connect", protocols={"default": b"x"})
    stable(groups, clock, workers)
    assert not group_of(groups).is_subscribed("t")
    assert group_of(groups).retention_from(5) is None
