"""What is done when nothing was heard of a shared store for long: others may have changed it."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final, Protocol

from aclbroker.acl.bindings import (
    WILDCARD,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from aclbroker.acl.index import AclIndex
from aclbroker.acl.settings import StaleSettings
from aclbroker.broker.authorizer.follower import Follower, release, withhold
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.boot_clock import boot_s
from aclbroker.broker.stores.store import (
    AclStore,
    DistantStore,
    ForgetfulStore,
    LimitedStore,
    StoreError,
)

log = get_logger()

_LOOKS_S: Final = 0.5

_EVERYTHING: Final = tuple(
    ResourcePattern(each, PatternType.LITERAL, WILDCARD)
    for each in ResourceType
    if each > ResourceType.ANY
)


class _Store(AclStore, DistantStore, Protocol):
    """A store that is elsewhere."""


class Staleness:
    """Looks after a store that may be out of reach, from `start` until `close`.

    The ``follower`` follows it for the index.
    """

    def __init__(
        self,
        store: _Store,
        index: AclIndex,
        settings: StaleSettings,
        follower: Follower,
    ) -> None:
        self._store = store
        self._index = index
        self._settings = settings
        self._follower = follower
        self._heard_at = monotonic()
        self.is_stale = False
        """Whether the index may be stale: the store was silent for longer than the settings allow,
        or revokes may be missing, and the index has not caught up since."""

        self._wanted: int | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look())

    async def close(self) -> None:
        """End it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def silent_s(self) -> float:
        """For how many seconds nothing has been heard of the store; any thread may ask."""
        return max(0.0, monotonic() - self._heard_at)

    def unread(self) -> int | None:
        """How many messages of the store are not in the index, as far as is known.

        None where it cannot be known. Any thread may ask.
        """
        return self._store.unread(self._follower.position)

    async def _look(self) -> None:
        while True:
            began = boot_s()
            await asyncio.sleep(_LOOKS_S)
            # A process that was stopped heard nothing meanwhile, and a store may not notice that.
            stopped_s = boot_s() - began - _LOOKS_S
            silent_s = max(self._store.silent_s, stopped_s)
            self._heard_at = monotonic() - silent_s
            if silent_s > self._settings.after_s or self._is_outdated():
                self._wanted = None
                if not self.is_stale:
                    self._begin(silent_s)
            elif self.is_stale and await self._is_up_to_date():
                self._end()

    def _is_outdated(self) -> bool:
        """Return whether revokes may be missing, whatever lag the settings allow."""
        return isinstance(self._store, ForgetfulStore) and self._store.is_outdated

    async def _is_up_to_date(self) -> bool:
        """Whether the index has all that was changed while nothing was heard of the store."""
        try:
            if self._wanted is None:
                self._wanted = await self._store.position()
        except StoreError:
            return False
        return await self._follower.has_reached(self._wanted, _LOOKS_S)

    def _begin(self, silent_s: float) -> None:
        self.is_stale = True
        denies = self._settings.denies
        log.error(
            "ACLs may be stale: nothing has been heard of their store",
            seconds=round(silent_s),
            decisions="all are denied but super users" if denies else "go on with what is known",
        )
        if denies:
            self._follower.also_withheld = _EVERYTHING
            withhold(self._index, _EVERYTHING)

    def _end(self) -> None:
        self.is_stale, self._wanted = False, None
        log.warning("ACLs are up to date again")
        if self._settings.denies:
            self._follower.also_withheld = ()
            store: AclStore = self._store
            release(self._index, store.unreadable() if isinstance(store, LimitedStore) else ())
