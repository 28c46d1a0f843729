"""The last changes that were made through a store, for those who follow it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.store import Origin, StoreChange, StoreReset
from aclbroker.broker.stores.waking import Wakeup

_ENTRIES: Final = 10_000
"""How many bindings and records the changes that are kept may have together."""


class RecentChanges:
    """Keeps changes after a position, until they are too many; then the older half is forgotten.

    It is used in one event loop at a time.
    """

    def __init__(self, position: int = 0, entries: int = _ENTRIES) -> None:
        self.position = position
        """That of the last change."""

        self.room = entries
        """How many bindings and records a change may have to be kept, and told as such."""

        self._begin = position
        self._changes: list[StoreChange] = []
        self._entries = 0
        self._more = Wakeup()
        self._closed = False

    def restart(self, position: int) -> None:
        """Forget all: what comes after a position is kept from now on."""
        self.position = self._begin = position
        self._changes.clear()
        self._entries = 0
        self._closed = False
        self._more.wake()

    def add(
        self,
        position: int,
        added: Collection[AclBinding],
        removed: Collection[AclBinding],
        records: Mapping[tuple[str, str], str | None],
        origin: Origin | None,
    ) -> None:
        """Take a change that comes after all others, and tell who follows."""
        self.position = position
        entries = len(added) + len(removed) + len(records)
        if entries > self.room:
            # It is not even copied, since to free it again would take long, all at once.
            self.restart(position)
            return
        self._changes.append(StoreChange(position, tuple(added), tuple(removed), records, origin))
        self._entries += entries
        if self._entries > self.room:
            self._forget()
        self._more.wake()

    def end(self) -> None:
        """Let those who follow come to an end."""
        self._closed = True
        self._more.wake()

    async def follow(
        self, position: int, everything: Callable[[], Awaitable[StoreReset]]
    ) -> AsyncIterator[StoreChange | StoreReset]:
        """Return what comes after a position; ``everything`` is asked for if that was forgotten."""
        while not self._closed:
            if position < self._begin:
                reset = await everything()
                position = reset.position
                yield reset
            at = bisect_right(self._changes, position, key=lambda change: change.position)
            if at < len(self._changes):
                change = self._changes[at]
                position = change.position
                yield change
            elif not self._closed and position >= self._begin:
                await self._more.wait()

    def _forget(self) -> None:
        """Forget the oldest changes, until half of the room is free."""
        count = 0
        for change in self._changes:
            if self._entries <= self.room // 2:
                break
            self._entries -= _entries_of(change)
            self._begin = change.position
            count += 1
        del self._changes[:count]


def _entries_of(change: StoreChange) -> int:
    return len(change.added) + len(change.removed) + len(change.records)


def records_changed(
    kind: str, put: Mapping[str, str], removed: Iterable[str]
) -> dict[tuple[str, str], str | None]:
    """Return what a change of the records of one kind is to those who follow."""
    changed: dict[tuple[str, str], str | None] = {(kind, name): None for name in removed}
    changed.update(((kind, name), value) for name, value in put.items())
    return changed
