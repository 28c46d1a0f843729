"""Arrays that many messages share and nobody changes; they are encoded once for each version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class SharedList(list[T]):
    """A list that must not change, nor its entries, once it has been encoded."""

    __slots__ = ("_encoded",)

    def __init__(self, entries: Iterable[T]) -> None:
        super().__init__(entries)
        self._encoded: dict[Callable[[Any], bytes], bytes] = {}

    def encoded(self, encode: Callable[[Any], bytes]) -> bytes:
        """Return the bytes that an array's encoder makes from the list; they are cached."""
        found = self._encoded.get(encode)
        if found is None:
            found = self._encoded[encode] = encode(self)
        return found
