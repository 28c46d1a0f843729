"""What somebody knows who loads a store and follows it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.store import AclStore, StoreChange, StoreReset

WITHIN_S = 20.0


async def loaded(store: AclStore) -> list[AclBinding]:
    """All ACLs of a store, sorted."""
    return sorted([binding async for chunk in store.load() for binding in chunk])


class Followed:
    """The ACLs and records that are known to who loads a store and follows it from then on."""

    def __init__(self, store: AclStore) -> None:
        self._store = store
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.acls: set[AclBinding] = set()
        self.news: list[StoreChange | StoreReset] = []

    @property
    def resets(self) -> list[StoreReset]:
        """What was told where all was told anew."""
        return [each for each in self.news if isinstance(each, StoreReset)]

    @property
    def changes(self) -> list[StoreChange]:
        """The others."""
        return [each for each in self.news if isinstance(each, StoreChange)]

    async def __aenter__(self) -> "Followed":
        position = await self._store.position()
        self.acls = set(await loaded(self._store))
        self._task = asyncio.create_task(self._take(self._store.follow(position)))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _take(self, news: AsyncIterator[StoreChange | StoreReset]) -> None:
        async for each in news:
            if isinstance(each, StoreReset):
                self.acls = set(each.bindings)
            else:
                self.acls = (self.acls | set(each.added)) - set(each.removed)
            assert not self.news or self.news[-1].position < each.position
            self.news.append(each)
            self._moved.set()
            self._moved = asyncio.Event()

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait until something holds of what is known; TimeoutError if it does not in time."""
        async with asyncio.timeout(WITHIN_S):
            while not is_so():
                await self._moved.wait()
