"""Transactions and who may go on with them, as the transaction coordinator of Kafka 4.3 has them.

The markers of a transaction that ends are written at once, unless there are so many that others
would wait: then it is being prepared meanwhile, as in Kafka. Rules: KIP-98, KIP-360 (epochs are
bumped after errors), KIP-447, KIP-588 and KIP-890 (the second version: partitions are added when
they are written to, and each end bumps the epoch).
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, Protocol

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.groups.group import Account, Full
from aclbroker.broker.memory.transaction import (
    NO_EPOCH,
    NO_PRODUCER,
    PREPARING,
    Outcome,
    Producer,
    Transaction,
    TransactionState,
    check_end_of_first,
    check_end_of_second,
    may_go_on,
)
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

_MOST_IDS: Final = 100_000
_MOST_GROUPS: Final = 10_000

_MARKERS_AT_ONCE: Final = 200
"""How many are written before others have their turn, in about 2 ms."""

_ID_BYTES: Final = 1_000
_PART_BYTES: Final = 200
"""About how much memory an id takes, and a partition or a group of its transaction, besides their
names. Those of topics are kept once.
"""

_LOOKED_AT: Final = 5_000
"""How many ids are looked at to make room: with more of them others would wait."""

_NAMED_AT_ONCE: Final = 1_000


class Markers(Protocol):
    """Where the end of a transaction is written."""

    def end_partition(self, topic: str, index: int, producer: Producer, *, commits: bool) -> None:
        """End the transaction of a producer in a partition, if that still exists."""

    def end_group(self, group_id: str, producer: Producer, *, commits: bool) -> Iterator[None]:
        """Let the offsets that a transaction committed count, or forget them, one at each step."""


class Transactions:
    """All transactional ids of a cluster.

    ``producer_ids`` yields new ones, and ``longest_ms`` is the longest time-out that a client may
    ask for. ``account`` counts what they take. Of more than `_MOST_IDS`, or if the account is full,
    those that were used the longest ago are forgotten, as Kafka forgets them after a time.
    """

    def __init__(
        self,
        clock: Clock,
        producer_ids: Iterator[int],
        markers: Markers,
        longest_ms: int,
        account: Account,
    ) -> None:
        self._clock = clock
        self._producer_ids = producer_ids
        self._markers = markers
        self._longest_ms = longest_ms
        self._account = account
        self._by_id: dict[str, Transaction] = {}
        self._adds_to: Transaction | None = None
        account.make_room = self._give_room

    def find(self, transactional_id: str) -> Transaction | None:
        """Return what is known of a transactional id."""
        return self._by_id.get(transactional_id)

    def ids(self) -> Sequence[str]:
        """Return a copy of all transactional ids."""
        return list(self._by_id)

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
            if not self._make_room(transactional_id):
                return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            transaction = Transaction(transactional_id, next(self._producer_ids), timeout_ms)
            self._by_id[transactional_id] = transaction
        elif expected is not None and not may_go_on(transaction, expected):
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
        partitions: Collection[tuple[str, int]] = (),
        groups: Collection[str] = (),
        *,
        by_second_version: bool = False,
    ) -> ErrorCode:
        """Add partitions and groups to a producer's transaction, which begins with the first.

        This is AddPartitionsToTxn and AddOffsetsToTxn, and what a write or a commit of offsets does
        by itself in the second version. May pause if the partitions are many. Without room for
        them nothing is added: COORDINATOR_NOT_AVAILABLE, after which clients try again.
        """
        new = dict.fromkeys(in_turns(partitions, _NAMED_AT_ONCE))
        code, transaction = self._checked(transactional_id, producer)
        if transaction is None:
            return code
        new_groups = [each for each in groups if each not in transaction.groups]
        if len(transaction.groups) + len(new_groups) > _MOST_GROUPS:
            return ErrorCode.INVALID_REQUEST
        if not self._has_room(transaction, len(new.keys() - transaction.partitions), new_groups):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if transaction.state is not TransactionState.ONGOING:
            transaction.state = TransactionState.ONGOING
            transaction.started_ms = self._clock.now_ms()
            transaction.timer = self._clock.call_later(
                transaction.timeout_ms, partial(self._fence, transaction)
            )
        transaction.previous_producer_id = transaction.producer_id
        transaction.by_second_version = by_second_version
        transaction.partitions |= new
        transaction.groups |= dict.fromkeys(new_groups)
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
        check = check_end_of_second if by_second_version else check_end_of_first
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
        preparing, complete = PREPARING[commits]
        # Before anything is written: it is ongoing for nobody any more.
        transaction.state = preparing
        count = sum(1 for _ in islice(markers, _MARKERS_AT_ONCE))
        if count < _MARKERS_AT_ONCE:
            transaction.state = complete
            self._account.give(transaction.taken)
            transaction.taken = 0
        else:
            self._clock.call_later(0, partial(self._write, transaction, markers, commits))

    def _used(self, transaction: Transaction) -> None:
        """Note that an id was used just now: the dictionary is in the order of use."""
        del self._by_id[transaction.transactional_id]
        self._by_id[transaction.transactional_id] = transaction

    def _make_room(self, transactional_id: str) -> bool:
        if len(self._by_id) >= _MOST_IDS:
            oldest = next((each for each in self._by_id.values() if each.is_idle), None)
            if oldest is None:
                return False
            self._forget(oldest)
        try:
            self._account.take(_bytes_of_id(transactional_id))
        except Full:
            return False
        return True

    def _has_room(self, transaction: Transaction, partitions: int, groups: Iterable[str]) -> bool:
        """Count what more partitions and groups of a transaction take, if there is room for it."""
        size = _PART_BYTES * partitions
        size += sum(_PART_BYTES + sys.getsizeof(group_id) for group_id in groups)
        self._adds_to = transaction
        try:
            self._account.take(size)
        except Full:
            return False
        finally:
            self._adds_to = None
        transaction.taken += size
        return True

    def _give_room(self, size: int) -> None:
        """Forget ids with nothing under way, for others that need their bytes."""
        until = self._account.taken - size
        for transaction in list(islice(self._by_id.values(), _LOOKED_AT)):
            if self._account.taken <= until:
                return
            if transaction.is_idle and transaction is not self._adds_to:
                self._forget(transaction)
            else:
                self._used(transaction)  # The next time others are looked at.

    def _forget(self, transaction: Transaction) -> None:
        del self._by_id[transaction.transactional_id]
        self._account.give(_bytes_of_id(transaction.transactional_id))


def _bytes_of_id(transactional_id: str) -> int:
    return _ID_BYTES + sys.getsizeof(transactional_id)
