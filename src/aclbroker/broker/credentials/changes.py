"""Changes of the records of one kind: one after the other, durable before they are visible."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreError
from aclbroker.broker.stores.store import SerialStore, StoreConflict

log = get_logger()

NOT_STORED: Final = (
    "The store could not save the change, so nothing was changed. The broker's log says why."
)

NOT_SEEN: Final = (
    "The change is stored, but this broker has not seen it come back from the store yet. Try again."
)

CHANGED: Final = (
    "Another broker has changed the same at this moment, so nothing was changed. Try again."
)

HasReached = Callable[[int], Awaitable[bool]]
"""Waits until all is known up to a position of the store, and returns whether it is."""


class NotStored(Exception):
    """The change was not made; the text may be sent to the client that asked for it."""


class Changes:
    """Runs changes one at a time, each from its checks to its being visible, so none is lost.

    Those that the store fails to make are logged in ``lines``. If the store is shared `followed_by`
    is called: who follows it then makes visible what all have changed, in their order.
    """

    def __init__(self, store: AclStore, kind: str, lines: LimitedLog | None = None) -> None:
        self._store = store
        self._kind = kind
        self._lines = lines or LimitedLog()
        self._origin = Origin.now()
        self._lock = asyncio.Lock()
        self._closed = False
        self._has_reached: HasReached | None = None
        self._since = 0

    def followed_by(self, has_reached: HasReached) -> None:
        """Have each change wait until who follows the store has told of it."""
        self._has_reached = has_reached

    @property
    def is_followed(self) -> bool:
        """Whether changes are told by who follows the store, and not made visible by who asks."""
        return self._has_reached is not None

    @asynccontextmanager
    async def one(self, origin: Origin | None = None) -> AsyncIterator[None]:
        """Make one change while others wait, by all that others have changed in a shared store.

        ``origin`` is who asks for it; without it, the broker itself. Raises `NotStored` once
        closed, or if what others have changed cannot be known.
        """
        async with self._lock:
            self._origin = origin or Origin.now()
            if self._closed:
                raise NotStored("The broker is shutting down; nothing was changed.")
            if self._has_reached is not None:
                await self._catch_up(self._has_reached)
            yield

    async def _catch_up(self, has_reached: HasReached) -> None:
        """Wait until what others have changed is known, by which a change is checked."""
        try:
            self._since = await self._store.position()
        except StoreError as error:
            self.tell(log.error, str(error))
            raise NotStored(NOT_STORED) from error
        if not await has_reached(self._since):
            self.tell(log.error, "what others changed was not seen in time")
            raise NotStored(NOT_STORED)

    async def apply(self, put: Mapping[str, str], removed: Collection[str]) -> None:
        """Make a change durable. Raises `NotStored` if that failed, which is logged."""
        if not put and not removed:
            return
        try:
            position = await self._stored(put, removed)
        except StoreConflict as error:
            self.tell(log.warning, str(error))
            raise NotStored(CHANGED) from error
        except StoreError as error:
            self.tell(log.error, str(error))
            raise NotStored(error.client_text or NOT_STORED) from error
        if self._has_reached is not None and not await self._has_reached(position):
            self.tell(log.error, "it was stored, and not seen since")
            raise NotStored(NOT_SEEN)

    async def _stored(self, put: Mapping[str, str], removed: Collection[str]) -> int:
        store, kind, origin = self._store, self._kind, self._origin
        if self._has_reached is not None and isinstance(store, SerialStore):
            return await store.apply_records_since(self._since, kind, put, removed, origin)
        return await store.apply_records(kind, put, removed, origin)

    def tell(self, write: Callable[..., Any], reason: str) -> None:
        """Log why a change is not made, unless its peer has caused too many such lines."""
        host = self._origin.host
        values = {"peer": host or None, "kind": self._kind, "reason": reason}
        self._lines.write(write, "credentials not changed", host, **values)

    async def close(self) -> None:
        """Finish the changes that wait; refuse all later ones."""
        async with self._lock:
            self._closed = True
