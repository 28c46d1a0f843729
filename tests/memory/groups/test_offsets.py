"""The offsets that groups commit: who may, what is kept, for how long, and in transactions."""

from __future__ import annotations

from typing import Any

import pytest

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import GroupError, Groups
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.protocol.errors import ErrorCode
from tests.memory.groups.support import GROUP, Member, groups_at, stable, still_clock

DAY_MS = 24 * 60 * 60 * 1000
WEEK_MS = 7 * DAY_MS
PRODUCER = 7


@pytest.fixture
def clock() -> Clock:
    return still_clock()


@pytest.fixture
def groups(clock: Clock) -> Groups:
    return groups_at(clock)


def offset_of(groups: Groups, topic: str = "t", partition: int = 0) -> int | None:
    kept = groups.offsets.get(GROUP, topic, partition)
    return None if kept is None else kept.offset


def pend(groups: Groups, offset: int, producer_id: int = PRODUCER, **more: Any) -> list[int]:
    new = NewOffset("t", 0, offset)._replace(**more)
    return list(groups.offsets.pend(producer_id, GROUP, [new]))


def test_who_is_in_no_group_commits_offsets_which_makes_a_group(groups: Groups):
    codes = groups.offsets.commit(GROUP, [NewOffset("t", 0, 5, 3, "note"), NewOffset("t", 1, 6)])
    assert codes == [0, 0]
    kept = groups.offsets.get(GROUP, "t", 0)
    assert kept is not None
    assert (kept.offset, kept.leader_epoch, kept.metadata) == (5, 3, "note")
    group = groups.table.find(GROUP)
    assert (group.state_name, group.protocol_type, group.kind) == ("Empty", "", "classic")
    assert groups.offsets.of_group("other") == {}


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_member_of_a_group_that_does_not_exist_cannot_commit(
    groups: Groups, version: int, code: ErrorCode
):
    with pytest.raises(GroupError) as refused:
        groups.offsets.commit(
            GROUP, [NewOffset("t", 0, 5)], member_id="m", epoch=3, version=version
        )
    assert refused.value.code == code
    assert not groups.table.groups


def test_only_members_commit_where_there_are_members(groups: Groups, clock: Clock):
    member = Member(groups)
    stable(groups, clock, member)

    def code(member_id: str, epoch: int, instance_id: str | None = None) -> int:
        try:
            groups.offsets.commit(
                GROUP,
                [NewOffset("t", 0, 5)],
                member_id=member_id,
                epoch=epoch,
                instance_id=instance_id,
            )
        except GroupError as error:
            return error.code
        return 0

    assert code(member.member_id, 1) == 0
    assert code(member.member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert code("other", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(member.member_id, 1, "instance") == ErrorCode.UNKNOWN_MEMBER_ID
    assert code("", -1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_wait_for_the_end_of_a_rebalance_but_not_those_of_transactions(
    groups: Groups, clock: Clock
):
    member = Member(groups)
    member.enter()
    clock.advance(0)
    with pytest.raises(GroupError) as refused:
        groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)], member_id=member.member_id, epoch=1)
    assert refused.value.code == ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.offsets.check_txn_commit(GROUP, member.member_id, 1, None) == 0


def test_a_commit_keeps_a_member_alive(groups: Groups, clock: Clock):
    member = Member(groups)
    stable(groups, clock, member)
    for _ in range(5):
        clock.advance(9_000)
        groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)], member_id=member.member_id, epoch=1)
    assert groups.table.find(GROUP).state_name == "Stable"


def test_metadata_that_is_too_long_is_refused_and_the_rest_kept(groups: Groups):
    codes = groups.offsets.commit(
        GROUP,
        [NewOffset("t", 0, 5, metadata="x" * 4097), NewOffset("t", 1, 6, metadata="x" * 4096)],
    )
    assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]
    assert offset_of(groups) is None
    assert pend(groups, 5, metadata="x" * 4097) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]


def test_offsets_are_refused_when_there_is_no_more_room(clock: Clock):
    groups = groups_at(clock, max_bytes=10_000)
    many = [NewOffset("t", each, 5) for each in range(100)]
    codes = groups.offsets.commit(GROUP, many)
    kept = codes.count(ErrorCode.NONE)
    assert 0 < kept < 100
    assert codes[kept:] == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * (100 - kept)
    assert groups.account.taken <= 10_000
    # What is there may be replaced, and room that was given back be taken.
    assert groups.offsets.commit(GROUP, many[:1]) == [0]
    assert pend(groups, 9, partition=99) == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
    with pytest.raises(GroupError) as refused:
        [groups.offsets.commit(f"other {each}", []) for each in range(100)]
    assert refused.value.code == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    codes = groups.offsets.pend(PRODUCER, "one more", [NewOffset("t", 0, 5)])
    assert codes == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
    assert (
        groups.offsets.check_txn_commit("one more", "", -1, None)
        == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    )
    for group_id in list(groups.table.groups):
        assert groups.delete(group_id) == 0
    assert groups.account.taken == 0


def test_offsets_of_a_transaction_hold_when_it_is_committed(groups: Groups):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    assert pend(groups, 9) == [0]
    assert offset_of(groups) == 5
    assert groups.offsets.is_unstable(GROUP, "t", 0)
    assert not groups.offsets.is_unstable(GROUP, "t", 1)
    list(groups.offsets.complete(PRODUCER, GROUP, commits=True))
    assert offset_of(groups) == 9
    assert not groups.offsets.is_unstable(GROUP, "t", 0)
    list(groups.offsets.complete(PRODUCER, GROUP, commits=False))
    assert offset_of(groups) == 9
    assert groups.delete(GROUP) == 0
    assert groups.account.taken == 0


def test_offsets_of_a_transaction_are_forgotten_when_it_is_aborted(groups: Groups):
    pend(groups, 9)
    pend(groups, 10)
    list(groups.offsets.complete(PRODUCER, GROUP, commits=False))
    assert offset_of(groups) is None
    assert not groups.offsets.is_unstable(GROUP, "t", 0)
    assert groups.delete(GROUP) == 0
    assert groups.account.taken == 0


def test_the_later_offset_holds_whether_of_a_transaction_or_not(groups: Groups):
    pend(groups, 9)
    pend(groups, 8, producer_id=8)
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    list(groups.offsets.complete(PRODUCER, GROUP, commits=True))
    assert offset_of(groups) == 5
    assert groups.offsets.is_unstable(GROUP, "t", 0), "the other transaction goes on"
    list(groups.offsets.complete(8, GROUP, commits=True))
    assert offset_of(groups) == 5


def test_a_transaction_commits_for_members_and_for_who_is_none(groups: Groups, clock: Clock):
    check = groups.offsets.check_txn_commit
    assert check(GROUP, "m", 3, None) == ErrorCode.ILLEGAL_GENERATION
    assert check(GROUP, "", -1, None) == ErrorCode.NONE
    member = Member(groups)
    stable(groups, clock, member)
    assert check(GROUP, "", -1, None) == ErrorCode.NONE
    assert check(GROUP, member.member_id, 1, None, [("t", 0)]) == ErrorCode.NONE
    assert check(GROUP, member.member_id, 0, None) == ErrorCode.ILLEGAL_GENERATION
    assert check(GROUP, "other", 1, None) == ErrorCode.UNKNOWN_MEMBER_ID
    assert check(GROUP, member.member_id, 1, "i") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_deleted_offset_does_not_come_back_with_a_transaction(groups: Groups):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5), NewOffset("t", 1, 5)])
    pend(groups, 9)
    pend(groups, 9, partition=1)
    pend(groups, 9, topic="u")
    groups.offsets.delete(GROUP, "t", 0)
    groups.offsets.delete(GROUP, "t", 77)
    list(groups.offsets.complete(PRODUCER, GROUP, commits=True))
    assert offset_of(groups) is None
    assert offset_of(groups, partition=1) == 9
    assert offset_of(groups, topic="u") == 9


def test_the_offsets_of_a_deleted_topic_are_forgotten(groups: Groups):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5), NewOffset("u", 0, 5)])
    pend(groups, 9, partition=3)
    groups.topics.delete(groups.topics.by_name["t"])
    groups.topics.create("t", 4)
    list(groups.offsets.complete(PRODUCER, GROUP, commits=True))
    assert {topic: list(some) for topic, some in groups.offsets.of_group(GROUP).items()} == {
        "u": [0]
    }


def test_offsets_of_who_is_in_no_group_expire_a_week_after_their_commit(
    groups: Groups, clock: Clock
):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    clock.advance(DAY_MS)
    groups.offsets.commit(GROUP, [NewOffset("t", 1, 5)])
    clock.advance(WEEK_MS - DAY_MS)
    assert (offset_of(groups), offset_of(groups, partition=1)) == (None, 5)
    clock.advance(DAY_MS)
    assert not groups.table.groups, "nobody needs the group without members and offsets"
    assert groups.account.taken == 0


def test_offsets_of_a_group_expire_some_time_after_its_last_member_left(clock: Clock):
    groups = groups_at(
        clock, offsets_retention_ms=60_000, offsets_retention_check_interval_ms=1_000
    )
    member = Member(groups)
    stable(groups, clock, member)
    groups.offsets.commit(
        GROUP, [NewOffset("t", 0, 5), NewOffset("u", 0, 5)], member_id=member.member_id, epoch=1
    )
    for _ in range(10):
        clock.advance(9_000)
        assert member.heartbeat() == 0
    assert offset_of(groups) == 5, "a topic that the group reads"
    assert offset_of(groups, topic="u") is None, "a topic that it no longer reads"
    member.leave()
    clock.advance(59_000)
    assert offset_of(groups) == 5
    clock.advance(2_000)
    assert offset_of(groups) is None


def test_nothing_expires_that_a_transaction_is_about_to_commit(groups: Groups, clock: Clock):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    pend(groups, 9)
    clock.advance(2 * WEEK_MS)
    assert offset_of(groups) == 5


def test_a_client_of_old_says_how_long_its_offsets_are_kept(groups: Groups, clock: Clock):
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)], retention_ms=1_000)
    clock.advance(600_000)
    assert offset_of(groups) is None


def test_very_many_offsets_expire_in_steps(clock: Clock):
    groups = groups_at(clock, offsets_retention_ms=1_000, offsets_retention_check_interval_ms=2_000)
    for each in range(5):
        groups.offsets.commit(f"g{each}", [NewOffset("t", index, 5) for index in range(1_000)])
    clock.advance(2_000)
    kept = [len(groups.offsets.of_group(each).get("t", ())) for each in groups.table.groups]
    assert sum(kept) == 4_900, "a step does not take the loop for long"
    clock.advance(100)
    assert not groups.table.groups


def test_very_many_groups_without_offsets_go_in_steps(clock: Clock):
    groups = groups_at(clock, offsets_retention_check_interval_ms=2_000)
    for number in range(1_000):
        groups.offsets.commit(f"g{number}", [NewOffset("t", 0, 5)])
        groups.offsets.delete(f"g{number}", "t", 0)
    clock.advance(2_000)
    assert len(groups.table.groups) == 900, "a step does not take the loop for long"
    clock.advance(1_000)
    assert groups.table.groups == {}
