"""The generated decoder: ``function(data, pos) -> (message, position behind it)``.

``data`` are bytes, or a bytearray that nobody changes any more.

It trusts no length: each one is compared with the number of bytes left before anything is allocated
or sliced. All other reads beyond the end raise IndexError or struct.error, which are turned into
`ProtocolError`.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

from aclbroker.protocol.compile import runtime
from aclbroker.protocol.compile.source import FORMATS, Source
from aclbroker.protocol.primitives import (
    LONGEST_STRING,
    MOST_ENTRIES,
    Array,
    Bytes,
    Nullable,
    ProtocolError,
    Records,
    String,
    WireType,
)
from aclbroker.protocol.schema import Struct, TaggedField
from aclbroker.turns import in_turns

_CAUGHT = (IndexError, struct.error, UnicodeDecodeError)


def decoder_source(layout: Struct) -> Source:
    """Generate the decoder of a message at one version."""
    source = Source("def function(data, pos):")
    # Answers are those of servers that one has chosen to ask, and may be as long as they like.
    source.counts_entries = layout.cls.__name__.endswith("Request")
    source.names |= {
        "CAUGHT": _CAUGHT,
        "ProtocolError": ProtocolError,
        "in_turns": in_turns,
        "long": runtime.long,
        "many": runtime.many,
        "new": object.__new__,
        "null": runtime.null,
        "raw": runtime.raw,
        "read_numbers": runtime.read_numbers,
        "read_tags": runtime.read_tags,
        "read_varint": runtime.read_varint,
        "records": runtime.records,
        "short": runtime.short,
        "tag_count": runtime.tag_count,
        "unpack_from": struct.unpack_from,
    }
    name = layout.cls.__name__
    with source.block("try:"):
        source.line("size = len(data)")
        if source.counts_entries:
            source.line("entries = 0")
        _struct(source, layout, "message")
        source.line("return message, pos")
    with source.block("except CAUGHT as error:"):
        source.line(f"raise ProtocolError(f'{name} v{layout.version}: {{error}}') from error")
    return source


def minimum_size(wire_type: WireType) -> int:
    """Return the fewest bytes that a value of the wire type can take."""
    match wire_type:
        case Struct():
            return sum(map(minimum_size, wire_type.fields)) + wire_type.flexible
        case Array() | Bytes() | String():
            return 1 if wire_type.compact else (2 if isinstance(wire_type, String) else 4)
        case Nullable():
            return 1
        case _:
            return struct.calcsize(">" + FORMATS[wire_type])


def _value(source: Source, wire_type: WireType, target: str, where: str) -> None:
    """Generate the lines that read one value into the variable ``target``."""
    match wire_type:
        case Struct():
            _struct(source, wire_type, target)
        case Array():
            _array(source, wire_type, target, where)
        case String() | Bytes():
            _slice(source, wire_type, target, where)
        case Nullable():
            [marker] = _fixed(source, "b")
            source.line(f"{target} = None")
            with source.block(f"if {marker} >= 0:"):
                _value(source, wire_type.struct, target, where)
        case _:
            [value] = _fixed(source, FORMATS[wire_type])
            source.line(f"{target} = {value}")


def _fixed(source: Source, *formats: str) -> list[str]:
    """Generate one step that reads values of fixed size; return the names of their variables."""
    targets = [source.fresh("v") for _ in formats]
    unpack = source.layout("".join(formats), "unpack_from")
    source.line(f"{', '.join(targets)}, = {unpack}(data, pos)")
    source.line(f"pos += {struct.calcsize('>' + ''.join(formats))}")
    return targets


def _length(source: Source, wire_type: String | Bytes | Array, where: str) -> str:
    """Generate the lines that read a length, negative for null; return its variable."""
    n = source.fresh("n")
    if wire_type.compact:
        source.line(f"{n} = data[pos] - 1")
        source.line("pos += 1")
        with source.block(f"if {n} > 126:"):
            source.line(f"{n}, pos = read_varint(data, pos - 1)")
            source.line(f"{n} -= 1")
            if isinstance(wire_type, String):
                with source.block(f"if {n} > {LONGEST_STRING}:"):
                    source.line(f"long({where!r})")
        return n
    [n] = _fixed(source, "h" if isinstance(wire_type, String) else "i")
    return n


def _null(
    source: Source, wire_type: String | Bytes | Array, n: str, target: str, where: str
) -> None:
    with source.block(f"if {n} < 0:"):
        source.line(f"{target} = None" if wire_type.nullable else f"null({where!r})")


def _slice(source: Source, wire_type: String | Bytes, target: str, where: str) -> None:
    n = _length(source, wire_type, where)
    _null(source, wire_type, n, target, where)
    with source.block("else:"):
        source.line(f"end = pos + {n}")
        with source.block("if end > size:"):
            source.line(f"short({where!r})")
        match wire_type:
            case String():
                source.line(f"{target} = data[pos:end].decode()")
            case Records():
                source.line(f"{target} = records(data, pos, end)")
            case _:
                source.line(f"{target} = raw(data, pos, end, {where!r})")
        source.line("pos = end")


def _array(source: Source, wire_type: Array, target: str, where: str) -> None:
    n = _length(source, wire_type, where)
    _null(source, wire_type, n, target, where)
    with source.block("else:"):
        least = minimum_size(wire_type.entry)
        with source.block(f"if {n} * {least} > size - pos:"):
            source.line(f"short({where!r})")
        _count(source, n, where)
        if (letter := FORMATS.get(wire_type.entry)) and letter != "16s":
            source.line(f"{target} = read_numbers({letter!r}, {n}, data, pos)")
            source.line(f"pos += {n} * {least}")
            return
        source.line(f"{target} = []")
        entry, append = source.fresh("e"), source.fresh("append")
        source.line(f"{append} = {target}.append")
        with source.block(f"for _ in in_turns(range({n})):"):
            _value(source, wire_type.entry, entry, where)
            source.line(f"{append}({entry})")


def _count(source: Source, n: str, where: str) -> None:
    """Generate the lines that count ``n`` entries more, and refuse too many."""
    if source.counts_entries:
        source.line(f"entries += {n}")
        with source.block(f"if entries > {MOST_ENTRIES}:"):
            source.line(f"many({where!r})")


def _struct(source: Source, layout: Struct, target: str) -> None:
    values: dict[str, str] = {}
    pending: list[tuple[str, str]] = []

    def flush() -> None:
        if pending:
            targets = _fixed(source, *(letter for _, letter in pending))
            values.update(zip((name for name, _ in pending), targets, strict=True))
            pending.clear()

    for name, wire_type in zip(layout.names, layout.fields, strict=True):
        if letter := FORMATS.get(wire_type):
            pending.append((name, letter))
            continue
        flush()
        values[name] = source.fresh("v")
        _value(source, wire_type, values[name], f"{layout.cls.__name__}.{name}")
    flush()
    if layout.flexible:
        _tags(source, layout, values)
    # The fields are set one by one, since calling the class takes half as long again.
    source.line(f"{target} = new({source.constant(layout.cls, 'C')})")
    for field in _fields(layout):
        source.line(f"{target}.{field.name} = {values.get(field.name) or source.default(field)}")


def _fields(layout: Struct) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(layout.cls)


def _tags(source: Source, layout: Struct, values: dict[str, str]) -> None:
    values["unknown_tags"] = unknown = source.fresh("t")
    defaults = {field.name: field for field in _fields(layout)}
    for known in layout.known.values():
        values[known.name] = source.fresh("v")
        source.line(f"{values[known.name]} = {source.default(defaults[known.name])}")
    source.line(f"{unknown} = ()")
    with source.block("if data[pos] == 0:"):
        source.line("pos += 1")
    with source.block("else:"):
        if layout.known:
            _known_tags(source, layout.known, values)
        else:
            source.line(f"{unknown}, pos = read_tags(data, pos)")
            _count(source, f"len({unknown})", "tagged fields")


def _known_tags(source: Source, known: dict[int, TaggedField], values: dict[str, str]) -> None:
    n, tag, end, unknown = (source.fresh(prefix) for prefix in ("n", "tag", "end", "u"))
    source.line(f"{unknown} = []")
    source.line(f"{n}, pos = tag_count(data, pos)")
    _count(source, n, "tagged fields")
    with source.block(f"for _ in range({n}):"):
        source.line(f"{tag}, pos = read_varint(data, pos)")
        source.line(f"{end}, pos = read_varint(data, pos)")
        source.line(f"{end} += pos")
        with source.block(f"if {end} > size:"):
            source.line("short('a tagged field')")
        for number, field in known.items():
            with source.block(f"if {tag} == {number}:"):
                _value(source, field.wire_type, values[field.name], field.name)
                with source.block(f"if pos != {end}:"):
                    source.line(f"short({field.name!r})")
                source.line("continue")
        source.line(f"{unknown}.append(({tag}, raw(data, pos, {end}, 'a tagged field')))")
        source.line(f"pos = {end}")
    source.line(f"{values['unknown_tags']} = tuple({unknown})")
