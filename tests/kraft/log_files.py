"""Metadata logs for tests: files of record batches with the metadata records that a test names."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.kraft.records import AccessControlEntryRecord
from aclbroker.protocol.compile import encode
from aclbroker.protocol.primitives import UnsignedVarint

GZIP = 1
CONTROL = 0x20
NO_OP = 20


def framed(record: Any) -> bytes:
    """Return a metadata record with its frame."""
    return raw(type(record).KEY, 0, encode(record, 0))


def raw(kind: int, version: int, body: bytes = b"\0", frame_version: int = 1) -> bytes:
    """Return the frame of a record and its bytes, be they a record or not."""
    return b"".join(map(UnsignedVarint.encode, (frame_version, kind, version))) + body


def created(number: int, acl: AclBinding) -> AccessControlEntryRecord:
    """Return the record that creates an ACL, whose id is made of a number."""
    return AccessControlEntryRecord(number.to_bytes(16, "big"), *acl)


def batch(
    offset: int,
    values: Sequence[bytes],
    *,
    codec: int = 0,
    control: tuple[int, int] | None = None,
    epoch: int = 1,
) -> bytes:
    """Return a record batch; ``control`` is the version and type of a control record's key."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, 0, 1 << 30)
    key = None if control is None else struct.pack(">hh", *control)
    for number, value in enumerate(values):
        assert builder.append(number, timestamp=1, key=key, value=value, headers=[])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, offset)
    struct.pack_into(">i", data, 12, epoch)
    if control is not None:
        [attributes] = struct.unpack_from(">h", data, 21)
        struct.pack_into(">h", data, 21, attributes | CONTROL)
    struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    return bytes(data)


def snapshot(values: Sequence[bytes]) -> bytes:
    """Return a snapshot: a header, a batch of the records, and a footer."""
    # Of a quorum whose voters stand in the log they and a version stand behind the header.
    header = batch(0, [bytes(11)] * 3, control=(0, 3))
    footer = batch(len(values) + 3, [bytes(3)], control=(0, 4))
    return header + (batch(3, values) if values else b"") + footer


def write_log(directory: Path, *segments: tuple[int, Iterable[bytes]]) -> Path:
    """Write segments, each by its first offset with its batches; return the directory."""
    directory.mkdir(exist_ok=True)
    for base_offset, batches in segments:
        (directory / f"{base_offset:020}.log").write_bytes(b"".join(batches))
    return directory


def write_snapshot(directory: Path, end_offset: int, values: Sequence[bytes]) -> Path:
    """Write a snapshot of all that held before an offset; return its path."""
    path = directory / f"{end_offset:020}-{1:010}.checkpoint"
    path.write_bytes(snapshot(values))
    return path
