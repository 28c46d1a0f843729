"""The process that owns what the workers of a broker share: sockets, stores, limits, figures.

It serves no client itself. It ends with its last worker, and they end with it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from aclbroker.broker.authorizer.seed import ASKED
from aclbroker.broker.authorizer.seed import KIND as FIRST_ACLS
from aclbroker.broker.authorizer.seed import SETTING as ACLS_FILE
from aclbroker.broker.config import BUILT_IN_AUTHORIZER, Config, ConfigError, Listener
from aclbroker.broker.config.store_url import store_url
from aclbroker.broker.credentials.credentials import SALTS, SECRETS
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger, set_level
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.processes import Processes
from aclbroker.broker.observability.scrapes import Scrapes
from aclbroker.broker.server.descriptors import room_for_connections
from aclbroker.broker.server.loop import unless
from aclbroker.broker.server.server import quotas
from aclbroker.broker.server.start import Start, write_ready_file
from aclbroker.broker.server.start_error import StartError, naming
from aclbroker.broker.server.status import status_pages
from aclbroker.broker.server.topic_ids import KIND as TOPIC_IDS
from aclbroker.broker.server.workers.handing import Handing, HandingSocket
from aclbroker.broker.server.workers.nursery import Nursery
from aclbroker.broker.server.workers.states import FiguresPage, States, TeamReadiness
from aclbroker.broker.server.workers.team import Team, Worker
from aclbroker.broker.stores import StoreError, open_store
from aclbroker.broker.stores.owned.service import OwnedStores

log = get_logger()

_END_S: Final = 5.0
"""How much longer than requests at work the end of a worker may take."""


async def own(start: Start, nursery: Nursery) -> None:
    """Serve with workers until SIGTERM or SIGINT; raises `StartError` if that cannot begin."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        owner = Owner(start, nursery)
    except StoreError as error:
        raise StartError(str(error)) from error
    loop.add_signal_handler(signal.SIGHUP, owner.renew)
    async with AsyncExitStack() as running:
        owner.show(running)
        running.push_async_callback(owner.end)
        nursery.when_lost(partial(owner.lose_nursery, stop))
        if await unless(stop, owner.begin()) is not None:
            await stop.wait()
        log.info("stopping")
    log.info("stopped")
    if owner.has_lost_nursery:
        sys.exit(1)


class Owner:
    """What is owned."""

    def __init__(self, start: Start, nursery: Nursery) -> None:
        self._start = start
        self._config = config = start.config
        self._metrics = Metrics()
        self._lines = LimitedLog(share=1 / config.workers)
        urls = {"": store_url(config.properties)}
        urls |= {each.cluster_id: each.store for each in config.clusters}
        self._stores = OwnedStores(
            {name: open_store(url, config.properties) for name, url in urls.items()}
        )
        self._team = Team(config.workers, nursery.begin, self._welcome, self._joins, self._leaves)
        self._quotas = quotas(config, self._metrics)
        room = room_for_connections()
        self._handing = Handing(self._team, room)
        if room is not None and self._quotas.limit_to(room * config.workers):
            log.info("connections limited by file descriptors", limit=self._quotas.limit)
        self._states = States(self._team)
        self._readiness = TeamReadiness(self._states)
        self._doors: list[HandingSocket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._listening = asyncio.Event()
        self._has_renewed = start.hangup.has_come
        self._reading: asyncio.Task[None] | None = None
        self.has_lost_nursery = False
        output = start.output
        self._metrics.read("aclbroker_lost_log_lines", lambda: output.lost_lines)
        self._metrics.read("aclbroker_left_out_log_lines", lambda: self._lines.left_out)
        self._metrics.include(self._states.figures)

    def lose_nursery(self, stop: asyncio.Event) -> None:
        """End, since no worker could be replaced any more."""
        if not stop.is_set():
            self.has_lost_nursery = True
            log.critical("the process that forks workers has ended, so the broker ends")
            stop.set()

    def show(self, running: AsyncExitStack) -> None:
        """Serve the figures, if they are wanted, as long as ``running`` does."""
        running.callback(self._lines.close)
        if self._config.metrics_address is None:
            return
        host, port = self._config.metrics_address
        with naming("aclbroker.metrics.address", f"{host}:{port}", "cannot listen"):
            scrapes = Scrapes(self._metrics, processes=Processes(self._states.pids))
            page = FiguresPage(self._states, scrapes).page
            running.enter_context(status_pages(host, port, scrapes, page, self._readiness))

    async def begin(self) -> bool:
        """Begin to serve. Raises `StartError`."""
        try:
            is_prepared = await self._is_prepared()
        except StoreError as error:
            raise StartError(str(error)) from error
        loaded = await self._team.load(first_alone=not is_prepared)
        self._listen()
        listeners = await self._team.serve()
        self._accepting = [asyncio.create_task(each.accept()) for each in self._doors]
        self._accepting.append(asyncio.create_task(self._states.watch()))
        self._readiness.started(
            remark=self._states.remark,
            stores=lambda: self._stores.opened,
            clusters=self._states.clusters,
        )
        write_ready_file(self._start.ready_file, {"listeners": listeners})
        log.info(
            "ready",
            version=version("aclbroker"),
            listeners=listeners,
            cluster_id=loaded["cluster_id"],
            node_id=self._config.node_id,
            authorizer=self._config.authorizer_class_name or "none",
            workers=self._config.workers,
            **loaded["kept"],
        )
        return True

    async def _is_prepared(self) -> bool:
        """Tell whether a store on this machine has all that it is given at a start.

        Of another store it is not asked: a broker elsewhere may have begun at the same moment.
        """
        config = self._config
        if config.authorizer_class_name != BUILT_IN_AUTHORIZER or config.clusters:
            return False
        made = {
            SECRETS: {SALTS},
            TOPIC_IDS: config.catalog_topics.keys(),
            FIRST_ACLS: {ASKED} if config.properties.get(ACLS_FILE, "").strip() else set(),
        }
        store = await self._stores.opened_here("")
        if store is None:
            return False
        there = {kind: await store.load_records(kind) for kind in made}
        return all(names <= there[kind].keys() for kind, names in made.items())

    async def end(self) -> None:
        """Let nobody in any more, let the workers end what they do, and close the stores."""
        self._readiness.stopping()
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for door in self._doors:
            door.close()
        await self._team.stop(self._config.shutdown_timeout_ms / 1000 + _END_S)
        await self._stores.close()

    def renew(self) -> None:
        """Have all workers read everything anew that can be; those that come later, too."""
        self._has_renewed = True
        self._team.tell("renew")
        self._reading = asyncio.create_task(self._take_over())

    async def _take_over(self) -> None:
        """Take what concerns this process of a changed configuration; workers tell of the rest."""
        try:
            config: Config = await asyncio.to_thread(self._start.read)
        except ConfigError:
            return
        set_level(config.log_level)

    def _listen(self) -> None:
        """Open the sockets of all listeners; raises `StartError`."""
        for listener in (*self._config.listeners, *self._config.metadata_listeners):
            try:
                self._doors.append(self._door(listener))
            except OSError as error:
                host = f"[{listener.host}]" if ":" in (listener.host or "") else listener.host
                where = f"listeners: {listener.name}://{host or ''}:{listener.port}"
                raise StartError(f"{where}: cannot listen: {error.strerror}") from error
        self._listening.set()

    def _door(self, listener: Listener) -> HandingSocket:
        backlog = self._config.socket_listen_backlog_size
        return HandingSocket(listener, backlog, self._quotas, self._lines, self._handing)

    async def _welcome(self) -> Mapping[str, Any]:
        """Return what a worker is told once it has loaded all, when the sockets are open."""
        await self._listening.wait()
        addresses = {door.listener.name: [door.host, door.port] for door in self._doors}
        return {"addresses": addresses, "renew": self._has_renewed}

    def _joins(self, worker: Worker) -> None:
        self._stores.serve(worker.channel, worker.end)
        worker.channel.handlers.update(self._handing.handlers(worker))

    def _leaves(self, worker: Worker) -> None:
        self._stores.leave(worker.channel)
        self._handing.leave(worker)
        self._states.leave(worker)
