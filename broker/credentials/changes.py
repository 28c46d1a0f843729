"""Changes of the records of one kind: one after the other, durable before they are visible."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, StoreError

log = get_logger()

NOT_STORED: Final = (
    "The store could not save the change, so nothing was changed. The broker's log says why."
)


class NotStored(Exception):
    """The change was not made; the text may be sent to the client that asked for it."""


class Changes:
    """Runs changes one at a time, each from its checks to its being visible, so none is lost.

    Those that the store fails to make are logged in ``lines``.
    """

    def __init__(self, store: AclStore, kind: str, lines: LimitedLog | None = None) -> None:
        self._store = store
        self._kind = kind
        self._lines = lines or LimitedLog()
        self._host = ""
        self._lock = asyncio.Lock()
        self._closed = False

    @asynccontextmanager
    async def one(self, host: str = "") -> AsyncIterator[None]:
        """Make one change while others wait. Raises `NotStored` once closed.

        ``host`` is the address of the peer that asks for it; "" is the broker itself.
        """
        async with self._lock:
            self._host = host
            if self._closed:
                raise NotStored("The broker is shutting down; nothing was changed.")
            yield

    async def apply(self, put: Mapping[str, str], removed: Collection[str]) -> None:
        """Make a change durable. Raises `NotStored` if that failed, which is logged."""
        if not put and not removed:
            return
        try:
            await self._store.apply_records(self._kind, put, removed)
        except StoreError as error:
            self.tell(log.error, str(error))
            raise NotStored(NOT_STORED) from error

    def tell(self, write: Callable[..., Any], reason: str) -> None:
        """Log why a change is not made, unless its peer has caused too many such lines."""
        values = {"peer": self._host or None, "kind": self._kind, "reason": reason}
        self._lines.write(write, "credentials not changed", self._host, **values)

    async def close(self) -> None:
        """Finish the changes that wait; refuse all later ones."""
        async with self._lock:
            self._closed = True
