"""One store of ACLs that decide, alone or beside others, and the index that has what is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.index import AclIndex
from aclbroker.acl.settings import StaleSettings
from aclbroker.broker.authorizer.follower import Follower, withhold
from aclbroker.broker.authorizer.seed import seed
from aclbroker.broker.authorizer.staleness import Staleness
from aclbroker.broker.stores import AclStore
from aclbroker.broker.stores.store import DistantStore, LimitedStore


class AclSource:
    """An open store and its index, which `load` fills and keeps up to date until `close`.

    ``name`` is that of the provider, "" if it decides alone. With ``follows``, or if others change
    the store as well, it is followed: who changes the store waits for that, and changes nothing
    here.
    """

    def __init__(
        self, name: str, store: AclStore, index: AclIndex, *, follows: bool = False
    ) -> None:
        self.name = name
        self.store = store
        self.index = index
        self.follower: Follower | None = None
        """Who changes the index; None if that is up to who changes the store."""

        self._follows = follows or store.is_shared
        self.staleness: Staleness | None = None
        """What looks after a store that is elsewhere, once it is loaded."""

    async def load(
        self, stale: StaleSettings, acls_file: str = "", limit: int | None = None
    ) -> Sequence[AclBinding]:
        """Fill the index; return what a new store has got from the file of first ACLs.

        Raises `StoreError`.
        """
        store, index = self.store, self.index
        first: Sequence[AclBinding] = ()
        position = await store.position()
        async for bindings in store.load():
            index.add_all(bindings)
            # Those who are told meanwhile that it waits for its store are answered soon.
            await asyncio.sleep(0)
        if isinstance(store, LimitedStore):
            withhold(index, store.unreadable())
        if acls_file:
            first = await seed(store, index, acls_file, limit, position)
        if self._follows:
            self.follower = Follower(store, index)
            await self.follower.start(position)
            if isinstance(store, DistantStore):
                self.staleness = Staleness(store, index, stale, self.follower)
                self.staleness.start()
        return first

    async def close(self) -> None:
        """Stop following, and close the store."""
        if self.staleness is not None:
            await self.staleness.close()
        if self.follower is not None:
            await self.follower.close()
        await self.store.close()
