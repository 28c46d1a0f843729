"""Waits until an index has all that a shared store has, for those who want to see the latest."""

from __future__ import annotations

import asyncio
from typing import Final

from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import AclStore, StoreError

log = get_logger()

_PATIENCE_S: Final = 10.0
"""How long is waited at most: an AdminClient waits 30 seconds for an answer."""


class Latest:
    """Asks a store up to where it has changes, and waits for these.

    Those who ask while it is being asked are served by the next time together: what was asked
    before they came may not tell of a change that they know of.
    """

    def __init__(self, store: AclStore, follower: Follower, lines: LimitedLog) -> None:
        self._store = store
        self._follower = follower
        self._lines = lines
        self._asking: asyncio.Task[bool] | None = None
        self._next: asyncio.Task[bool] | None = None

    async def reached(self) -> bool:
        """Return whether the index has all that the store had when this was called."""
        if self._next is None:
            self._next = asyncio.create_task(self._ask_after(self._asking))
        return await asyncio.shield(self._next)

    async def _ask_after(self, before: asyncio.Task[bool] | None) -> bool:
        try:
            # Those who wait have waited for the one before as well. That has begun earlier, and so
            # ends in time.
            async with asyncio.timeout(_PATIENCE_S):
                try:
                    if before is not None:
                        await asyncio.wait([before])
                finally:
                    self._asking, self._next = self._next, None
                return await self._follower.has_reached(await self._store.position())
        except TimeoutError:
            reason = "it did not tell its last changes in time"
        except StoreError as error:
            reason = str(error)
        self._lines.write(log.error, "ACLs not read from their store", "", reason=reason)
        return False
