"""A transactional id and where its transaction is, and what its producer may do then."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from aclbroker.broker.memory.clock import Timer
from aclbroker.protocol.errors import ErrorCode

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1

_EXHAUSTED_EPOCH: Final = 32_766
"""The last epoch that a client gets; one more is kept to fence it."""


class TransactionState(Enum):
    """Where a transactional id is; the values are the names that clients are told."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARING: Final = {
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


class Transaction:
    """A transactional id with its producer, and its transaction if one is going on.

    ``partitions`` are pairs of a topic's name and an index, in the order in which they came;
    ``taken`` is how many bytes these and the groups take, about.
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
        self.taken = 0
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
    def is_idle(self) -> bool:
        """Whether nothing is under way or still to be written."""
        return self.state is not TransactionState.ONGOING and not self.is_preparing

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left that a client could get."""
        return self.epoch >= _EXHAUSTED_EPOCH


def may_go_on(transaction: Transaction, expected: Producer) -> bool:
    """Tell whether a client that says who it is may be the one that has the id now."""
    if transaction.epoch == NO_EPOCH or expected.producer_id == transaction.producer_id:
        return True
    # It may ask again for what it was not told: that its id was replaced.
    was_before = expected.producer_id == transaction.previous_producer_id
    return was_before and expected.epoch >= _EXHAUSTED_EPOCH


def check_end_of_first(
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


def check_end_of_second(
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
    is_same = transaction.state is PREPARING[commits][0]
    return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
