"""What a partition knows of the producers that have written to it: their last batches, and whether
a transaction of theirs is under way. It follows Kafka's ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final, NamedTuple

from aclbroker.broker.memory.batch import NO_PRODUCER, Batch, LogError
from aclbroker.broker.memory.room import Room
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

EXPIRATION_MS: Final = 86_400_000
"""How long a producer that writes nothing is remembered (``producer.id.expiration.ms``)."""

MOST_PRODUCERS: Final = 10_000
"""How many producers one partition remembers. Then those go that have written nothing for longest
and have no transaction under way. Kafka has no such limit.
"""

PRODUCER_BYTES: Final = 1_500
"""About how much memory a producer takes that is remembered."""

_KEPT_BATCHES: Final = 5
_MOST_SEQUENCE: Final = 0x7FFFFFFF
_NO_EPOCH: Final = -1


class Written(NamedTuple):
    """A batch that was written: its sequence numbers and offsets, first and last, and its time."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    time_ms: int


class Producer:
    """What is known of a producer; ``transaction_start`` is None if none of it is under way.

    ``used_ms`` is when it last wrote, ``last_ms`` the time of its last batch or marker, and
    ``coordinator_epoch`` that of its last marker. It takes memory, which others get when there is
    no more: the producer goes on as one that nobody knows.
    """

    __slots__ = (
        *("_others", "batches", "coordinator_epoch", "epoch", "last_ms", "producer_id"),
        *("transaction_start", "transaction_ms", "used_ms"),
    )

    def __init__(self, producer_id: int, epoch: int, others: Producers) -> None:
        self._others = others
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches: tuple[Written, ...] = ()
        self.transaction_start: int | None = None
        self.transaction_ms = -1
        self.used_ms = -1
        self.last_ms = -1
        self.coordinator_epoch = -1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, -1 if none is known."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return PRODUCER_BYTES

    def may_go(self) -> bool:
        """Tell whether it may be forgotten to make room."""
        return self.transaction_start is None

    def go(self) -> None:
        """Forget it, which gives its bytes back to the room."""
        self._others.forget(self)

    def written(self, batch: Batch) -> Written | None:
        """Return the batch that was written before with the same sequence numbers."""
        if batch.producer_epoch != self.epoch:
            return None
        for each in self.batches:
            if each[:2] == (batch.base_sequence, batch.last_sequence):
                return each
        return None


class Producers:
    """The producers of one partition by id, in the order in which they last wrote.

    They take their memory from ``room``.
    """

    __slots__ = ("_room", "_transactions", "_where", "by_id")

    def __init__(self, where: str, room: Room) -> None:
        self._room = room
        self.by_id: dict[int, Producer] = {}
        self._where = where
        # In the order of their first offsets, since offsets only grow.
        self._transactions: dict[int, int] = {}

    def __iter__(self) -> Iterator[Producer]:
        return iter(self.by_id.values())

    @property
    def first_unstable(self) -> int | None:
        """The first offset of all transactions that are under way, None if there are none."""
        return next(iter(self._transactions.values()), None)

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Tell whether a transaction that a producer began in an epoch is under way here."""
        return producer_id in self._transactions and self.by_id[producer_id].epoch == epoch

    def duplicate(self, batch: Batch) -> Written | None:
        """Return what was written of a batch already, if it is one of the producer's last five."""
        producer = self.by_id.get(batch.producer_id)
        return None if producer is None else producer.written(batch)

    def check(self, batch: Batch, offset: int) -> None:
        """Refuse a batch that must not be written now.

        Raises `LogError`: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or
        INVALID_TXN_STATE. A producer that is not known may begin with any number, as in Kafka:
        all that it wrote may have been deleted.
        """
        producer = self.by_id.get(batch.producer_id)
        if producer is None:
            return
        self.check_epoch(producer, batch.producer_epoch, offset)
        self._check_sequence(producer, batch, offset)
        if producer.transaction_start is not None and not batch.is_transactional:
            raise LogError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {batch.producer_id} at offset "
                f"{offset} in partition {self._where}",
            )

    def check_first(self, batch: Batch, offset: int) -> None:
        """Refuse a transaction that does not begin with 0, of a producer that is not known.

        Raises `LogError` with OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        producer = self.by_id.get(batch.producer_id)
        if batch.base_sequence and (producer is None or not producer.batches):
            raise LogError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {batch.producer_id} at offset {offset} in "
                f"partition {self._where}: {batch.base_sequence} (incoming seq. number). Expected "
                "sequence 0 for transactions v2 idempotent producer with no existing state.",
            )

    def check_epoch(self, producer: Producer, epoch: int, offset: int) -> None:
        """Refuse an epoch that is over. Raises `LogError` with INVALID_PRODUCER_EPOCH."""
        if epoch < producer.epoch:
            raise LogError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer.producer_id} at offset {offset} in {self._where} is "
                f"{epoch}, which is smaller than the last seen epoch {producer.epoch}",
            )

    def _check_sequence(self, producer: Producer, batch: Batch, offset: int) -> None:
        first = batch.base_sequence
        if batch.producer_epoch != producer.epoch:
            if first and producer.epoch != _NO_EPOCH:
                raise LogError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {producer.producer_id} at "
                    f"offset {offset} in partition {self._where}: {batch.producer_epoch} (request "
                    f"epoch), {first} (seq. number), {producer.epoch} (current producer epoch)",
                )
            return
        last = producer.last_sequence
        if first != last + 1 and not (first == 0 and last == _MOST_SEQUENCE):
            raise LogError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer.producer_id} at offset "
                f"{offset} in partition {self._where}: {first} (incoming seq. number), {last} "
                "(current end sequence number)",
            )

    def wrote(self, batch: Batch, first_offset: int, now_ms: int) -> None:
        """Note a batch that was checked and written at an offset."""
        producer = self._used(batch.producer_id, batch.producer_epoch, now_ms)
        producer.last_ms = batch.max_timestamp
        last_offset = first_offset + batch.last_offset_delta
        new = Written(
            *(batch.base_sequence, batch.last_sequence, first_offset, last_offset),
            batch.max_timestamp,
        )
        producer.batches = (*producer.batches[1 - _KEPT_BATCHES :], new)
        if batch.is_transactional and producer.transaction_start is None:
            producer.transaction_start = first_offset
            producer.transaction_ms = now_ms
            self._transactions[batch.producer_id] = first_offset

    def ended(
        self, producer_id: int, epoch: int, now_ms: int, coordinator_epoch: int = 0
    ) -> int | None:
        """Note the marker that ends a transaction; returns its first offset, None without one.

        As in Kafka, a marker of a later epoch makes the producer begin its numbers anew.
        """
        producer = self._used(producer_id, epoch, now_ms)
        first, producer.transaction_start = producer.transaction_start, None
        producer.coordinator_epoch = coordinator_epoch
        producer.last_ms = now_ms
        self._transactions.pop(producer_id, None)
        return first

    def needs(self, producer_id: int) -> int:
        """Return how many bytes it takes to note what a producer writes."""
        return 0 if producer_id in self.by_id else PRODUCER_BYTES

    def _used(self, producer_id: int, epoch: int, now_ms: int) -> Producer:
        producer = self.by_id.pop(producer_id, None)
        if producer is None:
            self._make_room()
            producer = Producer(producer_id, epoch, self)
            self._room.used += PRODUCER_BYTES
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches = ()
        producer.used_ms = now_ms
        self.by_id[producer_id] = producer
        self._room.add(producer)
        return producer

    def _make_room(self) -> None:
        if len(self.by_id) < MOST_PRODUCERS:
            return
        for producer in self.by_id.values():
            if producer.may_go():
                self.forget(producer)
                return

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> None:
        """Forget the producers that have written nothing for long and have nothing under way."""
        over = []
        for producer in self.by_id.values():
            if now_ms - producer.used_ms < expiration_ms:
                break
            if producer.may_go():
                over.append(producer)
        for producer in over:
            self.forget(producer)

    def expire_from(self, expiration_ms: int = EXPIRATION_MS) -> float:
        """Return the time before which `expire` has nothing to do, if nobody writes."""
        idle = (each for each in self.by_id.values() if each.may_go())
        first = next(idle, None)
        return inf if first is None else first.used_ms + expiration_ms

    def forget(self, producer: Producer) -> None:
        """Forget a producer, and give its memory back."""
        del self.by_id[producer.producer_id]
        self._room.remove(producer)

    def clear(self) -> None:
        """Forget all, for the topic is deleted. May pause."""
        self._transactions.clear()
        for producer in in_turns(list(self.by_id.values())):
            if self.by_id.get(producer.producer_id) is producer:
                self.forget(producer)


def is_idempotent(batch: Batch) -> bool:
    """Tell whether a batch has a producer id."""
    return batch.producer_id > NO_PRODUCER
