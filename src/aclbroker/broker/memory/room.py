"""How much memory all records take together, and what goes when there is no more."""

from __future__ import annotations

from itertools import islice
from typing import Final, Protocol

from aclbroker.broker.memory.batch import LogError
from aclbroker.protocol.errors import ErrorCode

DELETE: Final = "delete"
"""The value of ``aclbroker.memory.full`` with which the oldest records go."""

_RESERVE: Final = 8
"""One part in so many is kept for markers: a transaction must come to its end."""


_LOOKED_AT: Final = 5_000
"""How many holders are asked at once whether they may go: with more of them others would wait."""


class Holder(Protocol):
    """Something that takes memory and may give it back."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""

    def may_go(self) -> bool:
        """Tell whether it may be removed to make room."""

    def go(self) -> None:
        """Remove it, which gives its bytes back to the room."""


class Room:
    """At most ``limit`` bytes. ``full`` is ``delete`` or ``refuse``: what happens beyond them."""

    def __init__(self, limit: int, full: str) -> None:
        self.limit = limit
        self.used = 0
        self._full = full
        # The oldest first.
        self._holders: dict[Holder, None] = {}

    def take(self, size: int, *, reserve: bool = False) -> None:
        """Count bytes that are about to be used, and make room for them where that is the setting.

        With ``reserve`` there may be more than the limit, by the part that is kept for what must be
        written. Raises `LogError` with KAFKA_STORAGE_ERROR if there is no room.
        """
        limit = self.limit + (self.limit // _RESERVE if reserve else 0)
        if self.used + size > limit:
            self._make(size, limit)
        self.used += size

    def give(self, size: int) -> None:
        """Count bytes that are not used any more."""
        self.used -= size

    def add(self, holder: Holder) -> None:
        """Note who holds bytes that were taken, or that it does so anew and others are older."""
        self._holders.pop(holder, None)
        self._holders[holder] = None

    def remove(self, holder: Holder) -> None:
        """Forget a holder, and count all of its bytes as free."""
        del self._holders[holder]
        self.used -= holder.size

    def _make(self, size: int, limit: int) -> None:
        if self._full == DELETE and size <= limit:
            for holder in list(islice(self._holders, _LOOKED_AT)):
                if holder.may_go():
                    holder.go()
                    if self.used + size <= limit:
                        return
                else:
                    # The next time others are looked at.
                    self._holders[holder] = self._holders.pop(holder)
        raise LogError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"The records in memory take {self.used} of aclbroker.memory.max.bytes={self.limit}.",
        )
