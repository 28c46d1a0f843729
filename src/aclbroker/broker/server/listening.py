"""Listening sockets: accepts connections within the limits of their number."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Mapping
from typing import Final

from aclbroker.acl.hosts import canonical, without_zone
from aclbroker.broker.config.model import Listener
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.doors import Connect
from aclbroker.broker.server.registry import OpenConnection

log = get_logger()

_RETRY_SECONDS: Final = 0.1

_NO_MORE_FIT: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""What accepting fails with where the system has no descriptor or no memory for a connection."""

_AT_ONCE: Final = 16
"""How many connections are accepted before others get their turn. The system's queue of those that
wait is short, and a client that finds it full tries again only after a second.
"""


class ConnectionQuotas:
    """The open connections of the whole broker, and the limits of their number.

    A connection above ``limit_per_address`` (or the address's own limit in ``overrides``) is closed
    at once. For one above ``limit``, or above its listener's, the oldest that has not authenticated
    is closed; it waits until another ends, as in Kafka, where all have. Of more than
    ``max_unauthenticated`` that have not authenticated the oldest is closed, too. So nobody who
    holds many open can keep out a client that authenticates in time.
    """

    def __init__(
        self,
        limit: int,
        limit_per_address: int,
        overrides: Mapping[str, int],
        max_unauthenticated: int,
        metrics: Metrics,
    ) -> None:
        self.limit = limit
        self.limit_per_address = limit_per_address
        self.overrides = {canonical(host): number for host, number in overrides.items()}
        self.max_unauthenticated = max_unauthenticated
        self.open: set[OpenConnection] = set()
        # In the order in which they came, with the names of their listeners.
        self._unauthenticated: dict[OpenConnection, str] = {}
        self._metrics = metrics
        self._admitted: Counter[str] = Counter()
        self._by_address: Counter[str] = Counter()
        self._changed = asyncio.Event()

    async def admit(self, listener: Listener, address: str) -> bool:
        """Give a place to a connection, waiting for one; False if its address has too many."""
        address = without_zone(address)
        if self._by_address[address] >= self.overrides.get(address, self.limit_per_address):
            return False
        self._by_address[address] += 1
        leaving: OpenConnection | None = None
        while why := self._why_full(listener):
            if leaving not in self.open:
                only_of = None if self._is_full() else listener
                leaving = self.make_room(why, only_of)
            await self._change()
        self._admitted[listener.name] += 1
        return True

    def make_room(self, why: str, only_of: Listener | None = None) -> OpenConnection | None:
        """Close the oldest connection, or that of one listener, which has not authenticated.

        Return it, or None if all have. It is gone when it is `open` no longer.
        """
        for connection, name in self._unauthenticated.items():
            if only_of is None or only_of.name == name:
                del self._unauthenticated[connection]
                connection.give_way(why)
                return connection
        return None

    async def gone(self, connection: OpenConnection) -> None:
        """Wait until a connection is open no longer."""
        while connection in self.open:
            await self._change()

    def leave(self, listener: Listener, address: str) -> None:
        """Give the place of a connection back."""
        self._admitted[listener.name] -= 1
        address = without_zone(address)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._changed.set()

    def opened(self, connection: OpenConnection, listener: Listener) -> None:
        """Add a connection, which has not authenticated yet."""
        self.open.add(connection)
        self._metrics.add("aclbroker_connections", listener.name)
        self._unauthenticated[connection] = listener.name
        # Whoever found nobody to close before may close this one.
        self._changed.set()
        if len(self._unauthenticated) > self.max_unauthenticated:
            self.make_room(
                f"{self.max_unauthenticated} younger connections have not authenticated either"
            )

    def authenticated(self, connection: OpenConnection) -> None:
        """Note that the client of a connection has authenticated."""
        self._unauthenticated.pop(connection, None)

    def closed(self, connection: OpenConnection, listener: Listener) -> None:
        """Remove a connection; another may have its place."""
        self.open.discard(connection)
        self._unauthenticated.pop(connection, None)
        self._metrics.add("aclbroker_connections", listener.name, amount=-1)
        self.leave(listener, connection.host)

    def listen(
        self,
        listener: Listener,
        backlog: int,
        lines: LimitedLog,
        connect: Connect,
        bound: socket.socket | None = None,
    ) -> ListeningSocket:
        """Open a listener's socket, or take one that is ``bound``. Raises `OSError`."""
        return ListeningSocket(listener, backlog, self, lines, connect, bound)

    def limit_to(self, room: int) -> bool:
        """Admit no more connections than there is room for; return whether more were admitted."""
        is_less = room < self.limit
        self.limit = min(room, self.limit)
        return is_less

    async def all_closed(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            await self._change()

    def _why_full(self, listener: Listener) -> str:
        """Return which limit leaves no room for another connection; "" if none does."""
        if self._is_full():
            return f"{self.limit} connections are open, the limit"
        if self._admitted[listener.name] >= listener.max_connections:
            return f"{listener.max_connections} connections of the listener are open, its limit"
        return ""

    def _is_full(self) -> bool:
        return self._admitted.total() >= self.limit

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class ListeningSocket:
    """One listener's socket and its connections; the socket may be ``bound`` already."""

    def __init__(
        self,
        listener: Listener,
        backlog: int,
        quotas: ConnectionQuotas,
        lines: LimitedLog,
        connect: Connect,
        bound: socket.socket | None = None,
    ) -> None:
        self.listener = listener
        self._quotas = quotas
        self._lines = lines
        self._connect = connect
        self._opening: set[asyncio.Task[None]] = set()
        self._socket = _bind(listener, backlog) if bound is None else bound
        self.host, self.port = self._socket.getsockname()[:2]

    def opened(self, connection: OpenConnection) -> None:
        """Add a connection that was accepted."""
        self._quotas.opened(connection, self.listener)

    def authenticated(self, connection: OpenConnection) -> None:
        """Note that the client of a connection has authenticated."""
        self._quotas.authenticated(connection)

    def closed(self, connection: OpenConnection) -> None:
        """Remove a connection; another may have its place."""
        self._quotas.closed(connection, self.listener)

    async def accept(self) -> None:
        """Accept connections until cancelled."""
        accepted = 0
        while True:
            try:
                peer, _ = self._socket.accept()
            except BlockingIOError:
                await self._wait()
                continue
            except OSError as error:
                await self._not_accepted(error)
                continue
            await self._admit(peer)
            accepted += 1
            if accepted % _AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _not_accepted(self, error: OSError) -> None:
        """Make room where none was left, or log an error, which is not the listener's end."""
        if error.errno in _NO_MORE_FIT:
            # Linux says so whether or not somebody waits.
            await self._wait()
            leaving = self._quotas.make_room(f"no more connections can be opened: {error.strerror}")
            if leaving is not None:
                await self._quotas.gone(leaving)
                return
        name = self.listener.name
        self._lines.write(log.error, "accept failed", "", listener=name, error=str(error))
        await asyncio.sleep(_RETRY_SECONDS)

    async def _wait(self) -> None:
        """Wait for a connection to accept."""
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._socket)

    async def _admit(self, peer: socket.socket) -> None:
        """Give a connection a place, waiting for one, and open it in a task of its own."""
        try:
            address = canonical(peer.getpeername()[0])
        except OSError:
            peer.close()
            return
        try:
            is_admitted = await self._quotas.admit(self.listener, address)
        except asyncio.CancelledError:
            # The server stops while the connection waits for a place.
            peer.close()
            raise
        if not is_admitted:
            self._lines.write(
                log.warning,
                "connection refused: too many of this address",
                address,
                peer=address,
                listener=self.listener.name,
            )
            peer.close()
            return
        peer.setblocking(False)
        task = asyncio.create_task(self._open(peer, address))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, peer: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: self._connect(self, address), peer)
        except OSError:
            self._left(address)
            peer.close()

    def _left(self, address: str) -> None:
        """Give back the place of a connection that was never opened."""
        self._quotas.leave(self.listener, address)

    async def settled(self) -> None:
        """Wait until whoever was accepted has a connection."""
        if self._opening:
            await asyncio.wait(self._opening)

    def duplicate(self) -> socket.socket:
        """Return the same socket for somebody else, who accepts when this one does no longer."""
        return self._socket.dup()

    def close(self) -> None:
        """Close the socket; its connections stay."""
        self._socket.close()


def _bind(listener: Listener, backlog: int) -> socket.socket:
    """Open a listener's socket; raises `OSError`."""
    if listener.host is None:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        bound = socket.create_server(
            ("", listener.port), family=family, backlog=backlog, dualstack_ipv6=dual
        )
    else:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM
        )
        bound = socket.create_server(address, family=family, backlog=backlog)
    bound.setblocking(False)
    return bound
