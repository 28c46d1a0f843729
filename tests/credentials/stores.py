"""Stores that do not do what they should, or not yet."""

from __future__ import annotations

import asyncio

from aclbroker.broker.stores import StoreError
from aclbroker.broker.stores.memory import MemoryStore


class HeldStore(MemoryStore):
    """Makes changes of records wait until they are let through; fails them while it is `broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.through = asyncio.Event()
        self.through.set()
        self.broken = False

    async def apply_records(self, kind, put, removed, origin) -> int:
        await self.through.wait()
        if self.broken:
            raise StoreError("the disk is full")
        return await super().apply_records(kind, put, removed, origin)
