"""Encoded bytes that are too many to be put together at once: they are written as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from aclbroker.turns import pause

_AT_ONCE: Final = 4096
"""How many parts are counted before the next pause."""


Parts = list[bytes] | list[memoryview] | list[bytes | memoryview]


class Pieces:
    """Bytes in parts, in order; ``len`` is their number of bytes. The parts are not copied.

    Memory that many answers share, as that of encoded ACLs, is so held once. To join all parts of
    50 MB takes longer than others should wait, as does to free them.
    """

    __slots__ = ("_parts", "_size")

    def __init__(self, parts: Parts) -> None:
        self._parts = cast(list[bytes | memoryview], parts)
        self._size = 0
        for first in range(0, len(parts), _AT_ONCE):
            self._size += sum(map(len, parts[first : first + _AT_ONCE]))
            pause()

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    @property
    def parts(self) -> list[bytes | memoryview]:
        """The parts in order; they must not change."""
        return self._parts

    def headed(self, head: bytes) -> Pieces:
        """Return these bytes with others in front."""
        made = Pieces([head])
        made._parts += self._parts
        made._size += self._size
        return made

    def chunks(self, size: int) -> Iterator[bytes | memoryview]:
        """Return all bytes in chunks of about ``size``, of no more than twice that.

        What was returned is forgotten, so that it takes no memory any more: this can be done once.
        """
        parts, self._parts = self._parts, []
        parts.reverse()
        count = _AT_ONCE
        while parts:
            some = parts[-count:]
            held = sum(map(len, some))
            if held > 2 * size and len(some) > 1:
                count = len(some) // 2
                continue
            del parts[-len(some) :]
            some.reverse()
            if held > 2 * size:
                yield from _slices(some[0], size)
            else:
                yield b"".join(some)
            if held < size // 2:
                count = 2 * len(some)


Encoded = bytes | Pieces
"""What an encoder makes: `Pieces` of what is large."""


def _slices(data: bytes | memoryview, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    for first in range(0, len(data), size):
        yield view[first : first + size]
