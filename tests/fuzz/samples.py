"""Random messages, quickly made: the same for the same seed, thousands a second."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from aclbroker.protocol.aiokafka_types import Boolean, Float64, Int8, Int16, Int32, Int64, UInt32
from aclbroker.protocol.primitives import Array, Bytes, Nullable, String, UInt16, Uuid
from aclbroker.protocol.schema import Struct

TEXTS: Final = ("", "*", "a", "orders", "тема", "主題-😀", "a\0b", "x" * 130)
BLOBS: Final = (b"", b"\0", b"\xff\x80", bytes(200))
FLOATS: Final = (0.0, -0.0, 1.5, -1e300, float("inf"))


def integer(low: int, high: int) -> Callable[[Random], int]:
    """Return what draws integers, often the extremes and small ones."""
    return lambda chance: chance.choice((low, high, 0, 1, chance.randint(low, high)))


FIXED: Final[dict[Any, Callable[[Random], Any]]] = {
    Boolean: lambda chance: chance.random() < 0.5,
    Float64: lambda chance: chance.choice(FLOATS),
    Int8: integer(-0x80, 0x7F),
    Int16: integer(-0x8000, 0x7FFF),
    Int32: integer(-0x8000_0000, 0x7FFF_FFFF),
    Int64: integer(-(1 << 63), (1 << 63) - 1),
    UInt16: integer(0, 0xFFFF),
    UInt32: integer(0, 0xFFFF_FFFF),
    Uuid: lambda chance: chance.choice((bytes(16), chance.randbytes(16))),
}


def sample(chance: Random, wire_type: Any) -> Any:
    """Return a random value of a wire type: of a `Struct`, an object with all that it holds."""
    match wire_type:
        case Struct():
            return _object(chance, wire_type)
        case Array() | String() | Bytes() if wire_type.nullable and chance.random() < 0.2:
            return None
        case Array():
            return [sample(chance, wire_type.entry) for _ in range(chance.choice((0, 1, 1, 2)))]
        case String():
            return chance.choice(TEXTS)
        case Bytes():
            return chance.choice(BLOBS)
        case Nullable():
            return None if chance.random() < 0.3 else sample(chance, wire_type.struct)
        case _:
            return FIXED[wire_type](chance)


def _object(chance: Random, struct: Struct) -> Any:
    values = {
        name: sample(chance, wire_type)
        for name, wire_type in zip(struct.names, struct.fields, strict=True)
    }
    for known in struct.known.values():
        if chance.random() < 0.5:
            values[known.name] = sample(chance, known.wire_type)
    if struct.flexible and chance.random() < 0.3:
        # Tags are read back in the order of their numbers, in which they are written.
        values["unknown_tags"] = ((7000, b""), (1 << 31, b"\x80\0unknown"))
    return struct.cls(**values)
