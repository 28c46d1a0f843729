"""Transactions and who may go on with them, as the transaction coordinator of Kafka 4.3 has them.

The markers of a transaction that ends are written at once, unless there are so many that others
would wait: then it is being prepared meanwhile, as in Kafka. Rules: KIP-98, KIP-360 (epochs are
bumped after errors), KIP-447, KIP-588 and KIP-890 (the second version: partitions are added when
they are written to, and each end bumps the epoch).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Protocol

from aclbroker.broker.memory.clock import Clock, Timer
from aclbroker.protocol.errors import ErrorCode

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1

_EXHAUSTED_EPOCH: Final = 32_766
"""The last epoch that a client gets; one more is kept to fence it."""

_MOST_IDS: Final = 100_000
_MOST_GROUPS: Final = 10_000

_MARKERS_AT_ONCE: Final = 200
"""How many are written before others have their turn, in about 2 ms."""


class TransactionState(Enum):
    """Where a transactional id is; the values are the names that clients are told."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


_PREPARING: Final = {
    True: (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
    False: (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
}
"""The states of a transaction that is committed, or not, before and after its markers."""


class Producer(NamedTuple):
    """The id and the epoch of a producer."""

    producer_id: int
    epoch: int


NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_EPOCH)


class Outcome(NamedTuple):
    """An error code, and the producer that the client is from now on."""

    code: ErrorCode
    producer: Producer = NO_PRODUCER


class Markers(Protocol):
    """Where the end of a transaction is written."""

    def end_partition(self, topic: str, index: int, producer: Producer, *, commits: bool) -> None:
        """End the transaction of a producer in a partition, if that still exists."""

    def end_group(self, group_id: str, producer: Producer, *, commits: bool) -> Iterator[None]:
        """Let the offsets that a transaction committed count, or forget them, one at each step."""


class Transaction:
    """A transactional id with its producer, and its transaction if one is going on.

    ``partitions`` are pairs of a topic's name and an index, in the order in which they came.
    """

    def __init__(self, transactional_id: str, producer_id: int, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.previous_producer_id = NO_PRODUCER_ID
        self.last_epoch = NO_EPOCH
        self.timeout_ms = timeout_ms
        self.state = TransactionState.EMPTY
        self.partitions: dict[tuple[str, int], None] = {}
        self.groups: dict[str, None] = {}
        self.started_ms = -1
        self.by_second_version = False
        self.timer: Timer | None = None

    @property
    def producer(self) -> Producer:
        """Who may use the id now."""
        return Producer(self.producer_id, self.epoch)

    @property
    def is_preparing(self) -> bool:
        """Whether markers of its end are still to be written."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left that a client could get."""
        return self.epoch >= _EXHAUSTED_EPOCH


class Transactions:
    """All transactional ids of a cluster.

    ``producer_ids`` yields new ones, and ``longest_ms`` is the longest time-out that a client may
    ask for. Of more than `_MOST_IDS` those that were used the longest ago are forgotten, as Kafka
    forgets them after a time.
    """

    def __init__(
        self, clock: Clock, producer_ids: Iterator[int], markers: Markers, longest_ms: int
    ) -> None:
        self._clock = clock
        self._producer_ids = producer_ids
        self._markers = markers
        self._longest_ms = longest_ms
        self._by_id: dict[str, Transaction] = {}

    def find(self, transactional_id: str) -> Transaction | None:
        """Return what is known of a transactional id."""
        return self._by_id.get(transactional_id)

    def all(self) -> Sequence[Transaction]:
        """Return all transactional ids, as they are now."""
        return list(self._by_id.values())

    def initialize(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None
    ) -> Outcome:
        """Give a producer its id and an epoch of its own (InitProducerId).

        Whoever used the id before is fenced, and its transaction aborted; then the answer is
        CONCURRENT_TRANSACTIONS, so that the client asks again. ``expected`` is what a client thinks
        it is that goes on after an error (KIP-360).
        """
        if not transactional_id:
            return Outcome(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._longest_ms:
            return Outcome(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        transaction = self._by_id.get(transactional_id)
        if transaction is None:
            if not self._make_room():
                return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            transaction = Transaction(transactional_id, next(self._producer_ids), timeout_ms)
            self._by_id[transactional_id] = transaction
        elif expected is not None and not _may_go_on(transaction, expected):
            return Outcome(ErrorCode.PRODUCER_FENCED)
        if transaction.state is TransactionState.ONGOING:
            self._fence(transaction)
            return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.is_preparing:
            return Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
        code = self._bump(transaction, expected)
        if code:
            return Outcome(code)
        transaction.timeout_ms = timeout_ms
        transaction.state = TransactionState.EMPTY
        transaction.started_ms = -1
        self._used(transaction)
        return Outcome(ErrorCode.NONE, transaction.producer)

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[tuple[str, int]] = (),
        groups: Iterable[str] = (),
        *,
        by_second_version: bool = False,
    ) -> ErrorCode:
        """Add partitions and groups to a producer's transaction, which begins with the first.

        This is AddPartitionsToTxn and AddOffsetsToTxn, and what a write or a commit of offsets does
        by itself in the second version.
        """
        code, transaction = self._checked(transactional_id, producer)
        if transaction is None:
            return code
        if transaction.state is not TransactionState.ONGOING:
            transaction.state = TransactionState.ONGOING
            transaction.started_ms = self._clock.now_ms()
            transaction.timer = self._clock.call_later(
                transaction.timeout_ms, partial(self._fence, transaction)
            )
        transaction.previous_producer_id = transaction.producer_id
        transaction.by_second_version = by_second_version
        transaction.partitions |= dict.fromkeys(partitions)
        for group_id in groups:
            if len(transaction.groups) >= _MOST_GROUPS and group_id not in transaction.groups:
                return ErrorCode.INVALID_REQUEST
            transaction.groups[group_id] = None
        self._used(transaction)
        return ErrorCode.NONE

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partition: tuple[str, int] | None = None,
        group_id: str | None = None,
    ) -> ErrorCode:
        """Return why a partition or a group is not part of a producer's transaction (KIP-890)."""
        code, transaction = self._checked(transactional_id, producer)
        if transaction is None:
            return code
        is_part = partition in transaction.partitions or group_id in transaction.groups
        return ErrorCode.NONE if is_part else ErrorCode.TRANSACTION_ABORTABLE

    def end(
        self, transactional_id: str, producer: Producer, *, commits: bool, by_second_version: bool
    ) -> Outcome:
        """Commit or abort a producer's transaction (EndTxn).

        In the second version the producer has another epoch afterwards, and now and then another
        id, which the outcome has.
        """
        if not transactional_id:
            return Outcome(ErrorCode.INVALID_REQUEST)
        transaction = self._by_id.get(transactional_id)
        if transaction is None:
            return Outcome(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        check = _check_end_of_second if by_second_version else _check_end_of_first
        code = check(transaction, producer, commits=commits)
        if code is not None:
            known = transaction.producer if by_second_version and not code else NO_PRODUCER
            return Outcome(code, known)
        self._complete(transaction, commits=commits, bumps=by_second_version)
        return Outcome(ErrorCode.NONE, transaction.producer if by_second_version else NO_PRODUCER)

    def _checked(
        self, transactional_id: str, producer: Producer
    ) -> tuple[ErrorCode, Transaction | None]:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        transaction = self._by_id.get(transactional_id)
        if transaction is None or transaction.producer_id != producer.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, None
        if transaction.epoch != producer.epoch:
            return ErrorCode.PRODUCER_FENCED, None
        if transaction.is_preparing:
            return ErrorCode.CONCURRENT_TRANSACTIONS, None
        return ErrorCode.NONE, transaction

    def _bump(self, transaction: Transaction, expected: Producer | None) -> ErrorCode:
        """Give the producer its next epoch, or the one that it has if it only asks again."""
        epoch = transaction.epoch
        goes_on = expected is not None
        if transaction.is_exhausted and (expected is None or expected.epoch == epoch):
            transaction.previous_producer_id = transaction.producer_id
            transaction.producer_id = next(self._producer_ids)
            transaction.epoch = 0
            transaction.last_epoch = epoch if goes_on else NO_EPOCH
        elif expected is None or epoch == NO_EPOCH or expected.epoch == epoch:
            transaction.previous_producer_id = transaction.producer_id
            transaction.epoch += 1
            transaction.last_epoch = epoch if goes_on else NO_EPOCH
        elif expected.epoch != transaction.last_epoch:
            return ErrorCode.PRODUCER_FENCED
        return ErrorCode.NONE

    def _fence(self, transaction: Transaction) -> None:
        """Abort a transaction under an epoch that its client does not have."""
        self._complete(transaction, commits=False, bumps=True)

    def _complete(self, transaction: Transaction, *, commits: bool, bumps: bool) -> None:
        """Let a transaction end: its markers have the epoch that holds from now on."""
        rotates = bumps and transaction.is_exhausted
        old = transaction.producer
        if bumps:
            transaction.last_epoch = transaction.epoch
            transaction.epoch += 1
        ended = Producer(old.producer_id, transaction.epoch)
        partitions, transaction.partitions = transaction.partitions, {}
        groups, transaction.groups = transaction.groups, {}
        if transaction.state is not TransactionState.ONGOING:
            transaction.started_ms = self._clock.now_ms()
        transaction.previous_producer_id = old.producer_id
        if rotates:
            transaction.producer_id, transaction.epoch = next(self._producer_ids), 0
        if transaction.timer is not None:
            transaction.timer.cancel()
            transaction.timer = None
        self._used(transaction)
        self._write(transaction, self._written(partitions, groups, ended, commits=commits), commits)

    def _written(
        self,
        partitions: Iterable[tuple[str, int]],
        groups: Iterable[str],
        producer: Producer,
        *,
        commits: bool,
    ) -> Iterator[None]:
        """Write one marker or offset after the other, each before a step of the iterator."""
        for topic, index in partitions:
            self._markers.end_partition(topic, index, producer, commits=commits)
            yield
        for group_id in groups:
            yield from self._markers.end_group(group_id, producer, commits=commits)
            yield

    def _write(self, transaction: Transaction, markers: Iterator[None], commits: bool) -> None:
        """Write the next markers, and have the others written soon."""
        preparing, complete = _PREPARING[commits]
        # Before anything is written: it is ongoing for nobody any more.
        transaction.state = preparing
        count = sum(1 for _ in islice(markers, _MARKERS_AT_ONCE))
        if count < _MARKERS_AT_ONCE:
            transaction.state = complete
        else:
            self._clock.call_later(0, partial(self._write, transaction, markers, commits))

    def _used(self, transaction: Transaction) -> None:
        """Note that an id was used just now: the dictionary is in the order of use."""
        del self._by_id[transaction.transactional_id]
        self._by_id[transaction.transactional_id] = transaction

    def _make_room(self) -> bool:
        if len(self._by_id) < _MOST_IDS:
            return True
        ended = (
            each
            for each in self._by_id.values()
            if each.state is not TransactionState.ONGOING and not each.is_preparing
        )
        oldest = next(ended, None)
        if oldest is None:
            return False
        del self._by_id[oldest.transactional_id]
        return True


def _may_go_on(transaction: Transaction, expected: Producer) -> bool:
    """Tell whether a client that says who it is may be the one that has the id now."""
    if transaction.epoch == NO_EPOCH or expected.producer_id == transaction.producer_id:
        return True
    # It may ask again for what it was not told: that its id was replaced.
    was_before = expected.producer_id == transaction.previous_producer_id
    return was_before and expected.epoch >= _EXHAUSTED_EPOCH


def _check_end_of_first(
    transaction: Transaction, producer: Producer, *, commits: bool
) -> ErrorCode | None:
    """Return the code that answers an EndTxn below version 5; None if the transaction ends."""
    if transaction.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.state is TransactionState.ONGOING:
        return None
    if transaction.is_preparing:
        return _code_of_again(transaction, commits)
    same = TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
    return ErrorCode.NONE if transaction.state is same else ErrorCode.INVALID_TXN_STATE


def _check_end_of_second(
    transaction: Transaction, producer: Producer, *, commits: bool
) -> ErrorCode | None:
    """Return the code that answers an EndTxn of version 5; None if the transaction ends.

    The epoch tells a request that is sent again, whose answer was lost, from a new one. Without a
    transaction there is nothing to commit, and to abort it bumps the epoch.
    """
    state = transaction.state
    has_ended = state not in (TransactionState.EMPTY, TransactionState.ONGOING)
    was_rotated = (
        transaction.previous_producer_id == producer.producer_id
        and producer.epoch == _EXHAUSTED_EPOCH
        and transaction.epoch == 0
    )
    is_again = has_ended and (was_rotated or transaction.epoch == producer.epoch + 1)
    if transaction.producer_id != producer.producer_id and not was_rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not is_again and transaction.epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    if state is TransactionState.ONGOING:
        return None
    if transaction.is_preparing:
        return _code_of_again(transaction, commits)
    if is_again:
        was_committed = state is TransactionState.COMPLETE_COMMIT
        return ErrorCode.NONE if was_committed is commits else ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_TXN_STATE if commits else None


def _code_of_again(transaction: Transaction, commits: bool) -> ErrorCode:
    """Return what is told to who ends a transaction that is being ended already."""
    is_same = transaction.state is _PREPARING[commits][0]
    return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
