"""Reads a message as its bytes arrive, so that they can be passed on before all are there.

Nothing of a message is kept but the fields that the reader asks for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Generator, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from aclbroker.protocol.compile.runtime import read_varint
from aclbroker.protocol.compile.source import FORMATS
from aclbroker.protocol.primitives import (
    LONGEST_STRING,
    Array,
    Bytes,
    Frame,
    ProtocolError,
    Records,
    String,
    WireType,
)
from aclbroker.protocol.schema import Struct

RENAMED_TAG: Final = 0x7F
"""The number that a hidden tagged field gets, which no specification declares."""

_MOST_TAGS: Final = 100
_LARGEST_TAG: Final = 65_536
_LONGEST_VARINT: Final = 5

_Steps = Generator[None, None, None]


def _is_plain(layout: Struct) -> bool:
    return all(each in FORMATS for each in layout.fields)


class Walk:
    """Reads one message of a layout, in the pieces in which it arrives.

    The function ``seen`` is called with the path of each field in ``kept`` and its value. The value
    is an integer, the bytes of a text or an id, or the number of an array's entries. For records it
    is a pair: their ``head`` first bytes and their size. The function may raise `ProtocolError`.

    A tagged field that no specification declares gets bytes of zero, or with ``refuses_tags``
    raises `ProtocolError`. Those in ``hidden``, by the path of their struct, get another number and
    zeros, so that the message keeps its length.
    """

    def __init__(
        self,
        layout: Struct,
        kept: Collection[str],
        seen: Callable[[str, Any], None],
        *,
        head: int = 0,
        refuses_tags: bool = False,
        hidden: Mapping[str, Collection[int]] = MappingProxyType({}),
    ) -> None:
        self._kept = kept
        self._seen = seen
        self._head = head
        self._refuses_tags = refuses_tags
        self._hidden = hidden
        self._data: Frame = b""
        self._pos = 0
        self._to_skip = 0
        self._steps = self._struct(layout, "")
        self.is_done = False

    def take(self, data: Frame) -> Frame:
        """Read the next bytes, and return those that may be passed on.

        The others come with the next ones. Raises `ProtocolError` for bytes that are no such
        message or come behind it, and as ``seen`` does.
        """
        if self._to_skip > len(data):
            self._to_skip -= len(data)
            return data
        # Nothing is left over while bytes are skipped.
        self._data = self._data + data if self._data else data
        self._pos, self._to_skip = self._to_skip, 0
        self.is_done = self.is_done or next(self._steps, self) is self
        data, pos = self._data, self._pos
        if self.is_done and pos < len(data):
            raise ProtocolError(f"{len(data) - pos} bytes behind a message")
        self._data = data[pos:]
        return data[:pos] if self._data else data

    def _bytes(self, size: int) -> Generator[None, None, Frame]:
        while len(self._data) - self._pos < size:
            yield
        value = self._data[self._pos : self._pos + size]
        self._pos += size
        return value

    def _skip(self, size: int) -> _Steps:
        there = len(self._data) - self._pos
        if size <= there:
            self._pos += size
            return
        self._pos += there
        self._to_skip = size - there
        while self._to_skip:
            yield

    def _varint(self) -> Generator[None, None, int]:
        value = 0
        for number in range(_LONGEST_VARINT):
            [byte] = yield from self._bytes(1)
            value |= (byte & 0x7F) << 7 * number
            if byte < 0x80:
                return value
        raise ProtocolError("a varint exceeds 32 bits")

    def _length(self, wire_type: String | Bytes | Array) -> Generator[None, None, int]:
        """Read a length, which is negative for null."""
        if wire_type.compact:
            return (yield from self._varint()) - 1
        size = 2 if isinstance(wire_type, String) else 4
        value = yield from self._bytes(size)
        return int.from_bytes(value, signed=True)

    def _struct(self, layout: Struct, path: str) -> _Steps:
        fixed = 0
        for name, wire_type in zip(layout.names, layout.fields, strict=True):
            letter = FORMATS.get(wire_type)
            if letter is not None and path + name not in self._kept:
                fixed += struct.calcsize(">" + letter)
                continue
            if fixed:
                yield from self._skip(fixed)
                fixed = 0
            if letter is None:
                yield from self._value(wire_type, path + name)
            else:
                value = yield from self._bytes(struct.calcsize(">" + letter))
                self._seen(path + name, struct.unpack(">" + letter, value)[0])
        if fixed:
            yield from self._skip(fixed)
        if layout.flexible:
            yield from self._tags(layout, path)

    def _value(self, wire_type: WireType, path: str) -> _Steps:
        if isinstance(wire_type, Struct):
            yield from self._struct(wire_type, path + ".")
            return
        sized = cast(String | Bytes | Array, wire_type)
        size = yield from self._length(sized)
        if size < 0 and not sized.nullable:
            raise ProtocolError(f"{path} is null, which the protocol does not allow")
        if isinstance(wire_type, Array):
            yield from self._array(wire_type, size, path)
        elif isinstance(wire_type, Records):
            yield from self._records(size, path)
        elif path in self._kept:
            if size > LONGEST_STRING:
                raise ProtocolError(f"{path} has more than {LONGEST_STRING} bytes")
            value = yield from self._bytes(max(size, 0))
            self._seen(path, None if size < 0 else bytes(value))
        elif size > 0:
            yield from self._skip(size)

    def _array(self, wire_type: Array, size: int, path: str) -> _Steps:
        if path in self._kept:
            self._seen(path, size)
        letter = FORMATS.get(wire_type.entry)
        if letter is not None:
            yield from self._skip(max(size, 0) * struct.calcsize(">" + letter))
            return
        if isinstance(wire_type.entry, Struct) and _is_plain(wire_type.entry):
            size = yield from self._plain_entries(wire_type.entry, size)
        for _ in range(size):
            yield from self._value(wire_type.entry, path)

    def _plain_entries(self, layout: Struct, count: int) -> Generator[None, None, int]:
        """Skip entries of numbers without tagged fields; return how many are left."""
        size = sum(struct.calcsize(">" + FORMATS[each]) for each in layout.fields)
        size += layout.flexible
        while count > 0:
            whole = min(count, (len(self._data) - self._pos) // size)
            end = self._pos + whole * size
            if layout.flexible and any(self._data[self._pos + size - 1 : end : size]):
                return count
            self._pos = end
            count -= whole
            if count:
                yield
        return 0

    def _records(self, size: int, path: str) -> _Steps:
        size = max(size, 0)
        if path in self._kept:
            head = min(size, self._head)
            value = yield from self._bytes(head)
            self._seen(path, (bytes(value), size))
            size -= head
        if size:
            yield from self._skip(size)

    def _tags(self, layout: Struct, path: str) -> _Steps:
        count = yield from self._varint()
        if count > _MOST_TAGS:
            raise ProtocolError(f"{count} tagged fields in one place; {_MOST_TAGS} are read")
        hidden = self._hidden.get(path, ())
        for _ in range(count):
            yield from self._tag(layout, path, hidden)

    def _tag(self, layout: Struct, path: str, hidden: Collection[int]) -> _Steps:
        """Read a tagged field; none of its bytes is passed on before all are there."""
        while (found := self._found_tag()) is None:
            yield
        number, begin, end = found
        if number in layout.known and number not in hidden:
            self._pos = end
            return
        where = f"the tagged field {number} in {path or 'the message'}"
        if self._refuses_tags:
            raise ProtocolError(f"{where} is unknown")
        data = self._data = bytearray(self._data)
        data[begin:end] = bytes(end - begin)
        if number in hidden:
            if data[self._pos] != number:
                raise ProtocolError(f"{where} has a longer number than it needs")
            data[self._pos] = RENAMED_TAG
        self._pos = end

    def _found_tag(self) -> tuple[int, int, int] | None:
        """Return the number of a tagged field, and where its value begins and ends.

        Returns None until all of it is there.
        """
        try:
            number, pos = read_varint(self._data, self._pos)
            size, pos = read_varint(self._data, pos)
        except IndexError:
            return None
        if size > _LARGEST_TAG:
            raise ProtocolError(f"a tagged field of {size} bytes; {_LARGEST_TAG} are read")
        return (number, pos, pos + size) if pos + size <= len(self._data) else None
