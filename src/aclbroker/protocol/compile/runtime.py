"""The functions that generated code calls: errors, long varints and unknown tagged fields."""

from __future__ import annotations

from struct import calcsize, unpack_from
from typing import Any, Final, NoReturn

from aclbroker.protocol.primitives import (
    LONGEST_BYTES,
    LONGEST_STRING,
    MOST_ENTRIES,
    MOST_TAGS,
    Frame,
    ProtocolError,
    Tags,
    TooMany,
)
from aclbroker.turns import pause


def null(where: str) -> NoReturn:
    """Raise `ProtocolError` for a null in a field that must not be null."""
    raise ProtocolError(f"{where} is null, which the protocol does not allow")


def missing() -> NoReturn:
    """Raise ValueError for a null to be encoded where the protocol has none."""
    raise ValueError("null where the protocol allows none")


def short(where: str) -> NoReturn:
    """Raise `ProtocolError` for a length or count that goes beyond the message."""
    raise ProtocolError(f"{where} is longer than the message that holds it")


def long(where: str) -> NoReturn:
    """Raise `ProtocolError` for a string that has too many bytes."""
    raise ProtocolError(f"{where} has more than {LONGEST_STRING} bytes")


def raw(data: Frame, pos: int, end: int, where: str) -> bytes:
    """Return the bytes of a field. Raises `TooMany` if it takes long to copy them."""
    if data.__class__ is bytes:
        return data[pos:end]
    if end - pos > LONGEST_BYTES:
        raise TooMany(f"{where} has more than {LONGEST_BYTES} bytes")
    return bytes(memoryview(data)[pos:end])


def records(data: Frame, pos: int, end: int) -> bytes | memoryview:
    """Return records, which nobody looks into; those of a large frame are not copied."""
    return data[pos:end] if data.__class__ is bytes else memoryview(data)[pos:end]


def read_varint(data: Frame, pos: int) -> tuple[int, int]:
    """Return the unsigned varint at ``pos`` and the position behind it.

    Raises `ProtocolError` if it exceeds 32 bits, and IndexError if it does not end.
    """
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise ProtocolError("a varint exceeds 32 bits")
            return value, pos
        shift += 7
        if shift > 28:
            raise ProtocolError("a varint exceeds 32 bits")


def varint(value: int) -> bytes:
    """Return a number as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_LONGER_THAN_TWO_BYTES: Final = 0x3FFF


class _CompactLengths(dict[int, bytes]):
    """Computes a missing length, and caches those whose varint has one or two bytes."""

    def __missing__(self, length: int) -> bytes:
        made = varint(length + 1)
        if length < _LONGER_THAN_TWO_BYTES:
            self[length] = made
        return made


COMPACT_LENGTH: Final = _CompactLengths()
"""The bytes of a length in the compact form; most are looked up without a call."""


def many(where: str) -> NoReturn:
    """Raise `TooMany` for a request that has too many entries."""
    raise TooMany(f"{where}: the request has more than {MOST_ENTRIES} entries")


_NUMBERS_AT_ONCE: Final = 4096


def read_numbers(letter: str, count: int, data: Frame, pos: int) -> list[Any]:
    """Return ``count`` numbers of a format of `struct`, which must all be there."""
    if count <= _NUMBERS_AT_ONCE:
        return list(unpack_from(f">{count}{letter}", data, pos))
    size = calcsize(f">{letter}")
    numbers: list[Any] = []
    for first in range(0, count, _NUMBERS_AT_ONCE):
        some = min(_NUMBERS_AT_ONCE, count - first)
        numbers += unpack_from(f">{some}{letter}", data, pos + first * size)
        pause()
    return numbers


def tag_count(data: Frame, pos: int) -> tuple[int, int]:
    """Return how many tagged fields there are at ``pos``, and the position behind that number.

    Raises `TooMany`, and as `read_varint` does.
    """
    count, pos = read_varint(data, pos)
    if count > MOST_TAGS:
        raise TooMany(f"{count} tagged fields in one place; {MOST_TAGS} are allowed")
    return count, pos


def read_tags(data: Frame, pos: int) -> tuple[Tags, int]:
    """Return all tagged fields at ``pos``, undecoded, and the position behind them."""
    count, pos = tag_count(data, pos)
    tags = []
    for _ in range(count):
        tag, pos = read_varint(data, pos)
        size, pos = read_varint(data, pos)
        end = pos + size
        if end > len(data):
            short(f"tagged field {tag}")
        tags.append((tag, raw(data, pos, end, f"tagged field {tag}")))
        pos = end
    return tuple(tags), pos


def write_tags(tags: Tags) -> bytes:
    """Return the bytes of tagged fields, in ascending order of their numbers."""
    parts = [varint(len(tags))]
    for tag, raw in sorted(tags):
        parts += varint(tag), varint(len(raw)), raw
    return b"".join(parts)
