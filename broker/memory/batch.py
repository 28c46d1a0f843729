"""Batches of records (magic 2), checked as a broker of Kafka does before it keeps them.

A batch is kept as it came, compressed or not: only its base offset and its leader epoch are set,
which its checksum does not cover.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.util import calc_crc32c

from aclbroker.broker.memory.checksum import crc32c
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import pause

HEADER: Final = Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base timestamp,
maximal timestamp, producer id, its epoch, base sequence and number of records.
"""

OVERHEAD: Final = 12
"""How many bytes of a batch its length does not count."""

CODEC: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
NO_PRODUCER: Final = -1
NO_TIMESTAMP: Final = -1

LARGEST_BATCH: Final = 12 << 20
"""In bytes. It is copied at once, which keeps others waiting; Kafka has no such limit but
``max.message.bytes``.
"""

_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_LEAST_LENGTH: Final = 14
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_ATTRIBUTES_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_MOST_SEQUENCE: Final = 0x7FFFFFFF
_ZSTD: Final = 4
_GZIP: Final = 1
_NOT_GZIP: Final = ErrorCode.UNKNOWN_SERVER_ERROR
_FIRST_VERSION_WITH_ZSTD: Final = 7
_MOST_INFLATED: Final = 16 << 20
_INFLATED_AT_ONCE: Final = 1 << 20
_DEFLATED_AT_ONCE: Final = 1 << 16
_ERRORS_SHOWN: Final = 3

_ERRORS_KEPT: Final = 1_000
"""How many wrong records of a batch are named, of which there can be millions."""

_RECORDS_AT_ONCE: Final = 128

_START: Final = Struct(">qii")
_LONG: Final = Struct(">q")
_SHORT: Final = Struct(">h")
_CRC: Final = Struct(">I")


class LogError(Exception):
    """A reason not to keep, to read or to delete records: an error code of Kafka.

    ``record_errors`` has the indices of the first records that are wrong, each with what is wrong.
    ``is_checked`` is False if it was found before the log was asked.
    """

    is_checked = True

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        record_errors: tuple[tuple[int, str], ...] = (),
    ) -> None:
        super().__init__(code.name if message is None else message)
        self.code = code
        self.message = message
        self.record_errors = record_errors


class NoBatch(LogError):
    """A reason why bytes are not the one batch that they should be."""

    is_checked = False


class Batch(NamedTuple):
    """The header of a batch, and ``data``, which has all of it."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    data: memoryview

    @property
    def size(self) -> int:
        """How many bytes the batch takes."""
        return self.length + OVERHEAD

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it is a marker that a broker has written."""
        return bool(self.attributes & CONTROL)

    @property
    def last_sequence(self) -> int:
        """The sequence number of its last record, which begin anew after 2**31 - 1."""
        last = self.base_sequence + self.last_offset_delta
        return last if last <= _MOST_SEQUENCE else last - _MOST_SEQUENCE - 1


class Rules(NamedTuple):
    """What the configuration of a topic asks of batches; times are in milliseconds."""

    max_bytes: int = 1_048_588
    is_compacted: bool = False
    log_append_time: bool = False
    before_max_ms: int = (1 << 63) - 1
    after_max_ms: int = 3_600_000


def read_batch(data: memoryview, at: int = 0) -> Batch:
    """Return the batch at a place, which must have a whole one of magic 2."""
    fields = HEADER.unpack_from(data, at)
    return tuple.__new__(Batch, (*fields, data[at : at + fields[1] + OVERHEAD]))


def single_batch(records: bytes | memoryview | None, version: int) -> Batch:
    """Return the one batch of a partition in a Produce of a version, as Kafka reads it.

    Raises `LogError`: INVALID_RECORD unless it is exactly one batch of magic 2, CORRUPT_MESSAGE if
    it cannot be read, UNSUPPORTED_COMPRESSION_TYPE for zstd before version 7 (KIP-110).
    """
    data = memoryview(records or b"").cast("B")
    if _magic_at(data, 0) != _MAGIC:
        raise NoBatch(ErrorCode.INVALID_RECORD)
    if len(data) < HEADER.size:
        raise NoBatch(ErrorCode.CORRUPT_MESSAGE)
    batch = read_batch(data)
    if batch.attributes & CODEC == _ZSTD and version < _FIRST_VERSION_WITH_ZSTD:
        raise NoBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if _magic_at(data, batch.size) is not None:
        raise NoBatch(ErrorCode.INVALID_RECORD)
    return batch


def _magic_at(data: memoryview, at: int) -> int | None:
    """Return the magic of a whole batch at a place, None if there is none."""
    if len(data) - at <= _MAGIC_AT:
        return None
    length = int.from_bytes(data[at + 8 : at + OVERHEAD], "big", signed=True)
    if length < _LEAST_LENGTH:
        raise NoBatch(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LEAST_LENGTH})",
        )
    magic = data[at + _MAGIC_AT]
    if magic > _MAGIC:
        raise NoBatch(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    return magic if len(data) - at >= length + OVERHEAD else None


def check(batch: Batch, rules: Rules, now_ms: int, where: str) -> None:
    """Refuse a batch of a client that a broker of Kafka refuses, in its order of checks.

    ``where`` names the partition in messages. May pause. Raises `LogError`.
    """
    if batch.base_offset:
        raise LogError(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch in the append to {where} should be 0, but it is "
            f"{batch.base_offset}",
        )
    most = min(rules.max_bytes, LARGEST_BATCH)
    if batch.size > most:
        raise LogError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {where} is {batch.size} bytes which exceeds "
            f"the maximum configured value of {most}.",
        )
    if batch.length < HEADER.size - OVERHEAD:
        raise LogError(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt in topic partition {where}.")
    pause()
    computed = crc32c(batch.data[_CRC_FROM:])
    if computed != batch.crc:
        raise LogError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {batch.crc}, computed crc = {computed}) in topic "
            f"partition {where}.",
        )
    _check_counts(batch, where)
    if batch.attributes & CODEC > _ZSTD:
        raise LogError(ErrorCode.UNKNOWN_SERVER_ERROR, "The compression is unknown.")
    _check_times(batch, rules, now_ms, where)


def _check_counts(batch: Batch, where: str) -> None:
    message = None
    if batch.last_offset_delta < 0:
        message = f"Batch has an invalid offset range: [0, {batch.last_offset_delta}]"
    elif batch.record_count <= 0:
        message = f"Invalid reported count for record batch: {batch.record_count}"
    elif batch.record_count != batch.last_offset_delta + 1:
        message = (
            f"Inconsistent batch offset range [0, {batch.last_offset_delta}] and count of records "
            f"{batch.record_count}"
        )
    elif batch.is_control:
        message = "Clients are not allowed to write control records"
    elif batch.producer_id > NO_PRODUCER and batch.base_sequence < 0:
        message = (
            f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
            f"{batch.producer_id}"
        )
    if message is not None:
        raise LogError(ErrorCode.INVALID_RECORD, f"{message} in topic partition {where}")


def _check_times(batch: Batch, rules: Rules, now_ms: int, where: str) -> None:
    """Check all records: their form, their keys and their times.

    Of compressed ones that cannot be read the times count that the header has.
    """
    first, last = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    created = not rules.log_append_time
    records = records_of(batch)
    errors: list[tuple[int, str]] = []
    late: list[tuple[int, str]] = []
    count = 0
    if records is not None:
        for index, record in enumerate(records):
            time = record.timestamp
            if rules.is_compacted and record.key is None:
                message = "Compacted topic cannot accept message without key in topic partition"
                count += 1
                if count <= _ERRORS_KEPT:
                    errors.append((index, f"{message} {where}"))
            elif created and not first <= time <= last and time != NO_TIMESTAMP:
                late.append((index, _range_message(time, index, rules, now_ms)))
                del late[_ERRORS_KEPT:]
    elif created and batch.max_timestamp > last:
        late.append((0, _range_message(batch.max_timestamp, 0, rules, now_ms)))
    if late:
        raise _wrong(ErrorCode.INVALID_TIMESTAMP, sorted(errors + late))
    if errors:
        raise _wrong(ErrorCode.INVALID_RECORD, errors, count)


def _range_message(timestamp: int, offset: int, rules: Rules, now_ms: int) -> str:
    first = max(now_ms - rules.before_max_ms, -(1 << 63))
    last = now_ms + rules.after_max_ms
    return (
        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
        f"The timestamp should be within [{first}, {last}]"
    )


def _wrong(code: ErrorCode, errors: list[tuple[int, str]], count: int = 0) -> LogError:
    if code is ErrorCode.INVALID_TIMESTAMP:
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{text}')"
            for index, text in errors[:_ERRORS_SHOWN]
        )
        message = (
            f"One or more records have been rejected due to {count} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    return LogError(code, message, tuple(errors[:_ERRORS_KEPT]))


def kept(batch: Batch, base_offset: int, leader_epoch: int, append_time_ms: int | None) -> bytes:
    """Return a batch as it is kept; ``append_time_ms``, if given, is the time of its records.

    Without it they have the times that they came with, whatever the batch says.
    """
    start = _START.pack(base_offset, batch.length, leader_epoch)
    says = batch.attributes & LOG_APPEND_TIME
    if append_time_ms is None and not says:
        return b"".join((start, batch.data[_START.size :]))
    data = bytearray(start)
    data += batch.data[_START.size :]
    if append_time_ms is None:
        _SHORT.pack_into(data, _ATTRIBUTES_AT, batch.attributes & ~LOG_APPEND_TIME)
    else:
        _SHORT.pack_into(data, _ATTRIBUTES_AT, batch.attributes | LOG_APPEND_TIME)
        _LONG.pack_into(data, _MAX_TIMESTAMP_AT, append_time_ms)
    _CRC.pack_into(data, _CRC_AT, calc_crc32c(memoryview(data)[_CRC_FROM:]))
    return bytes(data)


def marker(
    offset: int, leader_epoch: int, producer_id: int, epoch: int, *, commits: bool, now_ms: int
) -> bytes:
    """Return the control batch that ends a producer's transaction."""
    # A record: no attributes, deltas of 0, a key of version and type, a value of version and the
    # coordinator's epoch.
    key = b"\x00\x00" + (b"\x00\x01" if commits else b"\x00\x00")
    value = bytes(6)
    body = b"\x00\x00\x00" + bytes((len(key) << 1,)) + key
    body += bytes((len(value) << 1,)) + value + b"\x00"
    records = bytes((len(body) << 1,)) + body
    data = bytearray(
        HEADER.pack(
            *(offset, HEADER.size + len(records) - OVERHEAD, leader_epoch, _MAGIC, 0),
            *(TRANSACTIONAL | CONTROL, 0, now_ms, now_ms, producer_id, epoch, -1, 1),
        )
    )
    data += records
    _CRC.pack_into(data, _CRC_AT, calc_crc32c(memoryview(data)[_CRC_FROM:]))
    return bytes(data)


def records_of(batch: Batch) -> Iterator[Any] | None:
    """Return the records of a batch, each with offset, timestamp, key, value and headers.

    Returns None for those compressed by what Python cannot read, or that are too many bytes
    without compression. The iterator may pause, and raises `LogError` for what is malformed.
    """
    data = plain(batch) if batch.attributes & CODEC else batch.data
    return None if data is None else _records(data)


def plain(batch: Batch) -> bytes | None:
    """Return a batch without compression, None where that cannot be had; its CRC is not renewed.

    May pause. Raises `LogError` for what is said to be gzip and is not.
    """
    steps = plain_in_steps(batch)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: bytes | None = done.value
            return found
        pause()


def plain_in_steps(batch: Batch) -> Generator[None, None, bytes | None]:
    """Return what `plain` does; each step takes a moment."""
    codec = batch.attributes & CODEC
    if not codec:
        return bytes(batch.data)
    if codec != _GZIP:
        return None
    records = yield from _inflated(batch.data[HEADER.size :])
    if records is None:
        return None
    fields = list(batch[:-1])
    fields[1] = HEADER.size + len(records) - OVERHEAD
    fields[5] = batch.attributes & ~CODEC
    return HEADER.pack(*fields) + records


def _inflated(data: memoryview) -> Generator[None, None, bytes | None]:
    engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    parts: list[bytes] = []
    size = 0
    rest: bytes | memoryview = data
    try:
        while not engine.eof:
            part = engine.decompress(rest, _INFLATED_AT_ONCE)
            rest = engine.unconsumed_tail
            size += len(part)
            if size > _MOST_INFLATED:
                return None
            if not part and not rest and not engine.eof:
                raise LogError(_NOT_GZIP, "The records end within their compression.")
            parts.append(part)
            yield
    except zlib.error as error:
        raise LogError(_NOT_GZIP, "The records are not compressed with gzip.") from error
    return b"".join(parts)


def deflated(data: bytes) -> Generator[None, None, bytes]:
    """Return bytes compressed with gzip; each step takes a moment."""
    engine = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    parts = []
    for first in range(0, len(data), _DEFLATED_AT_ONCE):
        parts.append(engine.compress(data[first : first + _DEFLATED_AT_ONCE]))
        yield
    return b"".join((*parts, engine.flush()))


def _records(data: bytes | memoryview) -> Iterator[Any]:
    records = iter(DefaultRecordBatch(data))
    number = 0
    while True:
        try:
            record = next(records)
        except StopIteration:
            return
        except Exception as error:
            raise LogError(ErrorCode.INVALID_RECORD, "The records cannot be read.") from error
        yield record
        number += 1
        if not number % _RECORDS_AT_ONCE:
            pause()
