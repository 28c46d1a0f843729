"""Where clients come in: what a server needs of the sockets it listens on, or of who does."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from aclbroker.broker.config.model import Listener
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.server.registry import OpenConnection, Registry


class Entrance(Registry, Protocol):
    """Through which a connection came in: it is told how that goes on."""

    @property
    def listener(self) -> Listener:
        """Whose connection it is."""


Connect = Callable[[Entrance, str], asyncio.Protocol]
"""Makes what serves a connection from the address that is given."""


class Door(Protocol):
    """One listener of a server."""

    listener: Listener
    host: str
    port: int

    async def accept(self) -> None:
        """Let connections in until cancelled."""

    async def settled(self) -> None:
        """Wait until whoever was let in has a connection."""

    def duplicate(self) -> socket.socket:
        """Return its socket for somebody else, who accepts when this one does no longer."""

    def close(self) -> None:
        """Let nobody in any more; the connections stay."""


class Doors(Protocol):
    """The listeners of a server, and all its connections."""

    open: set[OpenConnection]
    """The connections that are open."""

    def listen(
        self,
        listener: Listener,
        backlog: int,
        lines: LimitedLog,
        connect: Connect,
        bound: socket.socket | None = None,
    ) -> Door:
        """Return a listener's door, perhaps of a socket that is ``bound``. Raises `OSError`."""

    def limit_to(self, room: int) -> bool:
        """Admit no more connections than there is room for; return whether more were admitted."""

    async def all_closed(self) -> None:
        """Wait until no connection is open."""
