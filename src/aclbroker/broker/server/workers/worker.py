"""A worker: a process that serves clients, with its own index of ACLs and without a store.

It lives no longer than the owner of the store does: when that is gone, so is it, at once, since
nobody would tell it what is changed.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from aclbroker.broker.config import Config
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.observability.logs import name_worker
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.front import load
from aclbroker.broker.server.garbage import objects_that_stay
from aclbroker.broker.server.loading import Loaded
from aclbroker.broker.server.loop import run_loop, unless
from aclbroker.broker.server.serving import Serving, begin_serving
from aclbroker.broker.server.start import Start
from aclbroker.broker.server.start_error import StartError
from aclbroker.broker.server.workers.handed import HandedDoors
from aclbroker.broker.stores import StoreError, leave_stores_to
from aclbroker.broker.stores.owned.channel import Channel, Message
from aclbroker.broker.stores.owned.client import owned_store

_OWNER_GONE: Final = 3


class Locks(NamedTuple):
    """With which the processes of a broker write to their log, and to their audit file."""

    log: LineLock
    audit: LineLock


def run_worker(
    start: Start, locks: Locks, number: int, messages: socket.socket, hands: socket.socket
) -> None:
    """Serve what is handed on at ``hands``, as the owner at ``messages`` says, until it says stop.

    The number of the worker, from 0 on, is that of one that it replaces.
    """
    name_worker(number, start.output)
    with start.output.writing(locks.log):
        run_loop(WorkerProcess(start, locks.audit, number, hands).serve(messages))


class WorkerProcess:
    """One worker, from its start to its end."""

    def __init__(
        self, start: Start, audit_lock: LineLock, number: int, hands: socket.socket
    ) -> None:
        self._start = start
        self._audit_lock = audit_lock
        self._config = share_of(start.config)
        self._number = number
        self._hands = hands
        self._metrics = Metrics()
        self._lines = LimitedLog(share=1 / self._config.workers)
        self._stop = asyncio.Event()
        self._serving: Serving | None = None
        self._channel = Channel(
            {"stop": self._stopped, "renew": self._renew, "state": self._state},
        )
        self._metrics.read("aclbroker_lost_log_lines", lambda: start.output.lost_lines)
        self._metrics.read("aclbroker_left_out_log_lines", lambda: self._lines.left_out)

    async def serve(self, messages: socket.socket) -> None:
        """Serve until the owner says stop."""
        await self._channel.open(messages)
        reading = asyncio.create_task(self._channel.run())
        reading.add_done_callback(_end)
        self._channel.tell("hello", os.getpid())
        try:
            async with AsyncExitStack() as running:
                running.callback(self._lines.close)
                await self._load_and_serve(running)
        except (StartError, StoreError) as error:
            await self._channel.tell_all("failed", str(error), ())
        reading.remove_done_callback(_end)
        await self._channel.finish()

    async def _load_and_serve(self, running: AsyncExitStack) -> None:
        with objects_that_stay():
            leave_stores_to(partial(owned_store, self._channel))
            loaded = await unless(self._stop, self._load(running))
        if loaded is None:
            return
        told = {"kept": loaded.kept, "cluster_id": loaded.cluster_id}
        welcome = await unless(self._stop, self._channel.ask("loaded", told))
        if welcome is None:
            return
        addresses: Mapping[str, tuple[str, int]] = welcome.value["addresses"]
        doors = HandedDoors(self._channel, self._hands, addresses)
        self._serving = await begin_serving(
            self._start,
            self._config,
            loaded,
            self._metrics,
            self._lines,
            doors=doors,
            is_first=self._number == 0,
            audit_lock=self._audit_lock,
        )
        # It may have been asked for while this one was about to begin.
        if welcome.value["renew"] or self._start.hangup.has_come:
            self._serving.renew()
        self._channel.tell("ready", self._serving.listeners)
        await self._stop.wait()
        await self._serving.end()

    async def _load(self, running: AsyncExitStack) -> Loaded:
        """Load all. A worker that takes the place of another serves without what has failed since:
        the broker was begun.
        """
        has_begun = bool((await self._channel.ask("begun")).value)
        return await load(self._config, self._lines, running, bears_failures=has_begun)

    def _stopped(self, _told: Message) -> None:
        self._stop.set()

    def _renew(self, _told: Message) -> None:
        self._start.hangup.has_come = True
        if self._serving is not None:
            self._serving.renew()

    async def _state(self, _asked: Message) -> Message:
        state: dict[str, Any] = {"figures": self._metrics.figures().to_json()}
        if self._serving is not None:
            audit = self._serving.audit
            clusters = dict(self._serving.loaded.clusters.problems())
            state |= {"problem": audit.problem(), "remark": audit.remark(), "clusters": clusters}
        return Message(state)


def _end(_reading: asyncio.Task[None]) -> None:
    os._exit(_OWNER_GONE)


def share_of(config: Config) -> Config:
    """Return what a worker may take of what the configuration allows all together."""
    rate = config.audit_max_bytes_per_second
    least = min(rate, 1024)
    return replace(config, audit_max_bytes_per_second=max(least, rate // config.workers))
