"""Record batches for Produce requests: real ones of format v2, with a correct CRC."""

from __future__ import annotations

from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

_MAGIC: Final = 2
_NO_COMPRESSION: Final = 0
_NO_PRODUCER: Final = -1
_TIMESTAMP_MS: Final = 1_700_000_000_000


def batch(*, producer_id: int = _NO_PRODUCER, transactional: bool = False) -> bytes:
    """Return a batch of one small record; with a producer id it is idempotent."""
    first = 0 if producer_id != _NO_PRODUCER else -1
    builder = DefaultRecordBatchBuilder(
        _MAGIC, _NO_COMPRESSION, int(transactional), producer_id, first, first, 1024
    )
    builder.append(0, _TIMESTAMP_MS, b"key", b"value", [])
    return bytes(builder.build())
