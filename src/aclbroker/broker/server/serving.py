"""A broker, or one of its workers, from when all is loaded to the answer of its last request."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from aclbroker.broker.config import Config
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.garbage import Collector
from aclbroker.broker.server.loading import Loaded
from aclbroker.broker.server.parts import start_parts
from aclbroker.broker.server.reload import Reload
from aclbroker.broker.server.server import Server
from aclbroker.broker.server.start import Start


class Serving(NamedTuple):
    """What serves clients; ``listeners`` are the addresses by their names."""

    loaded: Loaded
    audit: Audit
    server: Server
    listeners: dict[str, str]
    reload: Reload
    collector: Collector
    watch: asyncio.Task[None]

    def renew(self) -> None:
        """Read everything anew that can be: the configuration, keys, groups; reopen the file."""
        self.audit.reopen()
        self.server.reload_files()
        self.reload.ask()

    async def end(self) -> None:
        """Let requests at work be answered, and finish what was asked for."""
        self.watch.cancel()
        self.collector.stop()
        clusters = self.loaded.clusters
        await clusters.end_waiting()
        await self.server.stop()
        of_clusters = (each.credentials for each in clusters.loaded)
        for credentials in (self.loaded.credentials, *of_clusters):
            if credentials is not None:
                await credentials.close()
        self.audit.close()


async def begin_serving(
    start: Start,
    config: Config,
    loaded: Loaded,
    metrics: Metrics,
    lines: LimitedLog,
    **more: Any,
) -> Serving:
    """Let clients in; ``more`` is what `start_parts` takes. Raises `StartError`."""
    audit, server, listeners = await start_parts(
        config, start.output, loaded, metrics, lines, **more
    )
    clusters = loaded.clusters.by_id
    reload = Reload(config, start.read, loaded.authorizer, server, audit, clusters)
    watch = asyncio.create_task(reload.watch())
    collector = Collector(lambda: server.is_idle)
    collector.start()
    audit.start()
    return Serving(loaded, audit, server, listeners, reload, collector, watch)
