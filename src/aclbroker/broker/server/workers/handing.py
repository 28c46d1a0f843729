"""The listening sockets of a broker with workers: each connection is handed on to one of these.

The limits of connections are counted here, where all of them come in, so they hold for all workers
together. Who has the fewest connections gets the next one.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import NoReturn

from aclbroker.broker.config import Listener
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.server.doors import Entrance
from aclbroker.broker.server.listening import ConnectionQuotas, ListeningSocket
from aclbroker.broker.server.workers.team import Team, Worker
from aclbroker.broker.stores.owned.channel import Handler, Message


class Handed:
    """A connection that a worker has."""

    def __init__(self, worker: Worker, number: int, host: str, door: HandingSocket) -> None:
        self.worker = worker
        self.number = number
        self.host = host
        self.door = door

    def stop(self) -> None:
        """Leave it to the worker, which is told to stop."""

    def abort(self) -> None:
        """Leave it to the worker, which is told to stop."""

    def give_way(self, why: str) -> None:
        """Have the worker close it."""
        self.worker.channel.tell("give_way", [self.number, why])

    def regroup(self) -> bool:
        """Leave it to the worker, which reads the groups itself."""
        return False


class HandingSocket(ListeningSocket):
    """One listener's socket, which hands its connections on."""

    def __init__(
        self,
        listener: Listener,
        backlog: int,
        quotas: ConnectionQuotas,
        lines: LimitedLog,
        handing: Handing,
    ) -> None:
        super().__init__(listener, backlog, quotas, lines, _connects_nobody)
        self._handing = handing

    async def _open(self, peer: socket.socket, address: str) -> None:
        try:
            handed = await self._handing.take(self, address)
        except BaseException:
            self._left(address)
            peer.close()
            raise
        try:
            told = json.dumps([handed.number, self.listener.name, address]).encode()
            await handed.worker.hand(peer, told)
        except OSError:
            self._handing.closed(handed)
        finally:
            peer.close()


class Handing:
    """Which worker has which connections; each may have ``room`` of them."""

    def __init__(self, team: Team, room: int | None) -> None:
        self._team = team
        self._room = room
        self._connections: dict[Worker, dict[int, Handed]] = {}
        self._numbers = 0
        self._turns = asyncio.Lock()

    def handlers(self, worker: Worker) -> dict[str, Handler]:
        """Return what takes the messages of a worker about its connections."""
        own = self._connections[worker] = {}

        def authenticated(told: Message) -> None:
            if (handed := own.get(told.value)) is not None:
                handed.door.authenticated(handed)

        def closed(told: Message) -> None:
            if (handed := own.get(told.value)) is not None:
                self.closed(handed)

        return {"authenticated": authenticated, "closed": closed}

    def leave(self, worker: Worker) -> None:
        """Note that a worker is gone, and its connections with it."""
        for handed in list(self._connections.get(worker, {}).values()):
            self.closed(handed)
        self._connections.pop(worker, None)

    async def take(self, door: HandingSocket, address: str) -> Handed:
        """Return a connection of the worker that has the fewest, once one has room."""
        # One at a time looks: where thousands wait, not each is woken by what is of use to one.
        async with self._turns:
            while (worker := self._least_busy()) is None:
                await self._team.changed.wait()
            self._numbers += 1
            handed = Handed(worker, self._numbers, address, door)
            self._connections[worker][handed.number] = handed
        door.opened(handed)
        return handed

    def closed(self, handed: Handed) -> None:
        """Note that a connection is closed, if that is not known."""
        if self._connections.get(handed.worker, {}).pop(handed.number, None) is not None:
            handed.door.closed(handed)
            self._team.changed.wake()

    def _least_busy(self) -> Worker | None:
        ready = self._team.ready
        if not ready:
            return None
        worker = min(ready, key=lambda each: len(self._connections[each]))
        has_room = self._room is None or len(self._connections[worker]) < self._room
        return worker if has_room else None


def _connects_nobody(_entrance: Entrance, _host: str) -> NoReturn:
    raise RuntimeError("connections are handed on")
