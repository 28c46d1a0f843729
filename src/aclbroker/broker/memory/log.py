"""The log of a partition: its records in memory, from which it reads, deletes and looks up."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple

from aclbroker.broker.memory.batch import (
    Batch,
    LogError,
    kept,
    marker,
    place,
    read_batch,
    single_batch,
)
from aclbroker.broker.memory.checks import check
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.producers import Producers, is_idempotent
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.segment import INDEX_ENTRY, Segment, capacity_for
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import pause

_NEWEST_PRODUCE: Final = 13
_FIRST_WITH_NEW_EPOCHS: Final = 12
"""From this version of Produce on each transaction has an epoch of its own (KIP-890)."""

_ABORTED_BYTES: Final = 200
"""About how much memory an aborted transaction takes that is remembered."""

_FORGOTTEN_AT_ONCE: Final = 10_000
"""How many aborted transactions are forgotten at once that nobody can read any more."""

_USED: Final = 2
"""A segment of which less than this part is used when another one begins is made smaller."""

_MOST_SEGMENTS: Final = 1_000
"""With so many a new segment begins only when the last one is full, whatever its age."""


class Appended(NamedTuple):
    """Where a batch was written; ``time_ms`` is -1 unless it is the time of the records now."""

    first_offset: int
    last_offset: int
    time_ms: int
    start_offset: int


class Aborted(NamedTuple):
    """A transaction that was aborted: its first offset, and that of its marker.

    ``stable_offset`` is the last stable offset after it: no later one begins before that.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class Read(NamedTuple):
    """Batches that were read, which are views of the log, and how far the log goes.

    ``aborted`` has the aborted transactions among them; None where they were not asked for.
    """

    parts: list[memoryview]
    size: int
    end_offset: int
    last_stable_offset: int
    start_offset: int
    aborted: list[Aborted] | None


Verify = Callable[[Batch], None]
"""Refuses a transactional batch of a producer without a transaction here, by a `LogError`."""


class PartitionLog:
    """The records of one partition, from ``start_offset`` to before ``end_offset``.

    There is one replica, so that the end is the high watermark. ``on_change`` has the functions
    that are called when there is something new to read. ``size`` is how many bytes its batches
    take, and ``compacted_to`` the offset up to which keys were compacted.
    """

    __slots__ = (
        *("_held", "_is_deleted", "_room", "_writes_to", "aborted", "compacted_to", "end_offset"),
        *("leader_epoch", "on_change", "producers", "segments", "settings", "size"),
        *("start_offset", "where"),
    )

    def __init__(self, where: str, settings: LogSettings, room: Room) -> None:
        self.where = where
        self.settings = settings
        self.start_offset = 0
        self.end_offset = 0
        self.leader_epoch = 0
        self.size = 0
        self.compacted_to = 0
        self.producers = Producers(where, room)
        self.aborted: list[Aborted] = []
        self.segments: list[Segment] = []
        self.on_change: set[Callable[[], None]] = set()
        self._room = room
        self._is_deleted = False
        self._held: dict[Segment, _Held] = {}
        self._writes_to: Segment | None = None

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the transactions that are under way, or else the end."""
        first = self.producers.first_unstable
        return self.end_offset if first is None else first

    def append(
        self,
        records: bytes | memoryview | None,
        *,
        now_ms: int,
        version: int = _NEWEST_PRODUCE,
        verify: Verify | None = None,
    ) -> Appended:
        """Check what a client sent in a Produce of a version, and write it. May pause and wait.

        ``verify`` is asked for a batch of a transaction that has none here yet. A batch that was
        written before is not written again. Raises `LogError`.
        """
        batch, rules = single_batch(records, version), self.settings.rules
        latest = check(batch, rules, now_ms, self.where)
        append_time = now_ms if rules.log_append_time else None
        data = kept(batch, append_time, latest)
        # From here on nothing pauses.
        if self._is_deleted:
            raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if (
            verify is not None
            and batch.is_transactional
            and not self.producers.in_transaction(batch.producer_id, batch.producer_epoch)
        ):
            verify(batch)
            if version >= _FIRST_WITH_NEW_EPOCHS:
                self.producers.check_first(batch, self.end_offset)
        return self._append(batch, data, append_time, now_ms)

    def _append(
        self, batch: Batch, data: bytearray, append_time: int | None, now_ms: int
    ) -> Appended:
        first = self.end_offset
        if is_idempotent(batch):
            before = self.producers.duplicate(batch)
            if before is not None:
                # As in Kafka its time is told in any case.
                return Appended(*before[2:], self.start_offset)
            self.producers.check(batch, first)
        place(data, first, self.leader_epoch)
        batch = read_batch(memoryview(data))
        more = self.producers.needs(batch.producer_id) if is_idempotent(batch) else 0
        self._write(data, batch.last_offset, batch.max_timestamp, now_ms, more=more)
        if is_idempotent(batch):
            self.producers.wrote(batch, first, now_ms)
        self._changed()
        time = -1 if append_time is None else append_time
        return Appended(first, batch.last_offset, time, self.start_offset)

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        *,
        commits: bool,
        now_ms: int,
        coordinator_epoch: int = 0,
    ) -> None:
        """Write the marker that ends a producer's transaction here.

        Raises `LogError`: INVALID_PRODUCER_EPOCH if its epoch is over, KAFKA_STORAGE_ERROR.
        """
        offset = self.end_offset
        producer = self.producers.by_id.get(producer_id)
        if producer is not None:
            self.producers.check_epoch(producer, epoch, offset)
        data = marker(offset, self.leader_epoch, producer_id, epoch, commits=commits, now_ms=now_ms)
        more = self.producers.needs(producer_id)
        self._write(data, offset, now_ms, now_ms, more=more, reserve=True)
        first = self.producers.ended(producer_id, epoch, now_ms, coordinator_epoch)
        if first is not None and not commits:
            self._room.used += _ABORTED_BYTES
            self.aborted.append(Aborted(producer_id, first, offset, self.last_stable_offset))
        self._changed()

    def _write(
        self,
        data: bytearray,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        *,
        more: int,
        reserve: bool = False,
    ) -> None:
        """Write a batch, if there is room for it and for ``more`` bytes, which are not taken."""
        segment = self.segments[-1] if self.segments else None
        if segment is None or self._is_full(segment, len(data), now_ms):
            capacity = capacity_for(len(data), self.size)
            self._room.take(capacity + INDEX_ENTRY + more, reserve=reserve)
            if segment is not None and segment.used < segment.capacity // _USED:
                self.replace(segment, segment.trimmed())
            own = data if capacity == len(data) else bytearray(capacity)
            segment = Segment(self.end_offset, own, now_ms)
            self.segments.append(segment)
            self._held[segment] = _Held(self, segment)
            self._room.add(self._held[segment])
        else:
            self._writes_to = segment
            try:
                self._room.take(INDEX_ENTRY + more, reserve=reserve)
            finally:
                self._writes_to = None
        self._room.give(more)
        segment.append(data, self.end_offset, last_offset, max_timestamp)
        self.size += len(data)
        self.end_offset = last_offset + 1

    def _is_full(self, segment: Segment, size: int, now_ms: int) -> bool:
        """Tell whether a batch begins a new segment, by its size or its time."""
        is_over = now_ms - segment.created_ms >= self.settings.segment_ms
        return (
            not segment.has_room(size)
            or segment.used + size > self.settings.segment_bytes
            or (is_over and len(self.segments) < _MOST_SEGMENTS)
        )

    def _changed(self) -> None:
        for function in list(self.on_change):
            function()

    def read(
        self, offset: int, max_bytes: int, *, whole: bool = True, committed: bool = False
    ) -> Read:
        """Read batches from the one with an offset on: whole ones, of at most ``max_bytes``.

        With ``whole`` the first batch is there even if it has more. With ``committed`` nothing is
        read from the last stable offset on. Raises `LogError` with OFFSET_OUT_OF_RANGE.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise LogError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.where}, but we only "
                f"have log segments upto {self.end_offset} and starting from {self.start_offset}.",
            )
        stable = self.last_stable_offset
        end = stable if committed else self.end_offset
        parts: list[memoryview] = []
        size = 0
        behind = offset
        number = max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)
        while number < len(self.segments) and self.segments[number].base_offset < end:
            segment = self.segments[number]
            first = segment.number_of(offset)
            if first < segment.count and segment.offsets[first] < end:
                part, last = segment.read(first, max_bytes - size, end, whole=whole and not parts)
                if last > first:
                    parts.append(part)
                    size += len(part)
                    behind = segment.batch(last - 1).last_offset + 1
                if last < segment.count:
                    break
            number += 1
        aborted = self._aborted_between(offset, behind) if committed else None
        return Read(parts, size, self.end_offset, stable, self.start_offset, aborted)

    def _aborted_between(self, offset: int, end: int) -> list[Aborted]:
        """Return the aborted transactions with records from an offset on, before an end."""
        # Their markers are in order, their first offsets are not.
        found = []
        for number in range(self._aborted_before(offset), len(self.aborted)):
            each = self.aborted[number]
            if each.first_offset < end:
                found.append(each)
            if each.stable_offset >= end:
                break
        return found

    def _aborted_before(self, offset: int) -> int:
        """Return how many of the aborted transactions were over before an offset."""
        return bisect_left(self.aborted, offset, key=_marker_offset)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the last leader epoch up to one, and the offset at which it ends; -1 for none."""
        if epoch != self.leader_epoch:
            return -1, -1
        return self.leader_epoch, self.end_offset

    def delete_before(self, offset: int) -> None:
        """Delete the records before an offset; -1 stands for the end.

        Raises `LogError` with OFFSET_OUT_OF_RANGE beyond the end.
        """
        before = self.end_offset if offset == -1 else offset
        if not 0 <= before <= self.end_offset:
            raise LogError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.start_offset = max(self.start_offset, before)
        while self.segments and self.segments[0].end_offset <= self.start_offset:
            self._remove(self.segments[0])
        self._forget_aborted()

    def delete_old(self, now_ms: int) -> None:
        """Delete whole segments as ``retention.ms`` and ``retention.bytes`` say."""
        self._forget_aborted()
        settings = self.settings
        if not settings.deletes:
            return
        while self.segments and self._may_delete(self.segments[0]):
            first = self.segments[0]
            is_over = 0 <= settings.retention_ms < now_ms - first.max_timestamp
            if not is_over and not self._is_too_much(first):
                return
            self.delete_before(first.end_offset)

    def old_from(self) -> float:
        """Return the time before which `delete_old` has nothing to do, if nothing is written."""
        settings = self.settings
        if self._aborted_before(self.start_offset):
            return -inf
        if not settings.deletes or not self.segments or not self._may_delete(self.segments[0]):
            return inf
        first = self.segments[0]
        if self._is_too_much(first):
            return -inf
        return inf if settings.retention_ms < 0 else first.max_timestamp + settings.retention_ms + 1

    def _is_too_much(self, first: Segment) -> bool:
        rest = self.size - first.used
        return 0 <= self.settings.retention_bytes <= rest and len(self.segments) > 1

    def _may_delete(self, segment: Segment) -> bool:
        return segment.end_offset <= self.last_stable_offset

    def clear(self) -> None:
        """Give all memory back, for the topic is deleted; whoever waits is told. May pause."""
        self._is_deleted = True
        for segment in list(self.segments):
            self._remove(segment)
        aborted, self.aborted = self.aborted, []
        self._room.give(_ABORTED_BYTES * len(aborted))
        self._changed()
        while aborted:
            del aborted[-_FORGOTTEN_AT_ONCE:]
            pause()
        self.producers.clear()

    def replace(self, old: Segment, new: Segment) -> None:
        """Put a smaller segment in the place of another, if that is still there."""
        if old not in self.segments:
            return
        self.segments[self.segments.index(old)] = new
        self._room.remove(self._held.pop(old))
        self._held[new] = _Held(self, new)
        self._room.used += self._held[new].size
        self._room.add(self._held[new])
        self.size += new.used - old.used

    def _remove(self, segment: Segment) -> None:
        self.segments.remove(segment)
        self._room.remove(self._held.pop(segment))
        self.size -= segment.used

    def _forget_aborted(self) -> None:
        gone = min(self._aborted_before(self.start_offset), _FORGOTTEN_AT_ONCE)
        del self.aborted[:gone]
        self._room.give(_ABORTED_BYTES * gone)

    def may_go(self, segment: Segment) -> bool:
        """Tell whether a segment may be removed to make room: the first one, if none is read."""
        return (
            self.settings.deletes
            and segment is self.segments[0]
            and segment is not self._writes_to
            and self._may_delete(segment)
        )


class _Held:
    """A segment of a log as what takes memory."""

    __slots__ = ("log", "segment")

    def __init__(self, log: PartitionLog, segment: Segment) -> None:
        self.log = log
        self.segment = segment

    @property
    def size(self) -> int:
        return self.segment.capacity + INDEX_ENTRY * self.segment.count

    def may_go(self) -> bool:
        return self.log.may_go(self.segment)

    def go(self) -> None:
        self.log.delete_before(self.segment.end_offset)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _marker_offset(aborted: Aborted) -> int:
    return aborted.last_offset
