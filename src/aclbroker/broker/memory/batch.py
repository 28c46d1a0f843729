"""Batches of records (magic 2): how they are read, and what is kept of them.

A batch is kept as it came, compressed or not: its base offset and its leader epoch are set, which
its checksum does not cover, and the times of its header where they are not those of its records.
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
"""In bytes. A record of it is read at once, which keeps others waiting; Kafka has no such limit but
``max.message.bytes``.
"""

_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_LEAST_LENGTH: Final = 14
_EPOCH_AT: Final = 12
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_ATTRIBUTES_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_MOST_SEQUENCE: Final = 0x7FFFFFFF
_ZSTD: Final = 4
_GZIP: Final = 1
_NOT_GZIP: Final = ErrorCode.UNKNOWN_SERVER_ERROR
_FIRST_VERSION_WITH_ZSTD: Final = 7
_MOST_INFLATED: Final = (16 << 20) + HEADER.size
_INFLATED_AT_ONCE: Final = 1 << 20
_DEFLATED_AT_ONCE: Final = 1 << 16
_RECORDS_AT_ONCE: Final = 128
_COPIED_AT_ONCE: Final = 1 << 20

_INT: Final = Struct(">i")
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


def kept(batch: Batch, append_time_ms: int | None, latest_ms: int) -> bytearray:
    """Return a batch as it is kept, but for its `place`. May pause.

    ``append_time_ms``, if given, is the time of its records. Without it they have the times that
    they came with, whatever the batch says, and ``latest_ms`` is the latest of these.
    """
    data = _copy(batch.data)
    attributes = batch.attributes & ~LOG_APPEND_TIME
    if append_time_ms is not None:
        attributes, latest_ms = attributes | LOG_APPEND_TIME, append_time_ms
    if (attributes, latest_ms) != (batch.attributes, batch.max_timestamp):
        _SHORT.pack_into(data, _ATTRIBUTES_AT, attributes)
        _LONG.pack_into(data, _MAX_TIMESTAMP_AT, latest_ms)
        _CRC.pack_into(data, _CRC_AT, crc32c(memoryview(data)[_CRC_FROM:]))
    return data


def _copy(data: memoryview) -> bytearray:
    if len(data) <= _COPIED_AT_ONCE:
        return bytearray(data)
    pause()
    made = bytearray(len(data))
    for first in range(0, len(data), _COPIED_AT_ONCE):
        pause()
        made[first : first + _COPIED_AT_ONCE] = data[first : first + _COPIED_AT_ONCE]
    return made


def place(data: bytearray, base_offset: int, leader_epoch: int) -> None:
    """Give a batch that is kept the offset of its first record, and its leader epoch."""
    _LONG.pack_into(data, 0, base_offset)
    _INT.pack_into(data, _EPOCH_AT, leader_epoch)


def marker(
    offset: int, leader_epoch: int, producer_id: int, epoch: int, *, commits: bool, now_ms: int
) -> bytearray:
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
    return data


def records_of(batch: Batch) -> Iterator[Any] | None:
    """Return the records of a batch, each with offset, timestamp, key, value and headers.

    Returns None for those compressed by what Python cannot read, or that are too many bytes
    without compression. The iterator may pause, and raises `LogError` for what is malformed.
    """
    data = plain(batch) if batch.attributes & CODEC else batch.data
    return None if data is None else _records(data)


def plain(batch: Batch) -> bytearray | memoryview | None:
    """Return a batch without compression, None where that cannot be had; its CRC is not renewed.

    May pause. Raises `LogError` for what is said to be gzip and is not.
    """
    steps = plain_in_steps(batch)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: bytearray | memoryview | None = done.value
            return found
        pause()


def plain_in_steps(batch: Batch) -> Generator[None, None, bytearray | memoryview | None]:
    """Return what `plain` does; each step takes a moment."""
    codec = batch.attributes & CODEC
    if not codec:
        return batch.data
    if codec != _GZIP:
        return None
    made = yield from _inflated(batch.data[HEADER.size :])
    if made is not None:
        fields = list(batch[:-1])
        fields[1] = len(made) - OVERHEAD
        fields[5] = batch.attributes & ~CODEC
        HEADER.pack_into(made, 0, *fields)
    return made


def _inflated(data: memoryview) -> Generator[None, None, bytearray | None]:
    """Return records without compression, behind room for a header; None if they are too many."""
    engine = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    made = bytearray(HEADER.size)
    rest: bytes | memoryview = data
    try:
        while not engine.eof:
            part = engine.decompress(rest, _INFLATED_AT_ONCE)
            rest = engine.unconsumed_tail
            made += part
            if len(made) > _MOST_INFLATED:
                return None
            if not part and not rest and not engine.eof:
                raise LogError(_NOT_GZIP, "The records end within their compression.")
            yield
    except zlib.error as error:
        raise LogError(_NOT_GZIP, "The records are not compressed with gzip.") from error
    return made


def deflated(data: bytes) -> Generator[None, None, bytes]:
    """Return bytes compressed with gzip; each step takes a moment."""
    engine = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    parts = []
    for first in range(0, len(data), _DEFLATED_AT_ONCE):
        parts.append(engine.compress(data[first : first + _DEFLATED_AT_ONCE]))
        yield
    return b"".join((*parts, engine.flush()))


def _records(data: bytearray | memoryview) -> Iterator[Any]:
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
