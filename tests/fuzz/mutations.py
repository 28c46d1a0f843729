"""Damage to bytes, of the kinds that find what a decoder forgot to check."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from aclbroker.protocol.compile.runtime import varint

INT16 = (-0x8000, -2, -1, 0, 1, 0x7FFE, 0x7FFF)
INT32 = (-0x80000000, -2, -1, 0, 1, 0xFFFF, 0x10000, 0x7FFFFFFE, 0x7FFFFFFF)
UNSIGNED = (0, 1, 2, 0x7F, 0x80, 0x3FFF, 0x4000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
BROKEN_VARINTS = (b"\x80", b"\xff" * 5, b"\xff\xff\xff\xff\x1f", b"\x80" * 9 + b"\x01")

Damage = Callable[[Random, bytes, int, bytes], bytes]
"""Takes the bytes, where to begin, and bytes of another message."""


def extreme_length(chance: Random) -> bytes:
    """Return a length or count as one of the protocol's types has it, most often a wrong one."""
    match chance.randrange(4):
        case 0:
            return struct.pack(">h", chance.choice(INT16))
        case 1:
            return struct.pack(">i", chance.choice(INT32))
        case 2:
            return varint(chance.choice(UNSIGNED))
        case _:
            return chance.choice(BROKEN_VARINTS)


def _flip_bits(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    flipped = bytearray(data)
    for _flip in range(chance.choice((1, 1, 1, 4))):
        flipped[chance.randrange(start, len(data))] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _truncate(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    return data[: chance.randrange(start, len(data))]


def _insert_length(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    return data[:at] + extreme_length(chance) + data[at:]


def _overwrite_length(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    length = extreme_length(chance)
    return data[:at] + length + data[at + len(length) :]


def _insert_random_bytes(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    return data[:at] + chance.randbytes(chance.randint(1, 20)) + data[at:]


def _overwrite_with_random_bytes(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    return data[:at] + chance.randbytes(len(data) - at)


def _cut_out(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    return data[:at] + data[at + chance.randint(1, 8) :]


def _repeat(chance: Random, data: bytes, start: int, _: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    return data[:at] + data[at : at + chance.randint(1, 30)] * chance.randint(2, 20) + data[at:]


def _splice(chance: Random, data: bytes, start: int, other: bytes) -> bytes:
    at = chance.randrange(start, len(data))
    return data[:at] + other[chance.randrange(len(other)) :]


DAMAGES: tuple[Damage, ...] = (
    _flip_bits,
    _flip_bits,
    _flip_bits,
    _flip_bits,
    _truncate,
    _insert_length,
    _overwrite_length,
    _insert_random_bytes,
    _overwrite_with_random_bytes,
    _cut_out,
    _repeat,
    _splice,
)
"""Mostly what leaves lengths right, so that much gets past the decoder."""


def mutated(chance: Random, data: bytes, other: bytes, *, header: int = 0) -> bytes:
    """Return bytes with one or two damages, nine times out of ten behind the first ``header``.

    ``other`` is another message, to splice with; neither may be empty.
    """
    start = 0 if header >= len(data) or chance.random() < 0.1 else header
    for _ in range(chance.choice((1, 1, 1, 2))):
        if len(data) > start:
            data = chance.choice(DAMAGES)(chance, data, start, other)
    return data
