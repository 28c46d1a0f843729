"""The ports of a gateway for the brokers upstream: each broker has a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
from aclbroker.broker.backends.upstream.handlers import UPSTREAM_HANDLERS
from aclbroker.broker.backends.upstream.relay import UpstreamRelay
from aclbroker.broker.backends.upstream.subscriptions import Subscriptions
from aclbroker.broker.backends.upstream.topics import TopicDirectory, UpstreamTopics
from aclbroker.broker.config import Config, Listener
from aclbroker.broker.config.upstream_definitions import FIRST_PORT
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.cluster_services import ListenerNodes
from aclbroker.broker.server.doors import Door

log = get_logger()

_RETRY_S: Final = 10.0
_LAST_PORT: Final = 65535

Listen = Callable[[Listener, Services], Door]
"""Opens a listener whose clients get these services; raises `OSError`."""


class BrokerListeners:
    """Listens on one port for each broker upstream, on each listener that has a first port.

    A broker keeps its port when it moves to another address. New brokers get theirs as soon as the
    cluster names them.
    """

    def __init__(
        self, cluster: UpstreamCluster, listeners: Sequence[Listener], services: Services
    ) -> None:
        self._cluster = cluster
        self._listeners = [each for each in listeners if each.first_broker_port is not None]
        self._of_one_broker = [each.name for each in listeners if each.first_broker_port is None]
        self._services = services
        self._doors: dict[tuple[int, str], Door] = {}
        self._accepting: list[asyncio.Task[None]] = []

    def open(self, listen: Listen) -> None:
        """Listen for the brokers that have no port yet.

        Raises `OSError`, and ValueError if there are several brokers and a listener has no ports
        for them.
        """
        count = len(self._cluster.state.brokers)
        if count > 1 and self._of_one_broker:
            raise ValueError(
                f"{FIRST_PORT} is needed, because the cluster upstream has {count} brokers; it is "
                f"not set for listener {', '.join(self._of_one_broker)}"
            )
        problem: OSError | ValueError | None = None
        for node_id in sorted(self._cluster.state.brokers):
            for listener in self._listeners:
                if (node_id, listener.name) not in self._doors:
                    try:
                        self._listen(listen, _of_broker(listener, node_id), node_id)
                    except (OSError, ValueError) as error:
                        problem = error
        if problem is not None:
            raise problem

    def _listen(self, listen: Listen, listener: Listener, node_id: int) -> None:
        door = listen(listener, _services_of(self._services, node_id))
        self._doors[node_id, listener.name] = door
        self._accepting.append(asyncio.create_task(door.accept()))

    async def follow(self, listen: Listen) -> None:
        """Listen for brokers that are new, until cancelled; try again where a port was taken."""
        last = ""
        while True:
            try:
                self.open(listen)
                last = ""
            except (OSError, ValueError) as error:
                if str(error) != last:
                    last = str(error)
                    log.error(
                        "cannot listen for a broker upstream", setting=FIRST_PORT, reason=last
                    )
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await self._cluster.changed()

    async def close(self) -> None:
        """Accept no more connections."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for door in self._doors.values():
            await door.settled()
            door.close()


def upstream_backend(
    config: Config, cluster: UpstreamCluster, nodes: ListenerNodes
) -> UpstreamBackend:
    """Return the backend of a gateway's listeners, whose requests go to any broker."""
    directory = TopicDirectory(cluster)
    first_ports = {each.name: each.first_broker_port for each in config.listeners}
    return UpstreamBackend(
        cluster=cluster,
        directory=directory,
        topics=UpstreamTopics(directory, None, auto_creates=config.auto_create_topics_enable),
        subscriptions=Subscriptions(directory),
        handlers=UPSTREAM_HANDLERS,
        relay=UpstreamRelay,
        advertised=nodes.own,
        first_ports={name: port for name, port in first_ports.items() if port is not None},
    )


def _services_of(services: Services, node_id: int) -> Services:
    """Return the services of clients that talk to one broker."""
    backend = services.backend
    if not isinstance(backend, UpstreamBackend):
        raise TypeError("only a cluster upstream has brokers with ports of their own")
    topics = backend.topics.of_node(node_id)
    own = replace(backend, node_id=node_id, topics=topics, pipelines={})
    return replace(services, backend=own)


def _of_broker(listener: Listener, node_id: int) -> Listener:
    port = (listener.first_broker_port or 0) + node_id
    if port > _LAST_PORT:
        raise ValueError(
            f"{FIRST_PORT}={listener.first_broker_port}: the broker {node_id} would have the port "
            f"{port}; set a lower first port"
        )
    return replace(listener, port=port, advertised_port=port)
