"""Batches of records that stories send, right and wrong ones."""

from __future__ import annotations

import time
from typing import Final
from zlib import crc32

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

TIME_MS: Final = 1_700_000_000_000
"""The time of a batch's first record; each further one is a millisecond later."""

CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_DELTA_AT: Final = 23
MAGIC_AT: Final = 16
COUNT_AT: Final = 57

_LARGEST: Final = 1 << 20

Producer = tuple[int, int, int]
"""An id, an epoch, and the sequence number of the first record."""

NO_PRODUCER: Final[Producer] = (-1, -1, -1)


def batch(
    *values: bytes | None,
    key: bytes | None = None,
    time_ms: int = TIME_MS,
    codec: int = 0,
    producer: Producer = NO_PRODUCER,
    transactional: bool = False,
) -> bytes:
    """Return a batch of records with these values, and all with the same key."""
    builder = DefaultRecordBatchBuilder(2, codec, int(transactional), *producer, _LARGEST)
    for number, value in enumerate(values):
        builder.append(number, time_ms + number, key, value, [])
    return bytes(builder.build())


def now_ms() -> int:
    """Return the time of now.

    Records in transactions have it, since a broker begins a new segment of a log at a marker that
    is much younger than they are.
    """
    return int(time.time() * 1_000)


def changed(data: bytes, at: int, value: bytes) -> bytes:
    """Return a batch with other bytes at a place, and with the checksum that belongs to them."""
    made = bytearray(data)
    made[at : at + len(value)] = value
    made[CRC_AT : CRC_AT + 4] = calc_crc32c(memoryview(made)[CRC_AT + 4 :]).to_bytes(4)
    return bytes(made)


def of_old(magic: int) -> bytes:
    """Return a message of an old format (0 or 1), as clients before Kafka 0.11 wrote them."""
    # Attributes, the time in format 1, a null key, and a value.
    body = bytes((magic, 0)) + (TIME_MS.to_bytes(8) if magic else b"")
    body += b"\xff\xff\xff\xff" + b"\0\0\0\5value"
    message = crc32(body).to_bytes(4) + body
    return bytes(8) + len(message).to_bytes(4) + message
