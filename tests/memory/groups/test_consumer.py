"""The protocol in which the broker assigns (KIP-848), with the time in a test's hands."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups import GroupError, Groups
from aclbroker.broker.memory.groups.assignors import Assignment
from aclbroker.broker.memory.groups.consumer import HeartbeatAnswer, HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_group import ConsumerGroup
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.groups.patterns import Viewer
from aclbroker.protocol.errors import ErrorCode
from tests.memory.groups.support import GROUP, groups_at, still_clock

SESSION_MS = 45_000
REBALANCE_MS = 60_000


@pytest.fixture
def clock() -> Clock:
    return still_clock()


@pytest.fixture
def groups(clock: Clock) -> Groups:
    return groups_at(clock)


def group_of(groups: Groups) -> ConsumerGroup:
    return groups.consumer_group(GROUP)


class Consumer:
    """A member that does as it is told: it has what it was given last."""

    def __init__(self, groups: Groups, member_id: str, *topics: str, **more: Any) -> None:
        self.groups = groups
        self.member_id = member_id
        self.topics = topics
        self.more = more
        self.epoch = 0
        self.has: Assignment = {}
        self.asked: list[set[str]] = []
        self.hidden: set[str] = set()

    def join(self, **changes: Any) -> HeartbeatAnswer:
        """Join, or join anew without anything."""
        names = self.topics if "regex" not in self.more else None
        self.epoch, self.has = 0, {}
        return self.send(
            **{"names": names, "rebalance_timeout_ms": REBALANCE_MS, "owned": {}, **changes}
        )

    def send(self, **changes: Any) -> HeartbeatAnswer:
        """Send a heartbeat, and take what is given."""
        request = HeartbeatRequest(GROUP, self.member_id, self.epoch, **self.more)
        request = request._replace(client_id="c", client_host="/127.0.0.1")
        answer = self.groups.consumer_heartbeat(request._replace(**changes), self._visible)
        self.epoch = answer.epoch
        self.has = self.has if answer.assignment is None else answer.assignment
        return answer

    def tell(self, **changes: Any) -> HeartbeatAnswer:
        """Send a heartbeat that says what it has."""
        return self.send(owned=self.has, **changes)

    def code(self, **changes: Any) -> ErrorCode:
        """Send a heartbeat that is refused; returns why."""
        with pytest.raises(GroupError) as refused:
            self.send(**changes)
        return refused.value.code

    @property
    def count(self) -> int:
        return sum(map(len, self.has.values()))

    def _visible(self, found: Collection[str]) -> set[str]:
        self.asked.append(set(found))
        return set(found) - self.hidden


def settle(*consumers: Consumer) -> None:
    """Let consumers do as they are told until nothing changes any more."""
    for _ in range(10):
        before = [(each.epoch, each.has) for each in consumers]
        for each in consumers:
            each.tell()
        if before == [(each.epoch, each.has) for each in consumers]:
            return
    raise AssertionError("the group does not settle")


def test_a_member_is_given_all_and_gives_half_of_it_to_the_next(groups: Groups):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    answer = first.join()
    assert (answer.epoch, first.count, group_of(groups).state_name) == (2, 4, "Stable")
    second.join()
    assert (second.epoch, second.count) == (3, 0)
    assert group_of(groups).state_name == "Reconciling"
    first.tell()
    assert (first.epoch, first.count) == (2, 2), "first it gives up, in the epoch that it is in"
    assert second.tell().assignment is None
    first.tell()
    second.tell()
    assert (first.epoch, second.epoch, second.count) == (3, 3, 2)
    assert group_of(groups).state_name == "Stable"
    assert second.send().assignment is None
    full = second.tell(names=("t",), rebalance_timeout_ms=1)
    assert full.assignment == second.has, "who tells all is told all"


def test_what_a_member_had_is_given_to_others_when_it_leaves(groups: Groups):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    second.join()
    settle(first, second)
    assert second.send(epoch=-1).epoch == -1
    settle(first)
    assert first.count == 4
    assert first.send(epoch=-1).epoch == -1
    assert group_of(groups).state_name == "Empty"
    assert groups.delete(GROUP) == 0
    assert groups.account.taken == 0


def test_a_member_that_is_not_heard_of_is_out(groups: Groups, clock: Clock):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    clock.advance(1_000)
    second.join()
    clock.advance(SESSION_MS - 1_000)
    assert second.tell().epoch == 4
    assert second.count == 4
    assert first.code() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_nothing_up_in_time_is_out(groups: Groups, clock: Clock):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    second.join()
    for _ in range(7):
        clock.advance(10_000)
        if "m1" in group_of(groups).members:
            first.send()
        second.send()
    assert first.code() == ErrorCode.UNKNOWN_MEMBER_ID
    assert second.count == 4


def test_a_member_that_gives_up_in_time_stays(groups: Groups, clock: Clock):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    second.join()
    first.send()
    for _ in range(7):
        clock.advance(10_000)
        settle(first, second)
    assert (first.count, second.count) == (2, 2)


def test_a_member_in_a_wrong_epoch_is_fenced_unless_an_answer_was_lost(groups: Groups):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    second.join()
    settle(first, second)
    assert first.code(epoch=4) == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.code(epoch=1, owned={}) == ErrorCode.FENCED_MEMBER_EPOCH
    assert second.code(epoch=2, owned={}) == ErrorCode.FENCED_MEMBER_EPOCH
    first.join()
    third = Consumer(groups, "m3", "t")
    third.join()
    settle(first, second, third)
    lost = first.epoch
    fourth = Consumer(groups, "m4", "t")
    fourth.join()
    settle(first, second, third, fourth)
    assert first.code(epoch=lost, owned={b"x" * 16: {0}}) == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.code(epoch=lost) == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_heartbeat_whose_answer_was_lost_can_be_sent_again(groups: Groups):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    second.join()
    first.tell()
    before = first.epoch
    first.tell()
    assert first.epoch == before + 1
    again = first.send(epoch=before, owned=first.has)
    assert again.epoch == before + 1


def test_a_member_that_reads_other_topics_gives_up_the_former_at_once(groups: Groups):
    groups.topics.create("u", 2)
    first = Consumer(groups, "m1", "t", "u")
    first.join()
    assert first.count == 6
    first.send(names=("u",), owned=first.has)
    assert first.count == 2
    first.tell()
    assert (first.count, group_of(groups).state_name) == (2, "Stable")


def test_a_member_that_drops_topics_while_it_gives_up_others_gives_up_both(groups: Groups):
    groups.topics.create("u", 2)
    first, second = Consumer(groups, "m1", "t", "u"), Consumer(groups, "m2", "t", "u")
    first.join()
    had = first.has
    second.join()
    first.send(owned=had)
    assert first.count == 3
    first.send(owned=had, names=("u",))
    assert set(first.has) <= {groups.topics.id_of("u")}
    settle(first, second)
    assert first.count + second.count == 6


def test_a_group_takes_notice_of_new_topics_and_partitions(groups: Groups):
    first = Consumer(groups, "m1", "t", "later")
    first.join()
    groups.topics.create("other", 1)
    assert first.tell().epoch == 2, "that topic is nobody's"
    groups.topics.create("later", 3)
    first.tell()
    assert (first.count, first.epoch) == (7, 3)
    groups.topics.grow(groups.topics.by_name["t"], 6)
    first.tell()
    assert first.count == 9
    groups.topics.delete(groups.topics.by_name["later"])
    settle(first)
    assert first.count == 6


def test_an_expression_stands_for_the_topics_that_its_member_may_know_of(
    groups: Groups, clock: Clock
):
    for name in ("orders-eu", "orders-us", "payments"):
        groups.topics.create(name, 1)
    consumer = Consumer(groups, "m1", regex="orders-.*")
    consumer.hidden = {"orders-us"}
    consumer.join()
    assert consumer.asked == [set(groups.topics.topics)], "the rights come before the expression"
    assert set(consumer.has) == {groups.topics.id_of("orders-eu")}
    groups.topics.create("orders-jp", 1)
    settle(consumer)
    assert consumer.count == 1, "expressions are not resolved all the time"
    clock.advance(10_001)
    settle(consumer)
    assert consumer.count == 2
    consumer.hidden = set()
    for _ in range(20):
        clock.advance(30_001)
        consumer.tell()
    settle(consumer)
    assert consumer.count == 3, "rights may have changed"
    assert group_of(groups).is_subscribed("orders-us")
    assert not group_of(groups).is_subscribed("payments")


def test_an_expression_that_nobody_uses_any_more_is_forgotten(groups: Groups, clock: Clock):
    groups.topics.create("orders", 1)
    first, second = Consumer(groups, "m1", regex="o.*"), Consumer(groups, "m2", regex="or.*")
    first.join()
    clock.advance(10_001)
    second.join()
    settle(first, second)
    assert {each.regex for each in group_of(groups).resolved} == {"o.*", "or.*"}
    second.tell(regex="", names=("t",))
    assert {each.regex for each in group_of(groups).resolved} == {"o.*"}
    first.send(epoch=-1)
    assert not group_of(groups).resolved


def test_who_names_topics_and_an_expression_reads_both(groups: Groups):
    groups.topics.create("orders", 1)
    consumer = Consumer(groups, "m1", regex="o.*")
    consumer.join(names=("t",))
    assert consumer.count == 5


def test_members_share_what_an_expression_stands_for_only_if_their_clients_have_the_same_rights(
    groups: Groups, clock: Clock
):
    groups.topics.create("orders-eu", 1)
    groups.topics.create("orders-us", 1)
    seeing, blind = Consumer(groups, "m1", regex="o.*"), Consumer(groups, "m2", regex="o.*")
    seeing.more["viewer"] = Viewer(("User:alice",), "127.0.0.1", "SASL")
    blind.more["viewer"] = Viewer(("User:bob",), "127.0.0.1", "SASL")
    blind.hidden = {"orders-us"}
    seeing.join()
    blind.join()
    settle(seeing, blind)
    hidden = groups.topics.id_of("orders-us")
    assert hidden in seeing.has
    assert blind.asked == [set(groups.topics.topics)]
    seeing.send(epoch=-1)
    settle(blind)
    assert set(blind.has) == {groups.topics.id_of("orders-eu")}
    third = Consumer(groups, "m3", regex="o.*", viewer=blind.more["viewer"])
    third.join()
    assert third.asked == [], "a client with the same rights shares what is known"


def test_a_member_reads_what_the_client_that_speaks_for_it_may_know_of(groups: Groups):
    groups.topics.create("orders-eu", 1)
    groups.topics.create("orders-us", 1)
    member = Consumer(groups, "m1", regex="o.*", viewer=Viewer(("User:alice",), "h", "SASL"))
    member.join()
    assert member.count == 2
    member.more = {"viewer": Viewer(("User:bob",), "h", "SASL")}
    member.hidden = {"orders-us"}
    settle(member)
    assert set(member.has) == {groups.topics.id_of("orders-eu")}


def test_an_invalid_expression_is_refused_and_makes_no_group(groups: Groups):
    assert (
        Consumer(groups, "m1", regex="(").code(rebalance_timeout_ms=1, owned={})
        == ErrorCode.INVALID_REGULAR_EXPRESSION
    )
    assert not groups.table.groups


def test_a_static_member_comes_back_to_what_it_had(groups: Groups):
    first = Consumer(groups, "m1", "t", instance_id="i")
    other = Consumer(groups, "m2", "t")
    first.join()
    other.join()
    settle(first, other)
    had, epoch = first.has, group_of(groups).epoch
    second = Consumer(groups, "m3", "t", instance_id="i")
    assert second.code(rebalance_timeout_ms=1, names=("t",)) == ErrorCode.UNRELEASED_INSTANCE_ID
    assert first.send(epoch=-2).epoch == -2
    second.join()
    assert second.has == had
    assert group_of(groups).epoch == epoch, "nobody else has to take notice"
    assert other.tell().assignment is None
    assert first.code(epoch=epoch) == ErrorCode.FENCED_INSTANCE_ID
    gone = Consumer(groups, "m4", "t", instance_id="j")
    assert gone.code(epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID
    second.send(epoch=-1)
    settle(other)
    assert other.count == 4


def test_a_static_member_that_stays_away_is_out(groups: Groups, clock: Clock):
    first = Consumer(groups, "m1", "t", instance_id="i")
    first.join()
    first.send(epoch=-2)
    clock.advance(SESSION_MS)
    assert group_of(groups).state_name == "Empty"


def test_most_members_choose_the_assignor(groups: Groups):
    consumers = [Consumer(groups, f"m{n}", "t", assignor="range") for n in range(2)]
    consumers.append(Consumer(groups, "m2", "t", assignor="uniform"))
    for consumer in consumers:
        consumer.join()
    assert group_of(groups).preferred_assignor("uniform") == "range"
    settle(*consumers)
    assert consumers[0].has == {groups.topics.id_of("t"): {0, 1}}


def test_a_group_has_no_more_members_than_it_may(clock: Clock):
    groups = groups_at(clock, consumer_max_size=1)
    first = Consumer(groups, "m1", "t")
    first.join()
    second = Consumer(groups, "m2", "t")
    assert second.code(names=("t",), owned={}) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.tell().epoch == 2


def test_members_are_refused_when_there_is_no_more_room(clock: Clock):
    groups = groups_at(clock, max_bytes=10_000)
    first = Consumer(groups, "m1", "t")
    first.join()
    many = tuple(f"topic-{n}" for n in range(200))
    second = Consumer(groups, "m2", *many)
    assert second.code(names=many, owned={}) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(group_of(groups).members) == ["m1"]
    assert first.code(names=many) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.tell().epoch == 2
    first.send(epoch=-1)
    groups.delete(GROUP)
    assert groups.account.taken == 0


def test_a_member_commits_what_it_has_had_since_its_epoch(groups: Groups):
    first, second = Consumer(groups, "m1", "t"), Consumer(groups, "m2", "t")
    first.join()
    second.join()
    first.tell()
    lost = ({0, 1, 2, 3} - first.has[groups.topics.id_of("t")]).pop()
    kept = min(first.has[groups.topics.id_of("t")])

    def code(epoch: int, index: int, member: str = "m1", version: int = 9) -> int:
        try:
            new = [NewOffset("t", index, 5)]
            groups.offsets.commit(GROUP, new, member_id=member, epoch=epoch, version=version)
        except GroupError as error:
            return error.code
        return 0

    assert code(2, kept) == code(2, lost) == 0
    first.tell()
    assert first.epoch == 3
    assert code(2, kept) == 0
    assert code(2, lost) == ErrorCode.STALE_MEMBER_EPOCH
    assert code(1, kept) == ErrorCode.STALE_MEMBER_EPOCH
    assert code(4, kept) == ErrorCode.STALE_MEMBER_EPOCH
    assert code(3, kept, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert code(3, kept, version=8) == ErrorCode.UNSUPPORTED_VERSION
    check = groups.offsets.check_txn_commit
    assert check(GROUP, "m1", 2, None, [("t", kept)]) == 0
    assert check(GROUP, "m1", 2, None, [("t", lost)]) == ErrorCode.ILLEGAL_GENERATION
    assert check(GROUP, "m1", 2, None, [("no such topic", 0)]) == ErrorCode.ILLEGAL_GENERATION
    assert check(GROUP, "", -1, None) == 0
    with pytest.raises(GroupError):
        group_of(groups).check_fetch("m1", 2)
    group_of(groups).check_fetch("m1", 3)
    group_of(groups).check_fetch(None, -1)


def test_a_group_without_members_lets_anybody_commit_and_may_be_classic_again(groups: Groups):
    first = Consumer(groups, "m1", "t")
    first.join()
    first.send(epoch=-1)
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    assert groups.offsets.get(GROUP, "t", 0) is not None
    with pytest.raises(GroupError) as refused:
        groups.classic_group(GROUP)
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    first.join()
    assert groups.delete(GROUP) == ErrorCode.NON_EMPTY_GROUP


def test_a_member_cannot_leave_a_group_that_is_not_of_the_protocol(groups: Groups):
    assert Consumer(groups, "m1", "t").code(epoch=-1) == ErrorCode.GROUP_ID_NOT_FOUND
    groups.offsets.commit(GROUP, [NewOffset("t", 0, 5)])
    assert Consumer(groups, "m1", "t").code(epoch=-1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert Consumer(groups, "m1", "t").code(epoch=5) == ErrorCode.GROUP_ID_NOT_FOUND
    Consumer(groups, "m1", "t").join()
    assert groups.offsets.get(GROUP, "t", 0) is not None, "offsets stay"
