"""A store that is used through its owner, over a Unix socket, as workers use one."""

import asyncio
import socket

from aclbroker.broker.stores import AclStore
from aclbroker.broker.stores.owned.channel import Channel
from aclbroker.broker.stores.owned.client import SerialOwnedStore
from aclbroker.broker.stores.owned.service import OwnedStores

NAME = "one"


async def ignored(_reason: str) -> None:
    """Let a process that is late go on."""


class Link:
    """Both ends of a channel between the owner of stores and one more process that uses them."""

    def __init__(self, stores: OwnedStores, too_late=ignored) -> None:
        self.user, self.owner = Channel({}), Channel({})
        self.stores = stores
        stores.serve(self.owner, too_late)
        self._running: list[asyncio.Task[None]] = []

    async def open(self) -> Channel:
        for channel, end in zip((self.user, self.owner), socket.socketpair(), strict=True):
            await channel.open(end)
            self._running.append(asyncio.create_task(channel.run()))
        return self.user

    async def close(self) -> None:
        self.stores.leave(self.owner)
        self.user.close()
        await asyncio.gather(*self._running)


class OwnedElsewhere(SerialOwnedStore):
    """One process's view of a store, whose owner opens and closes it together with this."""

    def __init__(self, store: AclStore) -> None:
        self._store = store
        self._link: Link | None = None

    async def open(self) -> None:
        # Who follows in these tests applies nothing until it is asked to, so nobody waits for it.
        self._link = Link(OwnedStores({NAME: self._store}, patience_s=0))
        super().__init__(await self._link.open(), NAME)
        await super().open()

    async def close(self) -> None:
        await super().close()
        link, self._link = self._link, None
        if link is not None:
            await link.stores.close()
            await link.close()
