"""The generated encoder: ``function(message)`` returns bytes, or `Pieces` if they are many."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from aclbroker.protocol.compile import runtime
from aclbroker.protocol.compile.shared import SharedList
from aclbroker.protocol.compile.source import FORMATS, Source
from aclbroker.protocol.pieces import Pieces
from aclbroker.protocol.primitives import Array, Bytes, Nullable, Records, String, WireType
from aclbroker.protocol.schema import Struct
from aclbroker.turns import in_turns

_PARTS: Final = 4096
"""How many parts of an encoded message are collected before they are joined."""


def encoder_source(struct: Struct) -> Source:
    """Generate the encoder of a message at one version."""
    source = _begun()
    _struct(source, struct, "message", "write")
    with source.block("if done:"):
        source.line("return Pieces([*done, b''.join(parts)])")
    source.line("return b''.join(parts)")
    return source


def entry_source(struct: Struct) -> Source:
    """Generate the encoder of an entry of a message, which always returns bytes."""
    source = _begun()
    _struct(source, struct, "message", "write")
    source.line("return b''.join(done + parts)")
    return source


def _begun() -> Source:
    source = Source("def function(message):")
    source.names |= {
        "COMPACT_LENGTH": runtime.COMPACT_LENGTH,
        "Pieces": Pieces,
        "SharedList": SharedList,
        "in_turns": in_turns,
        "missing": runtime.missing,
        "write_tags": runtime.write_tags,
    }
    source.line("done = []")
    source.line("parts = []")
    source.line("write = parts.append")
    return source


def _array_encoder(array: Array) -> Callable[[Any], bytes]:
    """Return a function that encodes a single array; it is compiled at its first call."""

    @cache
    def compiled() -> Callable[[Any], bytes]:
        source = _begun()
        # The slice of a SharedList is a plain list, which has no cached bytes.
        source.line("entries = message[:]")
        _entries(source, array, "entries", "write")
        source.line("return b''.join(done + parts)")
        return source.function("a shared array")

    return lambda entries: compiled()(entries)


def _value(source: Source, wire_type: WireType, value: str, write: str) -> None:
    """Generate the lines that append the bytes of the expression ``value``."""
    match wire_type:
        case Struct():
            _struct(source, wire_type, value, write)
        case Array() | String() | Bytes():
            _sized(source, wire_type, value, write)
        case Nullable():
            with source.block(f"if {value} is None:"):
                source.line(f"{write}(b'\\xff')")
            with source.block("else:"):
                source.line(f"{write}(b'\\x01')")
                _value(source, wire_type.struct, value, write)
        case _:
            source.line(f"{write}({_pack(source, [(wire_type, value)])})")


def _pack(source: Source, values: list[tuple[Any, str]]) -> str:
    pack = source.layout("".join(FORMATS[wire_type] for wire_type, _ in values), "pack")
    return f"{pack}({', '.join(value for _, value in values)})"


def _sized(source: Source, wire_type: Array | String | Bytes, value: str, write: str) -> None:
    held = source.fresh("v")
    source.line(f"{held} = {value}")
    if isinstance(wire_type, Array):
        _array(source, wire_type, held, write)
    elif wire_type.nullable:
        with source.block(f"if {held} is None:"):
            source.line(f"{write}({_null(wire_type)!r})")
        with source.block("else:"):
            _bytes(source, wire_type, held, write)
    else:
        _bytes(source, wire_type, held, write)


def _bytes(source: Source, wire_type: String | Bytes, value: str, write: str) -> None:
    if isinstance(wire_type, String):
        source.line(f"{value} = {value}.encode()")
    source.line(f"{write}({_length(source, wire_type, value)})")
    if isinstance(wire_type, Records) and write == "write":
        # Records can be more than are copied at once: then they come in pieces, and stay so.
        with source.block(f"if {value}.__class__ is Pieces:"):
            source.line("done.append(b''.join(parts))")
            source.line("parts.clear()")
            source.line(f"done += {value}.parts")
        with source.block("else:"):
            source.line(f"{write}({value})")
        return
    source.line(f"{write}({value})")


def _array(source: Source, wire_type: Array, value: str, write: str) -> None:
    """Generate the lines for an array; an empty one, as most are, costs only a comparison."""
    if isinstance(wire_type.entry, Struct):
        with source.block(f"if {value}.__class__ is SharedList:"):
            encode = source.constant(_array_encoder(wire_type), "A")
            source.line(f"{write}({value}.encoded({encode}))")
        _entries(source, wire_type, value, write, "elif")
    else:
        _entries(source, wire_type, value, write)


def _entries(
    source: Source, wire_type: Array, value: str, write: str, condition: str = "if"
) -> None:
    with source.block(f"{condition} {value}:"):
        source.line(f"{write}({_length(source, wire_type, value)})")
        entry = source.fresh("e")
        with source.block(f"for {entry} in in_turns({value}):"):
            _value(source, wire_type.entry, entry, write)
            # A million small parts would take too long to join and to free, all at once.
            if write == "write" and isinstance(wire_type.entry, Struct):
                with source.block(f"if len(parts) > {_PARTS}:"):
                    source.line("done.append(b''.join(parts))")
                    source.line("parts.clear()")
    with source.block(f"elif {value} is None:"):
        source.line(f"{write}({_null(wire_type)!r})" if wire_type.nullable else "missing()")
    with source.block("else:"):
        empty = b"\x01" if wire_type.compact else bytes(4)
        source.line(f"{write}({empty!r})")


def _length(source: Source, wire_type: Array | String | Bytes, value: str) -> str:
    if wire_type.compact:
        return f"COMPACT_LENGTH[len({value})]"
    pack = source.layout("h" if isinstance(wire_type, String) else "i", "pack")
    return f"{pack}(len({value}))"


def _null(wire_type: Array | String | Bytes) -> bytes:
    if wire_type.compact:
        return b"\x00"
    return b"\xff\xff" if isinstance(wire_type, String) else b"\xff\xff\xff\xff"


def _struct(source: Source, struct: Struct, value: str, write: str) -> None:
    pending: list[tuple[Any, str]] = []

    def flush() -> None:
        if pending:
            source.line(f"{write}({_pack(source, pending)})")
            pending.clear()

    for name, wire_type in zip(struct.names, struct.fields, strict=True):
        if wire_type in FORMATS:
            pending.append((wire_type, f"{value}.{name}"))
            continue
        flush()
        _value(source, wire_type, f"{value}.{name}", write)
    flush()
    if struct.flexible:
        _tags(source, struct, value, write)


def _tags(source: Source, struct: Struct, value: str, write: str) -> None:
    tags = source.fresh("t")
    source.line(f"{tags} = {value}.unknown_tags")
    fields = {field.name: field for field in dataclasses.fields(struct.cls)}
    for tag, known in struct.known.items():
        held, parts, inner = source.fresh("v"), source.fresh("parts"), source.fresh("write")
        source.line(f"{held} = {value}.{known.name}")
        default = source.default(fields[known.name])
        # The default of arrays is the empty tuple, which an empty list is not equal to.
        empty = f" and {held} != []" if default == "()" else ""
        with source.block(f"if {held} != {default}{empty}:"):
            source.line(f"{parts} = []")
            source.line(f"{inner} = {parts}.append")
            _value(source, known.wire_type, held, inner)
            source.line(f"{tags} = [*{tags}, ({tag}, b''.join({parts}))]")
    source.line(f"{write}(write_tags({tags}) if {tags} else b'\\0')")
