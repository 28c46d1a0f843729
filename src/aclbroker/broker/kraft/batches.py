"""The record batches of a segment or a snapshot, checked one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from aclbroker.broker.kraft.errors import KraftError
from aclbroker.broker.memory.batch import (
    HEADER,
    LARGEST_BATCH,
    OVERHEAD,
    Batch,
    LogError,
    read_batch,
    records_of,
)
from aclbroker.broker.memory.checksum import crc32c

_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_CRC_FROM: Final = 21
_LENGTH_AT: Final = 8
_SNAPSHOT_FOOTER: Final = b"\x00\x04"
"""The type of the control record that ends a snapshot (KIP-630), behind its version."""

_MAYBE_A_BATCH: Final = re.compile(rb"(?=\x00{2}.{6}\x00.{7}\x02)", re.DOTALL)
"""What the first 17 bytes of a batch look like: offsets below 2**48, lengths below 2**24."""


class TornEnd(Exception):
    """A file ends within a batch, as that of a running controller may; nothing stands behind it."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"it ends within the batch of offset {offset}")
        self.offset = offset


def batches(path: Path, offset: int) -> Iterator[Batch]:
    """Return the batches of a file, which must begin at an offset and have no gap.

    Raises `TornEnd` at the end of a file whose last batch is not all there, `KraftError` for
    whatever else is wrong, and OSError.
    """
    with path.open("rb") as file:
        while head := file.read(OVERHEAD):
            length = int.from_bytes(head[_LENGTH_AT:], "big", signed=True)
            is_possible = HEADER.size - OVERHEAD <= length <= LARGEST_BATCH
            data = head + (file.read(length) if is_possible else b"")
            if not is_possible or len(data) != OVERHEAD + length:
                _check_torn(path, data, file, offset)
            batch = read_batch(memoryview(data))
            reason = _wrong(batch, offset)
            if reason is not None:
                raise KraftError(f"{path}: the batch of offset {offset} is damaged: {reason}")
            yield batch
            offset = batch.last_offset + 1


def _wrong(batch: Batch, offset: int) -> str | None:
    if batch.magic != _MAGIC:
        return f"its format is {batch.magic}, expected {_MAGIC}"
    if crc32c(batch.data[_CRC_FROM:]) != batch.crc:
        return "it does not have its checksum"
    if batch.base_offset != offset:
        return f"it has the offset {batch.base_offset}"
    if batch.record_count != batch.last_offset_delta + 1 or batch.record_count < 1:
        return f"it has {batch.record_count} records for {batch.last_offset_delta + 1} offsets"
    return None


def _check_torn(path: Path, begun: bytes, file: BinaryIO, offset: int) -> NoReturn:
    """Raise `TornEnd` if what is left of a file can be the beginning of a batch, or only zeros.

    No batch is larger than 8 MiB, and a whole one further on shows that this one is damaged.
    """
    left = begun + file.read(LARGEST_BATCH + 1)
    if not left.strip(b"\0"):
        if not file.read(1):
            raise TornEnd(offset)
    elif len(left) <= LARGEST_BATCH and not _has_batch(left, offset):
        raise TornEnd(offset)
    raise KraftError(f"{path}: the batch of offset {offset} is damaged: its length is wrong")


def _has_batch(left: bytes, offset: int) -> bool:
    """Tell whether there is a whole batch of a later offset anywhere in some bytes."""
    data = memoryview(left)
    for match in _MAYBE_A_BATCH.finditer(left):
        at = match.start()
        length = int.from_bytes(data[at + _LENGTH_AT : at + OVERHEAD], "big")
        if HEADER.size - OVERHEAD <= length <= len(left) - at - OVERHEAD:
            batch = read_batch(data, at)
            if batch.base_offset > offset and crc32c(batch.data[_CRC_FROM:]) == batch.crc:
                return True
    return False


def values_of(path: Path, batch: Batch) -> Iterator[tuple[int, bytes]]:
    """Return the offset and the value of each record of a batch that is not one of control.

    Raises `KraftError` for what cannot be read.
    """
    try:
        records = records_of(batch)
        if records is None:
            raise KraftError(
                f"{path}: the batch of offset {batch.base_offset} is compressed by something else "
                "than gzip, which cannot be read here"
            )
        for record in records:
            yield record.offset, record.value or b""
    except LogError as error:
        raise KraftError(f"{path}: the batch of offset {batch.base_offset}: {error}") from None


def ends_snapshot(batch: Batch) -> bool:
    """Tell whether a batch is of control records, the last of which ends a snapshot.

    Raises `KraftError` for what cannot be read.
    """
    if not batch.is_control:
        return False
    try:
        keys = [bytes(record.key or b"") for record in records_of(batch) or ()]
    except LogError as error:
        raise KraftError(f"the batch of offset {batch.base_offset}: {error}") from None
    return bool(keys) and keys[-1][2:4] == _SNAPSHOT_FOOTER
