"""The generated scan: ``function(data, pos, size) -> tuple | None`` reads parts of a message.

A scan takes some fields of a message and skips the others, with no object made for them. It
returns None for each message that must be decoded:

- one with a tagged field, or with text in a skipped field that is not ASCII;
- one with more than `MOST_ENTRIES` entries, or with records that are not one batch;
- one that is malformed, or has bytes behind its end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from aclbroker.protocol.compile import runtime
from aclbroker.protocol.compile.source import FORMATS, Source
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
from aclbroker.protocol.schema import Struct, struct_of

MOST_ENTRIES: Final = 1000
"""The most entries of all arrays of a message together that are scanned, in a millisecond."""

_LEAST_BATCH: Final = 61
"""The bytes of a batch of format 2 without records."""

_CAUGHT: Final = (IndexError, struct.error, ProtocolError)

Scan = Callable[[Frame, int, int], tuple[Any, ...] | None]
"""Takes bytes, the position where a message begins in them, and the one where it ends."""


class Plan(NamedTuple):
    """The fields that a scan takes from a message; paths of fields have dots.

    With ``one_batch`` all records must be one batch of format 2 each. The variable
    ``transactional`` is then true if one of them is transactional, and ``records`` is the position
    of the last one.
    """

    message: Any
    result: str
    """The expression that the scan returns."""

    kept: Mapping[str, str]
    """The variables of fields, by the path of the field."""

    before: Mapping[str, str]
    """Lines of code that run before an array, by its path; that of "" runs first."""

    each: Mapping[str, str]
    """Lines of code that run behind each entry of an array, by its path."""

    spans: Mapping[str, str] = MappingProxyType({})
    """The variables for the bytes of a whole entry, by the path of its array."""

    one_batch: bool = False


def scanner(plan: Plan, version: int) -> Scan:
    """Return the scan of a message at a version; raises `UnsupportedVersion`."""
    layout = struct_of(plan.message, version)
    source = Source("def function(data, pos, size):")
    source.names |= {
        "CAUGHT": _CAUGHT,
        "from_bytes": int.from_bytes,
        "read_varint": runtime.read_varint,
        "unpack_from": struct.unpack_from,
    }
    with source.block("try:"):
        source.line("entries, transactional, records = 0, False, 0")
        source.line(plan.before.get("", "pass"))
        _Writer(source, plan).struct(layout, "")
        with source.block("if pos != size:"):
            source.line("return None")
        source.line(f"return {plan.result}")
    with source.block("except CAUGHT:"):
        source.line("return None")
    return source.function(f"scan of {plan.message.__name__} v{version}")


class _Writer:
    """Writes the lines of one scan."""

    def __init__(self, source: Source, plan: Plan) -> None:
        self._source = source
        self._plan = plan

    def struct(self, layout: Struct, path: str) -> None:
        """Write the lines that read a struct; ``path`` ends with a dot, or is empty."""
        fixed: list[tuple[str, str]] = []
        for name, wire_type in zip(layout.names, layout.fields, strict=True):
            if letter := FORMATS.get(wire_type):
                fixed.append((path + name, letter))
                continue
            self._fixed(fixed)
            fixed = []
            self._value(wire_type, path + name)
        self._fixed(fixed)
        if layout.flexible:
            self._none_if("data[pos]")
            self._source.line("pos += 1")

    def _none_if(self, condition: str) -> None:
        with self._source.block(f"if {condition}:"):
            self._source.line("return None")

    def _fixed(self, fields: list[tuple[str, str]]) -> None:
        """Write the lines that read those fields of fixed size that are kept, and skip all."""
        offset = 0
        for path, letter in fields:
            size = struct.calcsize(">" + letter)
            if path in self._plan.kept:
                self._kept(self._plan.kept[path], letter, offset, size)
            offset += size
        if offset:
            self._source.line(f"pos += {offset}")

    def _kept(self, name: str, letter: str, offset: int, size: int) -> None:
        at = f"pos + {offset}" if offset else "pos"
        if letter == "16s":
            self._source.line(f"{name} = bytes(data[{at}:pos + {offset + size}])")
        else:
            unpack = self._source.layout(letter, "unpack_from")
            self._source.line(f"{name}, = {unpack}(data, {at})")

    def _value(self, wire_type: WireType, path: str) -> None:
        """Write the lines for a value with a length; messages that are scanned have no others."""
        if isinstance(wire_type, Array):
            self._array(wire_type, path)
        elif isinstance(wire_type, Records):
            self._records(wire_type)
        else:
            self._text(cast(String, wire_type), path)

    def _length(self, wire_type: String | Bytes | Array) -> str:
        """Write the lines that read a length; return its variable, which null makes negative."""
        source, n = self._source, self._source.fresh("n")
        if wire_type.compact:
            source.line(f"{n} = data[pos] - 1")
            source.line("pos += 1")
            with source.block(f"if {n} > 126:"):
                source.line(f"{n}, pos = read_varint(data, pos - 1)")
                source.line(f"{n} -= 1")
        else:
            letter = "h" if isinstance(wire_type, String) else "i"
            source.line(f"{n}, = {source.layout(letter, 'unpack_from')}(data, pos)")
            source.line(f"pos += {struct.calcsize('>' + letter)}")
        if not wire_type.nullable:
            self._none_if(f"{n} < 0")
        return n

    def _end_of(self, wire_type: String | Bytes) -> str:
        """Write the lines that find the end of a value; return the variable of its length."""
        n = self._length(wire_type)
        self._source.line(
            f"end = pos + {n}" if not wire_type.nullable else f"end = pos + ({n} if {n} > 0 else 0)"
        )
        return n

    def _text(self, wire_type: String, path: str) -> None:
        source, name = self._source, self._plan.kept.get(path)
        n = self._end_of(wire_type)
        self._none_if(f"{n} > {LONGEST_STRING}")
        text = "bytes(data[pos:end])"
        if name is not None:
            source.line(
                f"{name} = {text}" + (f" if {n} >= 0 else None" if wire_type.nullable else "")
            )
        else:
            self._none_if(f"{n} > 0 and not {text}.isascii()")
        source.line("pos = end")

    def _records(self, wire_type: Records) -> None:
        source = self._source
        n = self._end_of(wire_type)
        if self._plan.one_batch:
            self._none_if(f"{n} < {_LEAST_BATCH} or data[pos + 16] != 2")
            self._none_if(f"from_bytes(data[pos + 8:pos + 12]) + 12 != {n}")
            source.line("records = pos")
            with source.block("if data[pos + 22] & 16:"):
                source.line("transactional = True")
        source.line("pos = end")

    def _array(self, wire_type: Array, path: str) -> None:
        source, plan = self._source, self._plan
        n = self._length(wire_type)
        source.line(
            f"entries += {n}" if not wire_type.nullable else f"entries += {n} if {n} > 0 else 0"
        )
        self._none_if(f"entries > {MOST_ENTRIES}")
        if path in plan.before:
            source.line(plan.before[path])
        if letter := FORMATS.get(wire_type.entry):
            source.line(f"{plan.kept[path]} = unpack_from(f'>{{{n}}}{letter}', data, pos)")
            source.line(f"pos += {n} * {struct.calcsize('>' + letter)}")
            return
        with source.block(f"for _ in range({n}):"):
            self._entry(cast(Struct, wire_type.entry), path)

    def _entry(self, layout: Struct, path: str) -> None:
        source, plan = self._source, self._plan
        span, start = plan.spans.get(path), source.fresh("start")
        if span is not None:
            source.line(f"{start} = pos")
        self.struct(layout, f"{path}.")
        if span is not None:
            source.line(f"{span} = bytes(data[{start}:pos])")
        if path in plan.each:
            source.line(plan.each[path])
