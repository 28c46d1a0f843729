"""Records of the metadata log that tell about ACLs, or where a transaction begins and ends.

The declarations are Kafka's own (``common/metadata`` in its kafka-metadata jar), which a test
compares. A record is framed by three unsigned varints: the version of the frame, the record's type,
which the specifications call its API key, and its version (KIP-631).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aclbroker.protocol.compile import decoder
from aclbroker.protocol.compile.runtime import read_varint
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.schema import UnsupportedVersion, message, of

_FRAME_VERSION: Final = 1
NEWEST_TYPE: Final = 28
"""The highest type of a record that Kafka 4.3 knows; a newer Kafka may write others."""


@message(key=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    """An ACL was created."""

    id: bytes = of("uuid")
    resource_type: int = of("int8")
    resource_name: str = of("string")
    pattern_type: int = of("int8")
    principal: str = of("string")
    host: str = of("string")
    operation: int = of("int8")
    permission_type: int = of("int8")


@message(key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    """The ACL with an id was deleted."""

    id: bytes = of("uuid")


@message(key=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """What follows holds once an EndTransactionRecord comes (KIP-868)."""

    name: str | None = of("string", nullable="0+", tag=0, tagged="0+", default=None)


@message(key=24, versions="0", flexible="0+")
class EndTransactionRecord:
    """What came since the BeginTransactionRecord holds."""


@message(key=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """What came since the BeginTransactionRecord never was."""

    reason: str | None = of("string", nullable="0+", tag=0, tagged="0+", default=None)


DECLARED: Final[tuple[Any, ...]] = (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
_BY_TYPE: Final[dict[int, Any]] = {each.KEY: each for each in DECLARED}


class OtherRecord(NamedTuple):
    """A record of a type that says nothing about ACLs, or that is not known here."""

    type: int


def read_record(value: bytes) -> Any:
    """Return the record of a value: one of `DECLARED`, or an `OtherRecord`.

    Raises `ProtocolError` for what is no record, and for a version that is not known here.
    """
    try:
        frame_version, at = read_varint(value, 0)
        if frame_version != _FRAME_VERSION:
            raise ProtocolError(
                f"the version {frame_version} of its frame is unknown; expected {_FRAME_VERSION}"
            )
        kind, at = read_varint(value, at)
        version, at = read_varint(value, at)
    except IndexError:
        raise ProtocolError("it ends within its frame") from None
    cls = _BY_TYPE.get(kind)
    if cls is None:
        return OtherRecord(kind)
    try:
        decode = decoder(cls, version)
    except UnsupportedVersion as error:
        raise ProtocolError(f"{error}; a newer Kafka has written it") from None
    record, end = decode(value, at)
    if end != len(value):
        raise ProtocolError(f"{len(value) - end} bytes are behind it")
    return record
