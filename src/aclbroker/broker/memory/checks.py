"""Checks batches of clients as a broker of Kafka does before it keeps them, in its order."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aclbroker.broker.memory.batch import (
    CODEC,
    HEADER,
    LARGEST_BATCH,
    LOG_APPEND_TIME,
    NO_PRODUCER,
    NO_TIMESTAMP,
    OVERHEAD,
    Batch,
    LogError,
    records_of,
)
from aclbroker.broker.memory.checksum import crc32c
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import pause

_CRC_FROM: Final = 21
_ZSTD: Final = 4
_ERRORS_SHOWN: Final = 3

_ERRORS_KEPT: Final = 1_000
"""How many wrong records of a batch are named, of which there can be millions."""

_WRONG_TYPE: Final = "Producer should not set timestamp type to LogAppendTime."


class Rules(NamedTuple):
    """What the configuration of a topic asks of batches; times are in milliseconds."""

    max_bytes: int = 1_048_588
    is_compacted: bool = False
    log_append_time: bool = False
    before_max_ms: int = (1 << 63) - 1
    after_max_ms: int = 3_600_000


def check(batch: Batch, rules: Rules, now_ms: int, where: str) -> int:
    """Return the latest time of the records of a client's batch, -1 if they have none.

    It is what the records say: a header can say anything, and lookups and retention go by it.
    ``where`` names the partition in messages. May pause. Raises `LogError` for a batch that a
    broker of Kafka refuses.
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
    return _latest_time(batch, rules, now_ms, where)


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


def _latest_time(batch: Batch, rules: Rules, now_ms: int, where: str) -> int:
    """Check all records, their form, their keys and their times; return the latest of these."""
    records = records_of(batch)
    if records is None:
        return _latest_by_header(batch, rules, now_ms)
    first, last = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
    created = not rules.log_append_time
    wrong = _Wrong()
    latest = NO_TIMESTAMP
    for index, record in enumerate(records):
        time = record.timestamp
        if time > latest:
            latest = time
        if rules.is_compacted and record.key is None:
            wrong.add_without_key(index, where)
        elif created and time != NO_TIMESTAMP:
            if not first <= time <= last:
                wrong.add_late(index, _range_message(time, index, rules, now_ms))
        elif batch.attributes & LOG_APPEND_TIME:
            wrong.add_late(index, _type_message(batch, record))
    wrong.refuse()
    return latest


class _Wrong:
    """The records of a batch that are wrong: the first of them, and how many have no key."""

    def __init__(self) -> None:
        self._late: list[tuple[int, str]] = []
        self._without_key: list[tuple[int, str]] = []
        self._count = 0

    def add_without_key(self, index: int, where: str) -> None:
        self._count += 1
        if self._count <= _ERRORS_KEPT:
            message = "Compacted topic cannot accept message without key in topic partition"
            self._without_key.append((index, f"{message} {where}"))

    def add_late(self, index: int, message: str) -> None:
        if len(self._late) < _ERRORS_KEPT:
            self._late.append((index, message))

    def refuse(self) -> None:
        """Raise `LogError` if any record is wrong."""
        if self._late:
            raise _wrong(ErrorCode.INVALID_TIMESTAMP, sorted(self._without_key + self._late))
        if self._without_key:
            raise _wrong(ErrorCode.INVALID_RECORD, self._without_key, self._count)


def _latest_by_header(batch: Batch, rules: Rules, now_ms: int) -> int:
    """Check what the header says of the times of records that cannot be read.

    The base is the time of the first record, so that none is the latest that is before it.
    """
    says_append = batch.attributes & LOG_APPEND_TIME
    latest = batch.max_timestamp
    if not says_append:
        latest = max(latest, batch.base_timestamp, NO_TIMESTAMP)
    message = None
    if not rules.log_append_time and latest != NO_TIMESTAMP:
        if not now_ms - rules.before_max_ms <= latest <= now_ms + rules.after_max_ms:
            message = _range_message(latest, 0, rules, now_ms)
    elif says_append:
        message = f"Invalid timestamp type in the batch. {_WRONG_TYPE}"
    if message is not None:
        raise _wrong(ErrorCode.INVALID_TIMESTAMP, [(0, message)])
    return latest


def _type_message(batch: Batch, record: Any) -> str:
    # As in Kafka, which does not read all of a record that is compressed.
    name, none = ("PartialDefaultRecord", -1) if batch.attributes & CODEC else ("DefaultRecord", 0)
    key, value = (none if part is None else len(part) for part in (record.key, record.value))
    return (
        f"Invalid timestamp type in message {name}(offset={record.offset}, "
        f"timestamp={record.timestamp}, key={key} bytes, value={value} bytes). {_WRONG_TYPE}"
    )


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
