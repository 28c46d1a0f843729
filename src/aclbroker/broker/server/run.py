"""From a configuration to a running broker and back: start, signals, stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from aclbroker.broker.authorizer.standard import StandardAuthorizer, follower_of
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.scrapes import Scrapes
from aclbroker.broker.server.descriptors import raise_limit
from aclbroker.broker.server.fault_control import FaultControl, fault_control
from aclbroker.broker.server.front import Outside, Sockets, load_behind_front
from aclbroker.broker.server.garbage import objects_that_stay
from aclbroker.broker.server.loading import Loaded
from aclbroker.broker.server.loop import run_loop
from aclbroker.broker.server.readiness import Readiness
from aclbroker.broker.server.serving import begin_serving
from aclbroker.broker.server.start import Start, write_ready_file
from aclbroker.broker.server.start_error import StartError, naming
from aclbroker.broker.server.status import status_pages
from aclbroker.broker.stores import AclStore, StoreError

if TYPE_CHECKING:
    from aclbroker.broker.server.workers.nursery import Nursery

log = get_logger()


def run(start: Start, nursery: Nursery | None = None) -> None:
    """Serve until SIGTERM or SIGINT; raises `StartError` if that cannot begin.

    With a ``nursery`` its workers serve, and this process owns what they share.
    """
    if nursery is None:
        run_loop(_serve(start))
        return
    # Who has no workers need not wait for it.
    from aclbroker.broker.server.workers.owner import own

    run_loop(own(start, nursery))


async def _serve(start: Start) -> None:
    config = start.config
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    raise_limit()
    metrics, readiness, lines = Metrics(), Readiness(), LimitedLog()
    metrics.read("aclbroker_lost_log_lines", lambda: start.output.lost_lines)
    metrics.read("aclbroker_left_out_log_lines", lambda: lines.left_out)
    async with AsyncExitStack() as running:
        running.callback(lines.close)
        if config.metrics_address is not None:
            host, port = config.metrics_address
            with naming("aclbroker.metrics.address", f"{host}:{port}", "cannot listen"):
                scrapes = Scrapes(metrics)
                running.enter_context(status_pages(host, port, scrapes, scrapes.page, readiness))
        control = running.enter_context(fault_control(config, Faults()))
        try:
            with objects_that_stay():
                outside = Outside(config, start.output, metrics, lines, readiness)
                found = await load_behind_front(outside, running, stop)
        except StoreError as error:
            raise StartError(str(error)) from error
        if found is not None:
            await _serve_with(start, *found, metrics, lines, readiness, stop, control)
    log.info("stopped")


async def _serve_with(
    start: Start,
    loaded: Loaded,
    sockets: Sockets,
    metrics: Metrics,
    lines: LimitedLog,
    readiness: Readiness,
    stop: asyncio.Event,
    control: FaultControl | None,
) -> None:
    config = start.config
    faults = None if control is None else control.faults
    serving = await begin_serving(
        start, config, loaded, metrics, lines, faults=faults, sockets=sockets
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, serving.renew)
    audit = serving.audit
    readiness.started(
        audit.problem,
        audit.remark,
        partial(_stores, loaded),
        loaded.clusters.problems,
        partial(_migration_problem, loaded),
        partial(_reached, loaded),
        partial(_upstream_problem, loaded),
    )
    if start.hangup.has_come:
        serving.renew()
    told = {"listeners": serving.listeners} | ({} if control is None else {"faults": control.url})
    write_ready_file(start.ready_file, told)
    if loaded.cluster is not None:
        log.warning("topics, records, groups and transactions are in memory and lost at the end")
    log.info(
        "ready",
        version=version("aclbroker"),
        listeners=serving.listeners,
        cluster_id=loaded.cluster_id,
        node_id=config.node_id,
        authorizer=config.authorizer_class_name or "none",
        **loaded.kept,
    )
    await stop.wait()
    log.info("stopping")
    readiness.stopping()
    await serving.end()


async def _reached(loaded: Loaded, store: AclStore, position: int) -> bool:
    """Wait; return whether the ACLs that decide have a store's changes up to a position."""
    own = [loaded.authorizer] if isinstance(loaded.authorizer, StandardAuthorizer) else []
    for authorizer in (*own, *(each.authorizer for each in loaded.clusters.loaded)):
        follower = follower_of(authorizer, store)
        if follower is not None and not await follower.has_reached(position):
            return False
    return True


def _migration_problem(loaded: Loaded) -> str:
    authorizer = loaded.authorizer
    return authorizer.migration_problem() if isinstance(authorizer, StandardAuthorizer) else ""


def _upstream_problem(loaded: Loaded) -> str:
    return "" if loaded.upstream is None else loaded.upstream.problem


def _stores(loaded: Loaded) -> Iterable[AclStore]:
    """Return all stores that are open, each once."""
    own = () if loaded.store is None else (loaded.store,)
    authorizer = loaded.authorizer
    deciding = authorizer.stores if isinstance(authorizer, StandardAuthorizer) else ()
    return dict.fromkeys((*own, *loaded.clusters.stores(), *deciding))
