"""The primitive types of the Kafka protocol: aiokafka's, completed and corrected.

A *wire type* reads one value from a ``BytesIO`` and returns a value's bytes. Integers, floats and
booleans are aiokafka's own. Replaced are those of aiokafka 0.14 that are wrong on the wire:

- strings, bytes and arrays accepted null where the protocol has none, and arrays took any negative
  length for an empty array;
- varints raised ``struct.error`` on a short buffer and let a fifth byte overflow 32 bits;
- tagged fields were written without their size, and tag 0 was refused and a short value accepted;
- UUIDs, unsigned 16-bit integers and nullable structs did not exist.

Every wire type raises `ProtocolError` (or `ValueError` from aiokafka's own) on bytes it cannot
read. The server runs the code that `protocol.compile` generates; these classes are what it is
tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final, Protocol

from aclbroker.protocol.aiokafka_types import (
    Boolean,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    UInt32,
)
from aclbroker.protocol.aiokafka_types import UnsignedVarInt32 as _Varint

ZERO_UUID: Final = bytes(16)
LONGEST_STRING: Final = 0x7FFF
"""The longest string in bytes.

A compact string could be longer, but Kafka does not accept that either. So every message can be
encoded at every version.
"""

MOST_ENTRIES: Final = 100_000
"""How many entries all arrays of a request may have together.

An entry can be one byte long, or a number of four, and takes up to a thousand when it is decoded,
answered and put into words. Kafka has no such limit; a request of a client that exists is far below
it.
"""

LONGEST_BYTES: Final = 16 * 1024 * 1024
"""The longest value of bytes in a request that are no records: it is copied, all at once.

Kafka has no such limit but that of a whole request.
"""

MOST_TAGS: Final = 1000
"""How many tagged fields a struct may have, for the same reason."""

Frame = bytes | bytearray
"""What messages are read from: a bytearray if it is large, which nobody changes any more."""

Tags = Sequence[tuple[int, bytes]]
"""Unknown tagged fields: the number and the bytes of each."""


class ProtocolError(ValueError):
    """The bytes are not a valid message, so that there is no answer to them."""


class TooMany(ProtocolError):
    """The bytes may be a valid request, which has more entries or tagged fields than are read."""


class WireType(Protocol):
    """The encoding of one kind of value."""

    def encode(self, value: Any) -> bytes:
        """Return the value's bytes."""

    def decode(self, data: BytesIO) -> Any:
        """Read one value; raises `ProtocolError` or `ValueError`."""


def read(data: BytesIO, size: int) -> bytes:
    """Read exactly ``size`` bytes; raises `ProtocolError` if there are fewer."""
    value = data.read(size) if size <= data.getbuffer().nbytes - data.tell() else b""
    if len(value) != size:
        raise ProtocolError(f"{size} bytes announced, fewer are there")
    return value


class UnsignedVarint:
    """An unsigned 32-bit integer in groups of seven bits, the lowest first (KIP-482)."""

    @staticmethod
    def encode(value: int) -> bytes:
        return bytes(_Varint.encode(value))

    @staticmethod
    def decode(data: BytesIO) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = read(data, 1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > 0xFFFFFFFF:
                    break
                return value
        raise ProtocolError("a varint exceeds 32 bits")


class UInt16:
    """An unsigned 16-bit integer, big-endian."""

    @staticmethod
    def encode(value: int) -> bytes:
        return value.to_bytes(2, "big")

    @staticmethod
    def decode(data: BytesIO) -> int:
        return int.from_bytes(read(data, 2), "big")


class Uuid:
    """A UUID as its 16 bytes; `ZERO_UUID` stands for none."""

    @staticmethod
    def encode(value: bytes) -> bytes:
        if len(value) != 16:
            raise ValueError(f"a UUID has 16 bytes, not {len(value)}")
        return value

    @staticmethod
    def decode(data: BytesIO) -> bytes:
        return read(data, 16)


class _Sized:
    """A value behind its length: an integer or, if compact, a varint of the length plus one."""

    length: Any = Int32

    def __init__(self, *, compact: bool, nullable: bool) -> None:
        self.compact = compact
        self.nullable = nullable

    def encode_length(self, value: Any) -> bytes:
        if value is None and not self.nullable:
            raise ValueError("null where the protocol allows none")
        size = -1 if value is None else len(value)
        return UnsignedVarint.encode(size + 1) if self.compact else bytes(self.length.encode(size))

    def decode_length(self, data: BytesIO) -> int | None:
        """Read a length; any negative one means null, as in Kafka, and is returned as None."""
        size = UnsignedVarint.decode(data) - 1 if self.compact else self.length.decode(data)
        if size >= 0:
            return int(size)
        if not self.nullable:
            raise ProtocolError("null where the protocol allows none")
        return None


class Bytes(_Sized):
    """Bytes."""

    def encode(self, value: bytes | None) -> bytes:
        return self.encode_length(value) + (value or b"")

    def decode(self, data: BytesIO) -> bytes | None:
        size = self.decode_length(data)
        return None if size is None else read(data, size)


class Records(Bytes):
    """Records of a topic, which are read as bytes, and not decoded."""


class String(_Sized):
    """Text in UTF-8; reading other bytes, or more than `LONGEST_STRING`, raises `ValueError`."""

    length = Int16

    def encode(self, value: str | None) -> bytes:
        raw = None if value is None else value.encode()
        return self.encode_length(raw) + (raw or b"")

    def decode(self, data: BytesIO) -> str | None:
        size = self.decode_length(data)
        if size is not None and size > LONGEST_STRING:
            raise ProtocolError(f"{size} bytes of text announced, {LONGEST_STRING} are allowed")
        return None if size is None else read(data, size).decode()


class Array(_Sized):
    """Any number of values of one wire type."""

    def __init__(self, entry: WireType, *, compact: bool, nullable: bool) -> None:
        super().__init__(compact=compact, nullable=nullable)
        self.entry = entry

    def encode(self, value: Sequence[Any] | None) -> bytes:
        return self.encode_length(value) + b"".join(map(self.entry.encode, value or ()))

    def decode(self, data: BytesIO) -> list[Any] | None:
        size = self.decode_length(data)
        if size is None:
            return None
        if size > data.getbuffer().nbytes - data.tell():
            raise ProtocolError(f"{size} array entries announced, fewer bytes are there")
        return [self.entry.decode(data) for _ in range(size)]


class Nullable:
    """A struct behind one byte, which is -1 for null and 1 for a struct."""

    def __init__(self, struct: WireType) -> None:
        self.struct = struct

    def encode(self, value: Any) -> bytes:
        return b"\xff" if value is None else b"\x01" + self.struct.encode(value)

    def decode(self, data: BytesIO) -> Any:
        return None if Int8.decode(data) < 0 else self.struct.decode(data)


class TaggedFields:
    """Unknown tagged fields (KIP-482), as pairs of tag number and bytes.

    They are written in ascending order of the numbers, as the protocol demands, and read in any
    order, as in Kafka.
    """

    @staticmethod
    def encode(value: Tags) -> bytes:
        parts = [UnsignedVarint.encode(len(value))]
        for tag, raw in sorted(value):
            parts += UnsignedVarint.encode(tag), UnsignedVarint.encode(len(raw)), raw
        return b"".join(parts)

    @staticmethod
    def decode(data: BytesIO) -> list[tuple[int, bytes]]:
        tags = []
        for _ in range(UnsignedVarint.decode(data)):
            tag = UnsignedVarint.decode(data)
            tags.append((tag, read(data, UnsignedVarint.decode(data))))
        return tags


FIXED: Final[dict[str, Any]] = {
    "bool": Boolean,
    "int8": Int8,
    "int16": Int16,
    "uint16": UInt16,
    "int32": Int32,
    "uint32": UInt32,
    "int64": Int64,
    "float64": Float64,
    "uuid": Uuid,
}
"""The wire types of fixed size, by their names in Kafka's message specifications."""

SIZED: Final[dict[str, Any]] = {"bytes": Bytes, "records": Records, "string": String}
"""The wire types with a length, by their names in Kafka's message specifications."""

__all__ = [
    "FIXED",
    "LONGEST_BYTES",
    "LONGEST_STRING",
    "SIZED",
    "ZERO_UUID",
    "Array",
    "Bytes",
    "Frame",
    "Nullable",
    "ProtocolError",
    "Records",
    "Schema",
    "String",
    "TaggedFields",
    "Tags",
    "TooMany",
    "UInt16",
    "UnsignedVarint",
    "Uuid",
    "WireType",
    "read",
]  # fmt: skip
