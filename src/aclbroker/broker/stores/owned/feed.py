"""Changes of a store as its owner makes them, and tells them to those who follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.recent_changes import RecentChanges, records_changed
from aclbroker.broker.stores.store import (
    AclStore,
    Origin,
    Plan,
    SerialStore,
    StoreChange,
    StoreReset,
    claim,
)

_ENTRIES: Final = 150_000
"""How many entries of changes are kept: more than one request may create.

A store itself keeps less. What it has forgotten it tells as all that there is, and a million ACLs
take each process that follows seconds and hundreds of megabytes.
"""

_BEFORE_ALL: Final = -1


class Feed:
    """Changes an open store, and tells the changes that are made.

    Where others change the store, too, only the store itself knows the order of all changes; where
    nobody does, they are told as they were asked for.
    """

    def __init__(self, store: AclStore) -> None:
        self._store = store
        self._recent = RecentChanges(entries=_ENTRIES)
        self._changing = asyncio.Lock()
        self._claiming = asyncio.Lock()

    async def start(self) -> None:
        """Begin with what the store has, which is open now."""
        self._recent.restart(await self._store.position())

    def end(self) -> None:
        """Let those who follow come to an end."""
        self._recent.end()

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return all changes after a position, as `AclStore.follow` does."""
        if self._store.is_shared:
            return self._store.follow(position)
        return self._recent.follow(position, self._everything)

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Change bindings, as `AclStore.apply` does."""
        change = self._store.apply
        return await self._told(lambda: change(added, removed, origin), added, removed, {}, origin)

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Change records, as `AclStore.apply_records` does."""
        change = self._store.apply_records
        records = records_changed(kind, put, removed)
        return await self._told(lambda: change(kind, put, removed, origin), (), (), records, origin)

    async def transact(self, position: int, plan: Plan, origin: Origin) -> int:
        """Change bindings as `SerialStore.transact` does."""
        return await self._serial.transact(position, plan, origin)

    async def apply_records_since(
        self,
        position: int,
        kind: str,
        put: Mapping[str, str],
        removed: Collection[str],
        origin: Origin,
    ) -> int:
        """Change records as `SerialStore.apply_records_since` does."""
        return await self._serial.apply_records_since(position, kind, put, removed, origin)

    @property
    def _serial(self) -> SerialStore:
        if not isinstance(self._store, SerialStore):
            raise RuntimeError("the store does not make changes one after the other")
        return self._store

    async def claim(self, kind: str, wanted: Mapping[str, str], origin: Origin) -> dict[str, str]:
        """Give records values where they have none, as `ClaimingStore.claim` does."""
        if self._store.is_shared:
            return await claim(self._store, kind, wanted, origin)
        async with self._claiming:
            there = await self._store.load_records(kind)
            missing = {name: value for name, value in wanted.items() if name not in there}
            if missing:
                await self.apply_records(kind, missing, (), origin)
            return {name: there.get(name, value) for name, value in wanted.items()}

    async def _told(
        self,
        change: Callable[[], Awaitable[int]],
        added: Collection[AclBinding],
        removed: Collection[AclBinding],
        records: Mapping[tuple[str, str], str | None],
        origin: Origin,
    ) -> int:
        if self._store.is_shared:
            return await change()
        async with self._changing:
            before = await self._store.position()
            position = await change()
            if before != self._recent.position:
                # A change before this one failed at the very end, and was made all the same.
                self._recent.restart(position)
            elif position != before:
                self._recent.add(position, added, removed, records, origin)
            return position

    async def _everything(self) -> StoreReset:
        async for news in self._store.follow(_BEFORE_ALL):
            if isinstance(news, StoreReset):
                return news
        raise RuntimeError("the store was closed while it was read")
