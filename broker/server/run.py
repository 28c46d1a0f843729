"""From a configuration to a running broker and back: start, signals, stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.broker.config import Config
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import LogOutput, get_logger, json_line
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.descriptors import raise_limit
from aclbroker.broker.server.fault_control import FaultControl, fault_control
from aclbroker.broker.server.garbage import Collector, objects_that_stay
from aclbroker.broker.server.hangup import Hangup
from aclbroker.broker.server.parts import Loaded, StartError, load_parts, naming, start_parts
from aclbroker.broker.server.readiness import Readiness
from aclbroker.broker.server.reload import Reload
from aclbroker.broker.server.status import status_pages
from aclbroker.broker.stores import StoreError

log = get_logger()

_SWITCH_SECONDS: Final = 0.001
"""How long another thread may go on when the loop could: a fifth of Python's default.

The loop gives way whenever it reads or writes, so that each request would wait twice as long while
the store's thread makes rows of a large change.
"""


class Start(NamedTuple):
    """What a broker starts from.

    ``output`` is where audit records go that have no file of their own. ``read`` reads the
    configuration again, on SIGHUP or if ``hangup`` has come before; it raises `ConfigError`.
    ``ready_file`` is written once clients are let in, with the addresses of all listeners as JSON,
    and the URL for faults if there is one.
    """

    config: Config
    output: LogOutput
    read: Callable[[], Config]
    hangup: Hangup
    ready_file: Path | None = None


def run(start: Start) -> None:
    """Serve until SIGTERM or SIGINT; raises `StartError` if that cannot begin."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(start))
    else:
        uvloop.run(_serve(start))


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
                running.enter_context(status_pages(host, port, metrics, readiness))
        control = running.enter_context(fault_control(config, Faults()))
        try:
            with objects_that_stay():
                loaded = await load_parts(config, lines, running)
        except StoreError as error:
            raise StartError(str(error)) from error
        await _serve_with(start, loaded, metrics, lines, readiness, stop, control)
    log.info("stopped")


async def _serve_with(
    start: Start,
    loaded: Loaded,
    metrics: Metrics,
    lines: LimitedLog,
    readiness: Readiness,
    stop: asyncio.Event,
    control: FaultControl | None,
) -> None:
    config = start.config
    faults = None if control is None else control.faults
    audit, server, listeners = await start_parts(
        config, start.output, loaded, metrics, lines, faults=faults
    )
    reload = Reload(config, start.read, loaded.authorizer, server, audit)
    watch = asyncio.create_task(reload.watch())
    collector = Collector(lambda: server.is_idle)
    collector.start()

    def renew() -> None:
        audit.reopen()
        server.reload_files()
        reload.ask()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
    audit.start()
    readiness.started(loaded.store, audit.problem, audit.remark)
    if start.hangup.has_come:
        renew()
    if start.ready_file is not None:
        with naming("--ready-file", str(start.ready_file), "cannot be written"):
            told = {"listeners": listeners} | ({} if control is None else {"faults": control.url})
            _write_whole(start.ready_file, json_line(told))
    if loaded.cluster is not None:
        log.warning("topics, records, groups and transactions are in memory and lost at the end")
    log.info(
        "ready",
        version=version("aclbroker"),
        listeners=listeners,
        cluster_id=loaded.cluster_id,
        node_id=config.node_id,
        authorizer=config.authorizer_class_name or "none",
        **loaded.kept,
    )
    await stop.wait()
    log.info("stopping")
    readiness.stopping()
    watch.cancel()
    collector.stop()
    await server.stop()
    if loaded.credentials is not None:
        await loaded.credentials.close()
    audit.close()


def _write_whole(path: Path, line: str) -> None:
    """Write a file that nobody sees half written."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.write_text(f"{line}\n", encoding="utf-8")
    made.replace(path)
