"""CRC-32C of what may be long, so that others have their turn while it is worked out."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Final

from aiokafka.record.util import calc_crc32c

from aclbroker.turns import pause

_AT_ONCE_BITS: Final = 23
_AT_ONCE: Final = 1 << (_AT_ONCE_BITS - 3)
"""How many bytes are gone through before the next pause: a megabyte."""

_POLYNOMIAL: Final = 0x82F63B78


def crc32c(data: memoryview) -> int:
    """Return the checksum of bytes. May pause."""
    if len(data) <= _AT_ONCE:
        return int(calc_crc32c(data))
    steps = crc32c_in_steps(data)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: int = done.value
            return value
        pause()


def crc32c_in_steps(data: memoryview) -> Generator[None, None, int]:
    """Return what `crc32c` does; each step takes a moment."""
    first = len(data) % _AT_ONCE if len(data) > _AT_ONCE else len(data)
    value: int = calc_crc32c(data[:first])
    for begin in range(first, len(data), _AT_ONCE):
        yield
        # The checksum of two parts is that of the first, moved by the length of the second, and
        # that of the second: the arithmetic is linear.
        value = _times(_moved(), value) ^ calc_crc32c(data[begin : begin + _AT_ONCE])
    return value


def _times(matrix: tuple[int, ...], vector: int) -> int:
    """Return the product of a matrix of bits, given by its columns, and a vector of bits."""
    product = 0
    for column in matrix:
        if vector & 1:
            product ^= column
        vector >>= 1
    return product


@cache
def _moved() -> tuple[int, ...]:
    """Return the matrix that moves a checksum by the bits of a part."""
    matrix = (_POLYNOMIAL, *(1 << bit for bit in range(31)))
    for _ in range(_AT_ONCE_BITS):
        matrix = tuple(_times(matrix, column) for column in matrix)
    return matrix
