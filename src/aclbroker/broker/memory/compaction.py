"""Compaction (``cleanup.policy=compact``): of each key only the last record is kept.

What is compressed by what Python cannot read (snappy, lz4, zstd) stays as it is. So do deletions of
keys after it, since it may have them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator
from math import inf
from operator import itemgetter
from struct import Struct
from typing import Final, NamedTuple

from aclbroker.broker.memory.batch import (
    CODEC,
    HEADER,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    OVERHEAD,
    Batch,
    deflated,
    plain_in_steps,
)
from aclbroker.broker.memory.checksum import crc32c_in_steps
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.segment import Segment

_CRC: Final = Struct(">I")
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_LENGTH: Final = 1
_MAX_TIMESTAMP: Final = 8
_COUNT: Final = 12

_MOST_KEYS: Final = 1_000_000
"""How many keys are looked at in one run; the rest waits for the next. Each takes memory."""

_RECORDS_AT_ONCE: Final = 256
"""How many records are looked at in one step."""

_ABORTED_AT_ONCE: Final = 1_000
_LARGE: Final = 1 << 18
"""A record of more bytes is copied in a step of its own."""

_last: Final = itemgetter(1)

_Aborted = dict[int, list[tuple[int, int]]]
"""Of each producer the first and the last offset of its aborted transactions, in their order."""


class _Record(NamedTuple):
    """Where a record is in its batch, with the time and the offset that it adds to the batch's."""

    begin: int
    end: int
    later: int
    delta: int
    key: bytes | None
    has_value: bool


def compact(log: PartitionLog, now_ms: int) -> Iterator[None]:
    """Compact a log, if so much of it is new that it is worth it; yields now and then.

    The last segment is never compacted, nor what is younger than ``min.compaction.lag.ms``, nor
    what a transaction under way may still change.
    """
    segments = _closed(log, now_ms)
    dirty = _dirty(log, segments)
    if not dirty:
        return
    aborted = yield from _aborted_of(log)
    last: dict[bytes, int] = {}
    end = segments[0].base_offset
    for segment in dirty:
        if len(last) >= _MOST_KEYS:
            break
        yield from _note(segment, last, aborted)
        end = segment.end_offset
    has_unread = False
    for segment in segments:
        if segment.end_offset <= end:
            has_unread = yield from _rewrite(log, segment, last, now_ms, has_unread=has_unread)
    log.compacted_to = end


def compacted_from(log: PartitionLog, now_ms: int) -> float:
    """Return the time before which `compact` has nothing to do, if nothing is written."""
    segments = _closed(log, now_ms)
    if _dirty(log, segments):
        return now_ms
    later = log.segments[len(segments) : -1]
    if not later or later[0].end_offset > log.last_stable_offset:
        return inf
    return later[0].max_timestamp + log.settings.min_compaction_lag_ms


def _dirty(log: PartitionLog, segments: list[Segment]) -> list[Segment]:
    """Return the segments that are new; none if they are so few that it is not worth it."""
    dirty = [segment for segment in segments if segment.end_offset > log.compacted_to]
    size = sum(segment.used for segment in segments)
    share = sum(segment.used for segment in dirty) / size if size else 0
    return [] if share < log.settings.min_cleanable_dirty_ratio else dirty


def _closed(log: PartitionLog, now_ms: int) -> list[Segment]:
    found: list[Segment] = []
    for segment in log.segments[:-1]:
        is_young = now_ms - segment.max_timestamp < log.settings.min_compaction_lag_ms
        if is_young or segment.end_offset > log.last_stable_offset:
            break
        found.append(segment)
    return found


def _aborted_of(log: PartitionLog) -> Generator[None, None, _Aborted]:
    found: _Aborted = {}
    # What is forgotten or added meanwhile concerns none of the segments.
    for number, each in enumerate(list(log.aborted), 1):
        found.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
        if not number % _ABORTED_AT_ONCE:
            yield
    return found


def _note(segment: Segment, last: dict[bytes, int], aborted: _Aborted) -> Iterator[None]:
    for batch in segment.batches():
        data = None
        if not (batch.is_control or _is_aborted(batch, aborted)):
            data = yield from plain_in_steps(batch)
        if data is not None:
            for number, record in enumerate(_records(data)):
                if record.key is not None:
                    last[record.key] = batch.base_offset + record.delta
                if not number % _RECORDS_AT_ONCE:
                    yield
        yield


def _is_aborted(batch: Batch, aborted: _Aborted) -> bool:
    if not batch.is_transactional:
        return False
    # Transactions of one producer do not overlap.
    of_producer = aborted.get(batch.producer_id, [])
    number = bisect_left(of_producer, batch.base_offset, key=_last)
    return number < len(of_producer) and of_producer[number][0] <= batch.base_offset


def _rewrite(
    log: PartitionLog, segment: Segment, last: dict[bytes, int], now_ms: int, *, has_unread: bool
) -> Generator[None, None, bool]:
    """Put a smaller segment in the place of one; ``has_unread`` if batches before were not read.

    Returns whether there are such batches now.
    """
    is_over = now_ms - segment.max_timestamp > log.settings.delete_retention_ms
    kept: list[tuple[Batch, bytearray | memoryview, int]] = []
    size = 0
    for batch in segment.batches():
        cleaned: _Cleaned | None = batch.data, batch.max_timestamp
        if not batch.is_control:
            records = yield from plain_in_steps(batch)
            has_unread |= records is None
            if records is not None:
                drops = is_over and not has_unread
                cleaned = yield from _cleaned(batch, records, last, drops_tombstones=drops)
        if cleaned is not None:
            kept.append((batch, *cleaned))
            size += len(cleaned[0])
        yield
    if size < segment.used:
        made = Segment(segment.base_offset, bytearray(size), segment.created_ms)
        for number, (batch, data, latest) in enumerate(kept):
            made.append(data, batch.base_offset, batch.last_offset, latest)
            if len(data) > _LARGE or not number % _RECORDS_AT_ONCE:
                yield
        made.end_offset = segment.end_offset
        log.replace(segment, made)
    return has_unread


_Cleaned = tuple[bytearray | memoryview, int]
"""A batch, and the latest time of its records."""


def _cleaned(
    batch: Batch,
    data: bytearray | memoryview,
    last: dict[bytes, int],
    *,
    drops_tombstones: bool,
) -> Generator[None, None, _Cleaned | None]:
    """Return a batch without the records that later ones replace, None if there are no others.

    ``data`` is the batch without compression.
    """
    made = bytearray(HEADER.size)
    count = kept = 0
    latest = NO_TIMESTAMP
    for count, record in enumerate(_records(data), 1):
        if (
            record.key is not None
            and last.get(record.key, -1) <= batch.base_offset + record.delta
            and (record.has_value or not drops_tombstones)
        ):
            kept += 1
            made += data[record.begin : record.end]
            latest = max(latest, batch.base_timestamp + record.later)
        if not count % _RECORDS_AT_ONCE or record.end - record.begin > _LARGE:
            yield
    if kept == count:
        return batch.data, batch.max_timestamp
    if not kept:
        return None
    if batch.attributes & LOG_APPEND_TIME:
        latest = batch.max_timestamp
    if batch.attributes & CODEC:
        made[HEADER.size :] = yield from deflated(bytes(memoryview(made)[HEADER.size :]))
    fields = list(batch[:-1])
    fields[_LENGTH] = len(made) - OVERHEAD
    fields[_MAX_TIMESTAMP] = latest
    fields[_COUNT] = kept
    HEADER.pack_into(made, 0, *fields)
    crc = yield from crc32c_in_steps(memoryview(made)[_CRC_FROM:])
    _CRC.pack_into(made, _CRC_AT, crc)
    return made, latest


def _records(data: bytearray | memoryview) -> Iterator[_Record]:
    """Return the records of a plain batch; what is malformed ends them."""
    position = HEADER.size
    try:
        while position < len(data):
            begin = position
            length, position = _varint(data, position)
            end = position + length
            if length <= 0 or end > len(data):
                return
            later, position = _varint(data, position + 1)
            delta, position = _varint(data, position)
            key_length, position = _varint(data, position)
            key = None
            if key_length >= 0:
                key = bytes(data[position : position + key_length])
                position += key_length
            value_length, _ = _varint(data, position)
            yield _Record(begin, end, later, delta, key, value_length >= 0)
            position = end
    except IndexError:
        return


def _varint(data: bytearray | memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
