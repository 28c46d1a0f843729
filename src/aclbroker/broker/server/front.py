"""The listeners while a store that others share is out of reach: before anything else is there.

ApiVersions and logins that need no store are answered, everything else is refused with codes after
which clients try again. When all is there, the sockets go to who serves them from then on, and
who has connected connects again.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final, NamedTuple

from aclbroker.broker.authorizer.opening import Waits, nobody
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import Config
from aclbroker.broker.logins.jwks_source import JwksUnavailable
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import LogOutput, get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.held_clusters import HeldClusters
from aclbroker.broker.server.loading import Loaded, load_parts
from aclbroker.broker.server.membership import Membership
from aclbroker.broker.server.readiness import Readiness
from aclbroker.broker.server.server import Server
from aclbroker.broker.server.start_error import StartError
from aclbroker.broker.stores import StoreUnavailable

log = get_logger()

_RETRY_S: Final = 2.0

Sockets = dict[tuple[int, str], socket.socket]


class Outside(NamedTuple):
    """What there is before anything is loaded."""

    config: Config
    output: LogOutput
    metrics: Metrics
    lines: LimitedLog
    readiness: Readiness


async def load_behind_front(
    outside: Outside, running: AsyncExitStack, stop: asyncio.Event
) -> tuple[Loaded, Sockets] | None:
    """Return what is loaded, and the sockets on which was listened meanwhile, if there are any.

    None if it is to ``stop`` before. ``running`` closes what is loaded. Raises `StartError`, and
    `StoreError` if the store fails.
    """
    reasons: asyncio.Queue[str] = asyncio.Queue()
    loading = asyncio.create_task(load(outside.config, outside.lines, running, reasons.put_nowait))
    told, stopping = asyncio.create_task(reasons.get()), asyncio.create_task(stop.wait())
    front: Server | None = None
    sockets: Sockets = {}
    try:
        while not loading.done() and not stopping.done():
            await asyncio.wait([loading, told, stopping], return_when=asyncio.FIRST_COMPLETED)
            if told.done() and not loading.done():
                outside.readiness.waits_for(told.result())
                front = front or await _listening(outside, told.result())
                told = asyncio.create_task(reasons.get())
        if not loading.done():
            return None
        loaded = loading.result()
        if front is not None:
            sockets = front.bound_sockets()
        return loaded, sockets
    finally:
        await _ended(loading, told, stopping)
        if front is not None:
            await front.stop()


async def load(
    config: Config,
    lines: LimitedLog,
    running: AsyncExitStack,
    waits: Waits = nobody,
    *,
    bears_failures: bool = False,
) -> Loaded:
    """Load all; begin anew where a shared store is lost in the midst of that.

    ``bears_failures`` is that of `load_parts`. Raises `StartError`, and `StoreError` if the store
    fails.
    """
    while True:
        async with AsyncExitStack() as loaded_so_far:
            try:
                loaded = await load_parts(
                    config, lines, loaded_so_far, waits, bears_failures=bears_failures
                )
            except StoreUnavailable as error:
                log.error("ACL store was lost while it was read; trying again", reason=str(error))
                waits(str(error))
            else:
                running.push_async_exit(loaded_so_far.pop_all())
                return loaded
        await asyncio.sleep(_RETRY_S)


async def _listening(outside: Outside, reason: str) -> Server:
    """Open the listeners of Kafka's protocol. Raises `StartError`."""
    # Those of the HTTP API stay closed, which every client of it tries again after.
    config = replace(outside.config, metadata_listeners=(), audit_file=None)
    try:
        nothing = Loaded(
            authorizer=None,
            store=None,
            credentials=None,
            cluster_id="",
            catalog=Catalog({}, (), config.node_id, auto_creates=False, topic_ids=None),
            cluster=None,
            kept={},
            membership=Membership(config.groups_file),
            clusters=HeldClusters(config, outside.lines),
        )
        audit = Audit(config, "", outside.output)
        server = Server(config, nothing, audit, outside.metrics, outside.lines, waits=True)
        listeners = await server.start()
    except OSError as error:
        raise StartError(error.strerror or str(error)) from error
    except (ValueError, JwksUnavailable) as error:
        raise StartError(str(error)) from error
    log.warning(
        "the ACLs are not there yet: only ApiVersions and logins that need no store are answered",
        listeners=listeners,
        reason=reason,
    )
    return server


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
