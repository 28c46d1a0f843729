"""Transactional ids: who may go on, what ends, and what is answered to who comes late."""

from collections.abc import Iterator
from itertools import count

import pytest

from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
from aclbroker.broker.memory.groups.group import Account
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.transaction import (
    NO_PRODUCER,
    Outcome,
    Producer,
    TransactionState,
)
from aclbroker.broker.memory.transactions import Transactions
from aclbroker.protocol.errors import ErrorCode

ORDERS = ("orders", 0)
MINUTE = 60_000


class Written:
    """What the coordinator has written at the ends of transactions."""

    def __init__(self) -> None:
        self.partitions: list[tuple[str, int, Producer, bool]] = []
        self.groups: list[tuple[str, Producer, bool]] = []

    def end_partition(self, topic: str, index: int, producer: Producer, *, commits: bool) -> None:
        self.partitions.append((topic, index, producer, commits))

    def end_group(self, group_id: str, producer: Producer, *, commits: bool) -> Iterator[None]:
        self.groups.append((group_id, producer, commits))
        return iter(())


class Coordinator:
    """A coordinator with a clock that stands still and the ids 100, 101, ..."""

    def __init__(self) -> None:
        self.clock = Clock(source=lambda: 0)
        self.written = Written()
        ids: Iterator[int] = count(100)
        self.account = Account(1 << 20)
        self.all = Transactions(self.clock, ids, self.written, 15 * MINUTE, self.account)

    def begun(self, name: str = "a") -> Producer:
        """Return the producer of a transaction that has one partition."""
        producer = self.all.initialize(name, MINUTE, None).producer
        assert self.all.add(name, producer, [ORDERS]) == ErrorCode.NONE
        return producer

    def end(self, producer: Producer, *, commits: bool, second: bool, name: str = "a") -> Outcome:
        return self.all.end(name, producer, commits=commits, by_second_version=second)


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def test_a_new_id_gets_a_producer_of_epoch_0(coordinator):
    assert coordinator.all.initialize("a", MINUTE, None) == Outcome(
        ErrorCode.NONE, Producer(100, 0)
    )
    assert coordinator.all.initialize("b", MINUTE, None) == Outcome(
        ErrorCode.NONE, Producer(101, 0)
    )


def test_who_initializes_again_has_the_next_epoch_and_fences_the_first(coordinator):
    first = coordinator.all.initialize("a", MINUTE, None).producer
    second = coordinator.all.initialize("a", MINUTE, None).producer
    assert second == Producer(100, 1)
    assert coordinator.all.add("a", first, [ORDERS]) == ErrorCode.PRODUCER_FENCED
    for by_second in (False, True):
        ended = coordinator.end(first, commits=True, second=by_second)
        assert ended.code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(("name", "timeout", "code"), [
    ("", MINUTE, ErrorCode.INVALID_REQUEST),
    ("a", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ("a", 15 * MINUTE + 1, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
])  # fmt: skip
def test_an_id_or_a_time_out_that_cannot_be_is_refused(coordinator, name, timeout, code):
    assert coordinator.all.initialize(name, timeout, None) == Outcome(code, NO_PRODUCER)


def test_a_transaction_that_is_going_on_is_aborted_before_another_producer_gets_the_id(coordinator):
    coordinator.begun()
    first = coordinator.all.initialize("a", MINUTE, None)
    assert first.code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.written.partitions == [("orders", 0, Producer(100, 1), False)]
    assert coordinator.all.initialize("a", MINUTE, None).producer == Producer(100, 2)


def test_a_client_that_goes_on_after_an_error_gets_the_next_epoch_and_the_same_one_again(
    coordinator,
):
    producer = coordinator.all.initialize("a", MINUTE, None).producer
    bumped = coordinator.all.initialize("a", MINUTE, producer)
    assert bumped.producer == Producer(100, 1)
    assert coordinator.all.initialize("a", MINUTE, producer) == bumped
    newer = coordinator.all.initialize("a", MINUTE, None).producer
    assert newer == Producer(100, 2)
    assert coordinator.all.initialize("a", MINUTE, producer).code == ErrorCode.PRODUCER_FENCED
    stranger = Producer(7, 0)
    assert coordinator.all.initialize("a", MINUTE, stranger).code == ErrorCode.PRODUCER_FENCED


def test_a_client_with_a_producer_of_former_times_gets_a_new_one(coordinator):
    assert coordinator.all.initialize("a", MINUTE, Producer(7, 3)).producer == Producer(100, 0)


@pytest.mark.parametrize("commits", [False, True])
def test_the_first_version_ends_with_the_epoch_as_it_is_and_the_same_again(coordinator, commits):
    producer = coordinator.begun()
    assert coordinator.all.add("a", producer, groups=["g"]) == ErrorCode.NONE
    assert coordinator.end(producer, commits=commits, second=False) == Outcome(
        ErrorCode.NONE, NO_PRODUCER
    )
    assert coordinator.written.partitions == [("orders", 0, producer, commits)]
    assert coordinator.written.groups == [("g", producer, commits)]
    assert coordinator.end(producer, commits=commits, second=False).code == ErrorCode.NONE
    other = coordinator.end(producer, commits=not commits, second=False)
    assert other.code == ErrorCode.INVALID_TXN_STATE
    assert len(coordinator.written.partitions) == 1


@pytest.mark.parametrize("commits", [False, True])
def test_the_second_version_bumps_the_epoch_and_knows_a_request_that_comes_again(
    coordinator, commits
):
    producer = coordinator.begun()
    ended = coordinator.end(producer, commits=commits, second=True)
    assert ended == Outcome(ErrorCode.NONE, Producer(100, 1))
    assert coordinator.written.partitions == [("orders", 0, Producer(100, 1), commits)]
    assert coordinator.end(producer, commits=commits, second=True) == ended
    wrong = coordinator.end(producer, commits=not commits, second=True)
    assert wrong.code == ErrorCode.INVALID_TXN_STATE
    assert coordinator.end(ended.producer, commits=True, second=True).code == (
        ErrorCode.INVALID_TXN_STATE
    )
    assert coordinator.end(ended.producer, commits=False, second=True).producer == Producer(100, 2)


def test_an_empty_transaction_is_aborted_in_the_second_version_alone(coordinator):
    producer = coordinator.all.initialize("a", MINUTE, None).producer
    for commits in (False, True):
        first = coordinator.end(producer, commits=commits, second=False)
        assert first.code == ErrorCode.INVALID_TXN_STATE
    committed = coordinator.end(producer, commits=True, second=True)
    assert committed.code == ErrorCode.INVALID_TXN_STATE
    before = coordinator.end(Producer(100, -1), commits=False, second=True)
    assert before.code == ErrorCode.PRODUCER_FENCED
    assert coordinator.end(producer, commits=False, second=True).producer == Producer(100, 1)


def test_a_producer_without_epochs_gets_another_id_at_the_end(coordinator):
    producer = coordinator.all.initialize("a", MINUTE, None).producer
    while producer.epoch < 32_766:
        producer = coordinator.end(producer, commits=False, second=True).producer
    assert coordinator.all.add("a", producer, [ORDERS]) == ErrorCode.NONE
    ended = coordinator.end(producer, commits=True, second=True)
    assert ended.producer == Producer(101, 0)
    assert coordinator.written.partitions[-1] == ("orders", 0, Producer(100, 32_767), True)
    assert coordinator.end(producer, commits=True, second=True) == ended
    assert coordinator.all.initialize("a", MINUTE, producer) == ended
    assert coordinator.all.initialize("a", MINUTE, ended.producer).producer == Producer(101, 1)


def test_a_producer_without_epochs_gets_another_id_when_it_initializes(coordinator):
    producer = coordinator.all.initialize("a", MINUTE, None).producer
    while producer.epoch < 32_766:
        producer = coordinator.all.initialize("a", MINUTE, producer).producer
    assert coordinator.all.initialize("a", MINUTE, producer).producer == Producer(101, 0)
    assert coordinator.all.initialize("a", MINUTE, producer).producer == Producer(101, 0)


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(coordinator):
    producer = coordinator.begun()
    coordinator.clock.advance(MINUTE - 1)
    assert coordinator.written.partitions == []
    coordinator.clock.advance(1)
    assert coordinator.written.partitions == [("orders", 0, Producer(100, 1), False)]
    late = coordinator.end(producer, commits=True, second=False)
    assert late.code == ErrorCode.PRODUCER_FENCED
    # The epoch alone tells whoever commits by the second version of its own request sent again.
    again = coordinator.end(producer, commits=True, second=True)
    assert again.code == ErrorCode.INVALID_TXN_STATE


def test_time_does_not_end_a_transaction_that_began_after_another_ended(coordinator):
    producer = coordinator.begun()
    coordinator.clock.advance(MINUTE // 2)
    coordinator.end(producer, commits=True, second=False)
    coordinator.all.add("a", producer, [ORDERS])
    coordinator.clock.advance(MINUTE // 2)
    found = coordinator.all.find("a")
    assert found is not None
    assert (found.state, found.started_ms) == (TransactionState.ONGOING, MINUTE // 2)


def test_only_what_is_part_of_a_transaction_is_verified(coordinator):
    producer = coordinator.begun()
    verify = coordinator.all.verify
    assert verify("a", producer, ORDERS) == ErrorCode.NONE
    assert verify("a", producer, ("orders", 1)) == ErrorCode.TRANSACTION_ABORTABLE
    assert verify("a", producer, group_id="g") == ErrorCode.TRANSACTION_ABORTABLE
    coordinator.all.add("a", producer, groups=["g"])
    assert verify("a", producer, group_id="g") == ErrorCode.NONE
    assert verify("b", producer, ORDERS) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert verify("", producer, ORDERS) == ErrorCode.INVALID_REQUEST
    assert verify("a", producer._replace(epoch=9), ORDERS) == ErrorCode.PRODUCER_FENCED


def test_who_is_not_known_adds_and_ends_nothing(coordinator):
    producer = coordinator.begun()
    stranger = Producer(7, 0)
    assert coordinator.all.add("", producer, [ORDERS]) == ErrorCode.INVALID_REQUEST
    assert coordinator.all.add("b", producer, [ORDERS]) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.all.add("a", stranger, [ORDERS]) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    for second in (False, True):
        for who, name, code in (
            (producer, "", ErrorCode.INVALID_REQUEST),
            (producer, "b", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            (stranger, "a", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ):
            ended = coordinator.end(who, commits=True, second=second, name=name)
            assert ended == Outcome(ErrorCode(code), NO_PRODUCER)


def test_the_ids_that_were_used_the_longest_ago_give_way_and_never_one_at_work(
    coordinator, monkeypatch
):
    monkeypatch.setattr("aclbroker.broker.memory.transactions._MOST_IDS", 3)
    at_work = coordinator.begun("at work")
    for name in ("b", "c", "d"):
        coordinator.all.initialize(name, MINUTE, None)
    assert coordinator.all.ids() == ["at work", "c", "d"]
    for name in ("c", "d"):
        producer = coordinator.all.initialize(name, MINUTE, None).producer
        coordinator.all.add(name, producer, [ORDERS])
    refused = coordinator.all.initialize("e", MINUTE, None)
    assert refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinator.end(at_work, commits=True, second=True, name="at work").code == 0
    assert coordinator.all.initialize("e", MINUTE, None).code == ErrorCode.NONE


def test_a_transaction_takes_no_more_groups_than_fit(coordinator, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.memory.transactions._MOST_GROUPS", 1)
    producer = coordinator.begun()
    assert coordinator.all.add("a", producer, groups=["g"]) == ErrorCode.NONE
    assert coordinator.all.add("a", producer, groups=["h"]) == ErrorCode.INVALID_REQUEST
    assert coordinator.all.add("a", producer, groups=["g"]) == ErrorCode.NONE


MANY = [("orders", index) for index in range(1_000)]


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("second", [False, True])
def test_while_many_markers_are_written_the_transaction_is_being_prepared(
    coordinator, commits, second
):
    producer = coordinator.begun()
    coordinator.all.add("a", producer, MANY)
    ended = coordinator.end(producer, commits=commits, second=second)
    assert ended.code == ErrorCode.NONE
    known = ended.producer if second else producer
    transaction = coordinator.all.find("a")
    assert transaction.state.value == ("PrepareCommit" if commits else "PrepareAbort")
    assert 0 < len(coordinator.written.partitions) < len(MANY)
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.all.add("a", known, [ORDERS]) == concurrent
    assert coordinator.all.verify("a", known, ORDERS) == concurrent
    assert coordinator.all.initialize("a", MINUTE, None).code == concurrent
    again = coordinator.end(producer, commits=commits, second=second)
    assert again.code == concurrent
    other = coordinator.end(producer, commits=not commits, second=second)
    assert other.code == ErrorCode.INVALID_TXN_STATE
    coordinator.clock.advance(0)
    assert transaction.state.value == ("CompleteCommit" if commits else "CompleteAbort")
    assert {each[:2] for each in coordinator.written.partitions} == set(MANY)
    assert len(coordinator.written.partitions) == len(MANY)
    assert {each[3] for each in coordinator.written.partitions} == {commits}
    assert coordinator.all.add("a", known, [ORDERS]) == ErrorCode.NONE


def test_a_transaction_of_very_many_offsets_is_prepared_and_ends_whatever_happens_meanwhile():
    cluster = MemoryCluster(Clock(source=lambda: 0), [1], MemorySettings())
    transactions, offsets = cluster.transactions, cluster.groups.offsets
    names = [f"t{number}" for number in range(500)]
    for name in names:
        cluster.topics.create(name, 1)
    producer = transactions.initialize("a", MINUTE, None).producer
    taken = cluster.groups.account.taken
    transactions.add("a", producer, groups=["g"])
    offsets.pend(producer.producer_id, "g", [NewOffset(name, 0, 5) for name in names])
    assert transactions.end("a", producer, commits=True, by_second_version=False).code == 0
    found = transactions.find("a")
    assert found is not None
    assert found.state.value == "PrepareCommit"
    again = transactions.end("a", producer, commits=True, by_second_version=False)
    assert again.code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert transactions.initialize("a", MINUTE, None).code == ErrorCode.CONCURRENT_TRANSACTIONS
    offsets.delete("g", names[-1], 0)
    cluster.topics.delete(cluster.topics.by_name[names[-2]])
    cluster.clock.advance(1)
    assert found.state.value == "CompleteCommit"
    assert [name for name in names if offsets.get("g", name, 0) is None] == names[-2:]
    assert not any(offsets.is_unstable("g", name, 0) for name in names)
    cluster.groups.delete("g")
    assert cluster.groups.account.taken == taken
