"""The listeners of a worker: connections that the owner of the sockets has handed on."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Final

from aclbroker.broker.config.model import Listener
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.server.doors import Connect
from aclbroker.broker.server.registry import OpenConnection
from aclbroker.broker.stores.owned.channel import Channel, Message

_AT_ONCE: Final = 16
_LONGEST: Final = 4096


class HandedDoors:
    """Takes connections from a socket, and tells their owner by a channel how they go on.

    ``addresses`` are those that the listeners really have, by their names.
    """

    def __init__(
        self, channel: Channel, hands: socket.socket, addresses: Mapping[str, tuple[str, int]]
    ) -> None:
        self.open: set[OpenConnection] = set()
        self.channel = channel
        self._hands = hands
        self._addresses = addresses
        self._doors: dict[str, HandedDoor] = {}
        self._connections: dict[int, OpenConnection] = {}
        self._unwanted: dict[int, str] = {}
        self._changed = asyncio.Event()
        channel.handlers["give_way"] = self._give_way
        hands.setblocking(False)
        asyncio.get_running_loop().add_reader(hands, self._take)

    def listen(
        self,
        listener: Listener,
        backlog: int,
        lines: LimitedLog,
        connect: Connect,
        bound: socket.socket | None = None,
    ) -> HandedDoor:
        """Return what takes the connections of a listener."""
        host, port = self._addresses[listener.name]
        door = HandedDoor(listener, host, port, self._doors, connect)
        self._doors[listener.name] = door
        return door

    def limit_to(self, room: int) -> bool:
        """Leave the limit to who hands connections on."""
        return False

    async def all_closed(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            self._changed.clear()
            await self._changed.wait()

    def opened(self, number: int, connection: OpenConnection) -> None:
        """Add a connection, unless it is to be closed already."""
        self.open.add(connection)
        self._connections[number] = connection
        if (why := self._unwanted.pop(number, None)) is not None:
            connection.give_way(why)

    def closed(self, number: int, connection: OpenConnection) -> None:
        """Remove a connection; another may have its place."""
        self.open.discard(connection)
        self._connections.pop(number, None)
        self.channel.tell("closed", number)
        self._changed.set()

    def _take(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                told, descriptors, _, _ = socket.recv_fds(self._hands, _LONGEST, 1)
            except (BlockingIOError, InterruptedError):
                return
            if not told:
                asyncio.get_running_loop().remove_reader(self._hands)
                return
            number, name, address = json.loads(told)
            peer = socket.socket(fileno=descriptors[0]) if descriptors else None
            door = self._doors.get(name)
            if peer is None or door is None:
                if peer is not None:
                    peer.close()
                self.channel.tell("closed", number)
                continue
            peer.setblocking(False)
            door.begin(self, number, peer, address)

    def _give_way(self, told: Message) -> None:
        number, why = told.value
        connection = self._connections.get(number)
        if connection is None:
            # It has not come yet, or has just gone, which the owner then knows before long.
            self._unwanted[number] = why
            asyncio.get_running_loop().call_later(60, self._unwanted.pop, number, None)
        else:
            connection.give_way(why)


class HandedDoor:
    """One listener of a worker. Connections that come before it accepts any wait for that."""

    def __init__(
        self,
        listener: Listener,
        host: str,
        port: int,
        doors: dict[str, HandedDoor],
        connect: Connect,
    ) -> None:
        self.listener = listener
        self.host = host
        self.port = port
        self.connect = connect
        self._doors = doors
        self._opening: set[asyncio.Task[None]] = set()
        self._early: list[tuple[_Handed, socket.socket, str]] | None = []

    async def accept(self) -> None:
        """Take connections until cancelled."""
        early, self._early = self._early or (), None
        for each in early:
            self._begin(*each)
        try:
            await asyncio.Event().wait()
        finally:
            self.close()

    async def settled(self) -> None:
        """Wait until all that was taken has a connection."""
        if self._opening:
            await asyncio.wait(self._opening)

    def duplicate(self) -> socket.socket:
        """Raise `TypeError`: the socket is the owner's."""
        raise TypeError("a worker has no listening socket")

    def close(self) -> None:
        """Take none any more."""
        self._doors.pop(self.listener.name, None)
        early, self._early = self._early or (), None
        for handed, peer, _ in early:
            handed.refuse(peer)

    def begin(self, doors: HandedDoors, number: int, peer: socket.socket, address: str) -> None:
        """Open a connection in a task of its own."""
        handed = _Handed(self, doors, number)
        if self._early is None:
            self._begin(handed, peer, address)
        else:
            self._early.append((handed, peer, address))

    def _begin(self, handed: _Handed, peer: socket.socket, address: str) -> None:
        task = asyncio.create_task(self._open(handed, peer, address))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, handed: _Handed, peer: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: self.connect(handed, address), peer)
        except OSError:
            handed.refuse(peer)


class _Handed:
    """One connection, as its protocol's entrance."""

    def __init__(self, door: HandedDoor, doors: HandedDoors, number: int) -> None:
        self.listener = door.listener
        self.doors = doors
        self.number = number

    def refuse(self, peer: socket.socket) -> None:
        """Close a connection that was not opened, and tell the owner."""
        peer.close()
        self.doors.channel.tell("closed", self.number)

    def opened(self, connection: OpenConnection) -> None:
        """Add the connection."""
        self.doors.opened(self.number, connection)

    def authenticated(self, connection: OpenConnection) -> None:
        """Tell the owner that its client has authenticated."""
        self.doors.channel.tell("authenticated", self.number)

    def closed(self, connection: OpenConnection) -> None:
        """Tell the owner that another may have its place."""
        self.doors.closed(self.number, connection)
