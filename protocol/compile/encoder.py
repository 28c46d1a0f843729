"""The generated encoder: ``function(message) -> bytes``."""

from __future__ import annotations

import dataclasses
from typing import Any

from protocol.compile import runtime
from protocol.compile.source import FORMATS, Source
from protocol.leaves import Array, Bytes, Leaf, Nullable, String
from protocol.schema import Struct


def encoder_source(struct: Struct) -> Source:
    """Write the encoder of a message at one version."""
    source = Source("def function(message):")
    source.names |= {
        "COMPACT_LENGTH": runtime.COMPACT_LENGTH,
        "missing": runtime.missing,
        "write_tags": runtime.write_tags,
    }
    source.line("parts = []")
    source.line("write = parts.append")
    _struct(source, struct, "message", "write")
    source.line("return b''.join(parts)")
    return source


def _value(source: Source, leaf: Leaf, value: str, write: str) -> None:
    """Write the lines that append the bytes of the expression ``value``."""
    match leaf:
        case Struct():
            _struct(source, leaf, value, write)
        case Array() | String() | Bytes():
            _sized(source, leaf, value, write)
        case Nullable():
            with source.block(f"if {value} is None:"):
                source.line(f"{write}(b'\\xff')")
            with source.block("else:"):
                source.line(f"{write}(b'\\x01')")
                _value(source, leaf.struct, value, write)
        case _:
            source.line(f"{write}({_pack(source, [(leaf, value)])})")


def _pack(source: Source, values: list[tuple[Any, str]]) -> str:
    pack = source.layout("".join(FORMATS[leaf] for leaf, _ in values), "pack")
    return f"{pack}({', '.join(value for _, value in values)})"


def _sized(source: Source, leaf: Array | String | Bytes, value: str, write: str) -> None:
    held = source.fresh("v")
    source.line(f"{held} = {value}")
    if isinstance(leaf, Array):
        _array(source, leaf, held, write)
    elif leaf.nullable:
        with source.block(f"if {held} is None:"):
            source.line(f"{write}({_null(leaf)!r})")
        with source.block("else:"):
            _bytes(source, leaf, held, write)
    else:
        _bytes(source, leaf, held, write)


def _bytes(source: Source, leaf: String | Bytes, value: str, write: str) -> None:
    if isinstance(leaf, String):
        source.line(f"{value} = {value}.encode()")
    source.line(f"{write}({_length(source, leaf, value)})")
    source.line(f"{write}({value})")


def _array(source: Source, leaf: Array, value: str, write: str) -> None:
    """Write the lines for an array: most are empty, and cost a comparison."""
    with source.block(f"if {value}:"):
        source.line(f"{write}({_length(source, leaf, value)})")
        entry = source.fresh("e")
        with source.block(f"for {entry} in {value}:"):
            _value(source, leaf.entry, entry, write)
    with source.block(f"elif {value} is None:"):
        source.line(f"{write}({_null(leaf)!r})" if leaf.nullable else "missing()")
    with source.block("else:"):
        empty = b"\x01" if leaf.compact else bytes(4)
        source.line(f"{write}({empty!r})")


def _length(source: Source, leaf: Array | String | Bytes, value: str) -> str:
    if leaf.compact:
        return f"COMPACT_LENGTH[len({value})]"
    pack = source.layout("h" if isinstance(leaf, String) else "i", "pack")
    return f"{pack}(len({value}))"


def _null(leaf: Array | String | Bytes) -> bytes:
    if leaf.compact:
        return b"\x00"
    return b"\xff\xff" if isinstance(leaf, String) else b"\xff\xff\xff\xff"


def _struct(source: Source, struct: Struct, value: str, write: str) -> None:
    pending: list[tuple[Any, str]] = []

    def flush() -> None:
        if pending:
            source.line(f"{write}({_pack(source, pending)})")
            pending.clear()

    for name, leaf in zip(struct.names, struct.fields, strict=True):
        if leaf in FORMATS:
            pending.append((leaf, f"{value}.{name}"))
            continue
        flush()
        _value(source, leaf, f"{value}.{name}", write)
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
        # A list is not equal to the empty tuple, which is the default of arrays.
        empty = f" and {held} != []" if default == "()" else ""
        with source.block(f"if {held} != {default}{empty}:"):
            source.line(f"{parts} = []")
            source.line(f"{inner} = {parts}.append")
            _value(source, known.leaf, held, inner)
            source.line(f"{tags} = [*{tags}, ({tag}, b''.join({parts}))]")
    source.line(f"{write}(write_tags({tags}) if {tags} else b'\\0')")
