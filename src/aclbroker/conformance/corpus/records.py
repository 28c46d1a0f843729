"""Makes valid record batches of format v2, with a correct CRC, for Produce requests."""

from __future__ import annotations

from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

_MAGIC: Final = 2
_NO_COMPRESSION: Final = 0
_NO_PRODUCER: Final = -1
_TIMESTAMP_MS: Final = 1_700_000_000_000


def batch(*, producer_id: int = _NO_PRODUCER, transactional: bool = False) -> bytes:
    """Return a batch with one small record; a producer id makes it an idempotent one."""
    first = 0 if producer_id != _NO_PRODUCER else -1
    builder = DefaultRecordBatchBuilder(
        _MAGIC, _NO_COMPRESSION, int(transactional), producer_id, first, first, 1024
    )
    builder.append(0, _TIMESTAMP_MS, b"key", b"value", [])
    return bytes(builder.build())
