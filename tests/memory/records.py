"""Batches as clients make them, for tests of the logs."""

from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

NOW = 1_700_000_000_000


def batch(
    *values: Any,
    key: bytes | None = None,
    time_ms: int = NOW,
    codec: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
) -> bytes:
    """Return a batch of records; ``producer`` is the id, the epoch and the first sequence number.

    A value may be a pair of key and value.
    """
    builder = DefaultRecordBatchBuilder(
        2, codec, int(transactional), producer[0], producer[1], producer[2], 1 << 30
    )
    for number, value in enumerate(values):
        name, text = value if isinstance(value, tuple) else (key, value)
        builder.append(number, time_ms + number, name, text, [])
    return bytes(builder.build())


def changed(data: bytes, at: int, value: bytes) -> bytes:
    """Return a batch with other bytes at a place, and with the checksum that belongs to them."""
    made = bytearray(data)
    made[at : at + len(value)] = value
    made[17:21] = calc_crc32c(memoryview(made)[21:]).to_bytes(4)
    return bytes(made)
