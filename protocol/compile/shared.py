"""Arrays that many messages hold, and nobody changes: their bytes are made once a version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class SharedList(list[T]):
    """A list that stays as it is, with its entries, once it has been encoded."""

    __slots__ = ("_encoded",)

    def __init__(self, entries: Iterable[T]) -> None:
        super().__init__(entries)
        self._encoded: dict[Callable[[Any], bytes], bytes] = {}

    def encoded(self, encode: Callable[[Any], bytes]) -> bytes:
        """Return what the encoder of an array makes of the list."""
        found = self._encoded.get(encode)
        if found is None:
            found = self._encoded[encode] = encode(self)
        return found
