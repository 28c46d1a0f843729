"""Hypothesis strategies that draw messages: kio's, aiokafka's and ours, from what each declares."""

from __future__ import annotations

import dataclasses
import datetime
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin

from aiokafka.protocol import types as aiokafka
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.schema.errors import ErrorCode

from aclbroker.protocol import aiokafka_types
from aclbroker.protocol.primitives import Array, Bytes, Nullable, String, UInt16, Uuid
from aclbroker.protocol.schema import Struct

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)

TEXT = st.text(max_size=12) | st.sampled_from(["", "*", "тема", "主題-😀", "a\0b", "x" * 200])
BYTES = st.binary(max_size=40) | st.just(bytes(200))


def signed(bits: int) -> SearchStrategy[int]:
    """Integers of so many bits, the extremes often among them."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.integers(low, high) | st.sampled_from([low, -1, 0, 1, high])


def unsigned(bits: int) -> SearchStrategy[int]:
    """Integers of so many bits without a sign."""
    return st.integers(0, (1 << bits) - 1)


KIO: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "bytes": BYTES,
    "datetime_i64": st.integers(0, 1 << 41).map(lambda ms: EPOCH + ms * MILLISECOND),
    "error_code": st.sampled_from(list(ErrorCode)),
    "float64": st.floats(allow_nan=False),
    "int8": signed(8),
    "int16": signed(16),
    "int32": signed(32),
    "int64": signed(64),
    "records": BYTES,
    "string": TEXT,
    "timedelta_i32": signed(32).map(lambda ms: ms * MILLISECOND),
    "timedelta_i64": signed(48).map(lambda ms: ms * MILLISECOND),
    "uint16": unsigned(16),
    "uint32": unsigned(32),
    "uuid": st.uuids(),
}
"""By kio's own names of the types on the wire."""

AIOKAFKA: dict[Any, SearchStrategy[Any]] = {
    aiokafka.Boolean: st.booleans(),
    aiokafka.Bytes: BYTES,
    aiokafka.Float64: st.floats(allow_nan=False),
    aiokafka.Int8: signed(8),
    aiokafka.Int16: signed(16),
    aiokafka.Int32: signed(32),
    aiokafka.Int64: signed(64),
    aiokafka.UInt32: unsigned(32),
}
"""By aiokafka's own wire type."""

OURS: dict[Any, SearchStrategy[Any]] = {
    **{getattr(aiokafka_types, cls.__name__, cls): drawn for cls, drawn in AIOKAFKA.items()},
    UInt16: unsigned(16),
    Uuid: st.binary(min_size=16, max_size=16),
}
"""By the wire type of the codec."""

TAGS = st.lists(
    st.tuples(st.integers(100, 1 << 30), BYTES), max_size=3, unique_by=lambda tag: tag[0]
)
"""Tagged fields that no declaration knows."""


@cache
def kio_objects(cls: Any) -> SearchStrategy[Any]:
    """Draw objects of a kio class, with all that it holds."""
    return st.builds(cls, **{field.name: _kio_field(field) for field in dataclasses.fields(cls)})


def _kio_field(field: dataclasses.Field[Any]) -> SearchStrategy[Any]:
    annotation: Any = field.type
    nullable = NoneType in get_args(annotation)
    if nullable:
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    if "tag" in field.metadata and field.default is not None:
        # kio takes any tagged field for optional; absent is the default there, not null.
        nullable = False
    if get_origin(annotation) is tuple:
        drawn = st.lists(_kio_value(get_args(annotation)[0], field), max_size=3).map(tuple)
    else:
        drawn = _kio_value(annotation, field)
    return st.none() | drawn if nullable else drawn


def _kio_value(cls: Any, field: dataclasses.Field[Any]) -> SearchStrategy[Any]:
    is_entity = dataclasses.is_dataclass(cls)
    if is_entity:
        return kio_objects(cls)
    return KIO[field.metadata["kafka_type"]]


def aiokafka_values(kind: Any) -> SearchStrategy[Any]:
    """Draw what an aiokafka Schema, or one of its fields, encodes.

    aiokafka does not say where the protocol allows null, so none is drawn.
    """
    if isinstance(kind, aiokafka.Schema):
        return st.tuples(*(aiokafka_values(field) for field in kind.fields))
    if isinstance(kind, aiokafka.Array):
        return st.lists(aiokafka_values(kind.array_of), max_size=3)
    return TEXT if isinstance(kind, aiokafka.String) else AIOKAFKA[kind]


def ours(wire_type: Any) -> SearchStrategy[Any]:
    """Draw what one of our wire types encodes: for a Struct, objects of its class."""
    return _ours(wire_type)


@cache
def _ours(wire_type: Any) -> SearchStrategy[Any]:
    match wire_type:
        case Struct():
            return _objects(wire_type)
        case Array():
            drawn: SearchStrategy[Any] = st.lists(ours(wire_type.entry), max_size=3)
            return st.none() | drawn if wire_type.nullable else drawn
        case String() | Bytes():
            drawn = TEXT if isinstance(wire_type, String) else BYTES
            return st.none() | drawn if wire_type.nullable else drawn
        case Nullable():
            return st.none() | ours(wire_type.struct)
        case _:
            return OURS[wire_type]


def _objects(struct: Struct) -> SearchStrategy[Any]:
    fields = {
        name: ours(wire_type) for name, wire_type in zip(struct.names, struct.fields, strict=True)
    }
    fields |= {known.name: ours(known.wire_type) for known in struct.known.values()}
    if struct.flexible:
        # The order in which tags are written is theirs by number, so that is how they come back.
        fields["unknown_tags"] = TAGS.map(lambda tags: tuple(sorted(tags)))
    return st.builds(struct.cls, **fields)


def full(wire_type: Any) -> Any:
    """Return the smallest value of one of our wire types that has one of everything in it."""
    match wire_type:
        case Struct():
            fields = {
                n: full(field) for n, field in zip(wire_type.names, wire_type.fields, strict=True)
            }
            fields |= {known.name: full(known.wire_type) for known in wire_type.known.values()}
            if wire_type.flexible:
                fields["unknown_tags"] = ((100, b"x"),)
            return wire_type.cls(**fields)
        case Array():
            return [full(wire_type.entry)]
        case String():
            return "x"
        case Bytes():
            return b"x"
        case Nullable():
            return full(wire_type.struct)
        case _:
            return bytes(16) if wire_type is Uuid else 1


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Draw a variant of bytes: some flipped, cut out, or replaced by lengths of all kinds."""
    lengths = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80", b"\0")
    broken = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(broken)))
        end = draw(st.integers(start, min(len(broken), start + 4)))
        broken[start:end] = draw(st.sampled_from(lengths) | st.binary(max_size=4))
    return bytes(broken)
