"""The running broker: its listeners, its connections, its authorizer, and their end in order."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from aclbroker.broker.auth.sasl.plain import PlainUsers
from aclbroker.broker.backends.declared import DECLARED_HANDLERS, DECLARED_LISTED
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.config import Config, Listener, shown_settings
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.logins.jwks_source import KeySources
from aclbroker.broker.logins.listeners import LoginServices, logins, with_credentials
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.stalls import StallMonitor
from aclbroker.broker.server.accounts import Accounts
from aclbroker.broker.server.certificates import Certificates
from aclbroker.broker.server.cluster_services import (
    ListenerNodes,
    ServedClusters,
    credentials_by_listener,
    nodes_by_id,
)
from aclbroker.broker.server.connection import Connection, Limits
from aclbroker.broker.server.descriptors import room_for_connections
from aclbroker.broker.server.doors import Door, Doors, Entrance
from aclbroker.broker.server.errors import WAITS
from aclbroker.broker.server.held_clusters import HeldCluster, LoadedCluster
from aclbroker.broker.server.listening import ConnectionQuotas
from aclbroker.broker.server.loading import Loaded
from aclbroker.broker.server.registry import Registry
from aclbroker.broker.server.tls_transport import TlsServer
from aclbroker.broker.turns import Turns

if TYPE_CHECKING:
    from aclbroker.broker.backends.backend import Backend
    from aclbroker.broker.backends.upstream.cluster import UpstreamCluster
    from aclbroker.broker.server.broker_listeners import BrokerListeners
    from aclbroker.broker.server.metadata_server import MetadataServer

log = get_logger()

_AT_ONCE: Final = 100
"""How many sessions get other groups, or are ended, before other work has its turn."""


class Server:
    """Serves a configuration's listeners with an authorizer that is already started.

    What clients cause in the log goes through ``lines``. ``sockets`` are those that are bound
    already, by the ids of nodes and the names of listeners. If it ``waits`` for what it needs,
    requests are refused, and so are logins that would need a store. Those about the clusters that
    are ``missing`` are refused until each is there (`take_in`).

    Raises ValueError for a principal builder or a key store that cannot be used. ``start`` raises
    `OSError` where a listener cannot be bound, and `JwksUnavailable` where one has no keys to check
    access tokens with; ``stop`` lets every request at work be answered and takes at most
    ``shutdown_timeout_ms`` for that.
    """

    def __init__(
        self,
        config: Config,
        loaded: Loaded,
        audit: Audit,
        metrics: Metrics,
        lines: LimitedLog,
        *,
        clusters: Sequence[tuple[LoadedCluster, Audit]] = (),
        missing: Sequence[HeldCluster] = (),
        rights_class: type[RequestRights] = RequestRights,
        faults: Faults | None = None,
        doors: Doors | None = None,
        sockets: Mapping[tuple[int, str], socket.socket] = MappingProxyType({}),
        waits: bool = False,
    ) -> None:
        self._config = config
        self._loaded = loaded
        self._audit = audit
        self._doors: Doors = quotas(config, metrics) if doors is None else doors
        self._limits = _limits(config)
        self._accounts = Accounts(config.max_request_bytes_per_principal, config.workers)
        self._key_sources = KeySources()
        self._rights_class = rights_class
        self._faults = faults
        self._clusters = clusters
        self._missing = missing
        self._bound = sockets
        self._waits = waits
        groups = loaded.membership.groups
        services = LoginServices(loaded.credentials, self._key_sources, groups, waits=waits)
        self._logins = logins(config, services, credentials_by_listener(clusters, missing))
        self._certificates = Certificates((*config.listeners, *config.metadata_listeners))
        self._metrics = metrics
        self._shown = shown_settings(config.properties)
        self._login_log = LoginLog(metrics, lines)
        self.stalls = StallMonitor(metrics, self._login_log.lines)
        self._turns = Turns(worked=self._had_turn, room=self._accounts.room)
        self._sockets: list[tuple[int, Door]] = []
        self._services: dict[int, Services] = {}
        self._served: ServedClusters | None = None
        self._metadata = self._metadata_server() if config.metadata_listeners else None
        self._tasks: list[asyncio.Task[None]] = []
        self._brokers: BrokerListeners | None = None

    async def start(self) -> dict[str, str]:
        """Listen; returns the address of each listener by its name, with the port it really has.

        Where the broker shows several nodes, there is an address of each.
        """
        await self._key_sources.start()
        backlog = self._config.socket_listen_backlog_size
        lines = self._login_log.lines
        try:
            for number in range(self._config.nodes):
                for listener in map(partial(_of_node, number), self._config.listeners):
                    node = self._config.node_id + number
                    connect = partial(self._connect, node)
                    made = self._bound.get((node, listener.name))
                    bound = self._doors.listen(listener, backlog, lines, connect, made)
                    self._sockets.append((node, bound))
        except OSError as error:
            self._close_sockets()
            host = f"[{listener.host}]" if ":" in (listener.host or "") else listener.host or ""
            where = f"listeners: {listener.name}://{host}:{listener.port}"
            raise OSError(error.errno, f"{where}: cannot listen: {error.strerror}") from error
        self._keep_descriptors()
        self._served = self._make_services()
        if self._loaded.upstream is not None:
            self._listen_for_brokers(self._loaded.upstream)
        addresses: dict[str, str] = {}
        if self._metadata is not None:
            addresses = await self._start_metadata(self._metadata, self._served)
        self._show_work()
        self.stalls.start()
        self._tasks += [asyncio.create_task(bound.accept()) for _, bound in self._sockets]
        if self._metadata is not None:
            self._tasks.append(asyncio.create_task(self._metadata.accept()))
        self._tasks.append(asyncio.create_task(self._certificates.watch()))
        self._tasks.append(asyncio.create_task(self._loaded.membership.watch(self._regroup)))
        found: dict[str, list[str]] = {}
        for _, bound in self._sockets:
            host = f"[{bound.host}]" if ":" in bound.host else bound.host
            found.setdefault(bound.listener.name, []).append(f"{host}:{bound.port}")
        return {name: ",".join(each) for name, each in found.items()} | addresses

    def bound_sockets(self) -> dict[tuple[int, str], socket.socket]:
        """Return its sockets for another server, by the ids of nodes and the names of listeners."""
        return {(node, each.listener.name): each.duplicate() for node, each in self._sockets}

    @property
    def is_idle(self) -> bool:
        """Whether no request is at work that could not be answered at once."""
        return not self._turns.unfinished

    def reload_files(self) -> None:
        """Read the key and trust stores of TLS listeners anew, for connections from now on, and
        the groups of users, for sessions that are open as well.
        """
        self._certificates.reload()
        self._loaded.membership.reload()

    async def take_in(self, cluster: LoadedCluster, audit: Audit) -> None:
        """Serve a cluster that was missing; who was refused until then has to connect again."""
        if self._served is None:
            raise RuntimeError("the server is not started")
        self._served.serve(cluster, audit)
        for name in cluster.settings.listeners:
            self._logins[name] = with_credentials(self._logins[name], cluster.credentials)
            for _, bound in list(self._sockets):
                if bound.listener.name == name:
                    # Who was accepted before may be about to get a connection.
                    await bound.settled()
            for number, connection in enumerate(self._served.refused(name), 1):
                if connection in self._doors.open:
                    connection.stop()
                if number % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    def refuse(self, cluster: HeldCluster) -> None:
        """Tell clients of a missing cluster why it is refused from now on."""
        if self._served is not None:
            self._served.refuse(cluster)

    def use_plain_users(self, users: Mapping[str, Mapping[str, str]]) -> None:
        """Let other users of PLAIN log in from now on: passwords by name, by listener."""
        for listener, passwords in users.items():
            login = self._logins.get(listener)
            plain = None if login is None else login.mechanisms.get("PLAIN")
            if isinstance(plain, PlainUsers):
                plain.users = passwords

    def show(self, properties: Mapping[str, str]) -> None:
        """Tell clients of other settings from now on."""
        self._shown.clear()
        self._shown.update(shown_settings(properties))

    async def stop(self) -> None:
        """Stop listening, let requests at work be answered, close every connection."""
        if self._loaded.cluster is not None:
            self._loaded.cluster.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._brokers is not None:
            await self._brokers.close()
        await self._key_sources.stop()
        for _, bound in self._sockets:
            await bound.settled()
        self._close_sockets()
        for connection in list(self._doors.open):
            connection.stop()
        try:
            async with asyncio.timeout(self._config.shutdown_timeout_ms / 1000):
                await self._doors.all_closed()
        except TimeoutError:
            log.warning("connections aborted", count=len(self._doors.open))
            for connection in list(self._doors.open):
                connection.abort()
            await self._doors.all_closed()
        if self._metadata is not None:
            await self._metadata.stop()
        self.stalls.stop()

    async def _regroup(self) -> int:
        """Give all sessions the groups that there are now; return how many have others."""
        changed = 0
        for number, connection in enumerate(list(self._doors.open), 1):
            # Some may have closed while others had their turn.
            if connection in self._doors.open:
                changed += connection.regroup()
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        return changed

    def _had_turn(self, began: float, dispatched: tuple[Any, ...]) -> None:
        _, session, frame = dispatched
        self.stalls.had_turn(began, session, frame)

    def _show_work(self) -> None:
        """Have the figures of what is at work and held read where it is counted."""
        turns, accounts, read = self._turns, self._accounts, self._metrics.read
        read("aclbroker_requests_in_turns", lambda: turns.unfinished)
        read("aclbroker_principals_in_turns", lambda: turns.principals_at_work, "at_work")
        read("aclbroker_principals_in_turns", lambda: turns.principals_waiting, "waiting")
        read("aclbroker_held_bytes", lambda: accounts.of_principals.held, "principals")
        read("aclbroker_held_bytes", lambda: accounts.of_strangers.held, "strangers")
        upstream = self._loaded.upstream
        if upstream is not None:
            read("aclbroker_forwarded_requests", lambda: upstream.relayed, "relayed")
            read("aclbroker_forwarded_requests", lambda: upstream.decoded, "decoded")

    def _keep_descriptors(self) -> None:
        """Admit no more connections than leave descriptors for the broker's own files."""
        room = room_for_connections()
        if room is not None and self._doors.limit_to(room):
            log.info("connections limited by file descriptors", limit=room)

    def _close_sockets(self) -> None:
        for _, bound in self._sockets:
            bound.close()
        self._sockets.clear()
        if self._metadata is not None:
            self._metadata.close()

    def _make_services(self) -> ServedClusters:
        """Make what serves each node and cluster; return that of the clusters."""
        loaded = self._loaded
        nodes = nodes_by_id(self._sockets)
        self._services = {
            node_id: Services(
                loaded.authorizer,
                self._audit,
                self._backend(node_id, of_listeners),
                ANSWERED_HERE,
                Profile(self._config.gate_profile),
                loaded.credentials,
                self._turns,
                self._faults,
                self._rights_class,
                self._config.reserved_topics,
                WAITS if self._waits else "",
            )
            for node_id, of_listeners in nodes.items()
        }
        node_id = self._config.node_id
        served = ServedClusters(self._services[node_id], nodes[node_id])
        for cluster, audit in self._clusters:
            served.serve(cluster, audit)
        for each in self._missing:
            served.refuse(each)
        return served

    def _metadata_server(self) -> MetadataServer:
        # Who does not serve it need not wait for aiohttp.
        from aclbroker.broker.server.metadata_server import MetadataServer, Shared

        shared = Shared(
            self._doors,
            self._certificates,
            self._accounts,
            self._login_log,
            self._turns,
            self._limits.login_seconds,
            self._limits.failure_delay,
        )
        return MetadataServer(self._config, shared)

    async def _start_metadata(
        self, metadata: MetadataServer, served: ServedClusters
    ) -> dict[str, str]:
        """Start the HTTP API, whose users are those of the listeners of the own cluster."""
        logins = {
            name: login for name, login in self._logins.items() if served.of_listener(name) is None
        }
        loaded = self._loaded
        return await metadata.start(
            served.by_id, loaded.cluster_id, logins, loaded.credentials, loaded.cluster_registry
        )

    def _backend(self, node_id: int, nodes: ListenerNodes) -> Backend:
        """Return the cluster behind the gate as a node sees it."""
        loaded = self._loaded
        if loaded.upstream is not None:
            # Imported where it is needed: other brokers start sooner.
            from aclbroker.broker.server.broker_listeners import upstream_backend

            return upstream_backend(self._config, loaded.upstream, nodes)
        if loaded.cluster is None:
            return DeclaredBackend(
                cluster_id=loaded.cluster_id,
                catalog=loaded.catalog,
                handlers=DECLARED_HANDLERS,
                listed=DECLARED_LISTED,
                advertised=nodes.own,
                peers=nodes.all,
                settings=self._shown,
            )
        # These imports bring aiokafka's client along, which a broker without data does not need.
        from aclbroker.broker.backends.memory import MEMORY_HANDLERS, MEMORY_LISTED
        from aclbroker.broker.backends.memory.backend import MemoryBackend

        return MemoryBackend(
            cluster_id=loaded.cluster_id,
            catalog=loaded.cluster.topics.of_node(node_id),
            handlers=MEMORY_HANDLERS,
            listed=MEMORY_LISTED,
            advertised=nodes.own,
            peers=nodes.all,
            settings=self._shown,
            cluster=loaded.cluster,
        )

    def _listen_for_brokers(self, cluster: UpstreamCluster) -> None:
        """Open the ports of the brokers upstream, and of those that come later."""
        # Imported where it is needed: other brokers start sooner.
        from aclbroker.broker.server.broker_listeners import BrokerListeners

        services = self._services[self._config.node_id]
        self._brokers = BrokerListeners(cluster, self._config.listeners, services)
        self._brokers.open(self._listen_for_broker)
        self._tasks.append(asyncio.create_task(self._brokers.follow(self._listen_for_broker)))

    def _listen_for_broker(self, listener: Listener, services: Services) -> Door:
        backlog, lines = self._config.socket_listen_backlog_size, self._login_log.lines
        return self._doors.listen(listener, backlog, lines, partial(self._connect_to, services))

    def _connect(self, node_id: int, bound: Entrance, host: str) -> asyncio.Protocol:
        served = self._served
        of_cluster = None if served is None else served.of_listener(bound.listener.name)
        return self._connect_to(of_cluster or self._services[node_id], bound, host)

    def _connect_to(self, services: Services, bound: Entrance, host: str) -> asyncio.Protocol:
        name = bound.listener.name
        served = self._served

        def connection(registry: Registry) -> Connection:
            return Connection(
                services,
                registry,
                self._logins[name],
                host,
                self._limits,
                self._login_log,
                self._accounts,
                self.stalls,
            )

        context = self._certificates.context(name)
        seconds = self._limits.login_seconds
        made = (
            connection(bound)
            if context is None
            else TlsServer(
                context, connection, bound, name, seconds, self._login_log, self._turns.is_over
            )
        )
        if served is not None:
            served.connected(name, made)
        return made


def quotas(config: Config, metrics: Metrics) -> ConnectionQuotas:
    """Return what admits connections as a configuration says."""
    return ConnectionQuotas(
        config.max_connections,
        config.max_connections_per_ip,
        config.max_connections_per_ip_overrides,
        config.max_unauthenticated_connections,
        metrics,
    )


def _limits(config: Config) -> Limits:
    return Limits(
        login_bytes=config.sasl_server_max_receive_size,
        request_bytes=config.socket_request_max_bytes,
        login_seconds=_seconds(config.sasl_timeout_ms),
        idle_seconds=_seconds(config.connections_max_idle_ms),
        failure_delay=_seconds(config.connection_failed_authentication_delay_ms),
    )


def _of_node(number: int, listener: Listener) -> Listener:
    """Return a listener as the node has it that is ``number`` after the first."""
    return replace(
        listener,
        port=listener.port and listener.port + number,
        advertised_port=listener.advertised_port and listener.advertised_port + number,
    )


def _seconds(milliseconds: int) -> float:
    """Return a time-out of a setting, where a negative one means never."""
    return math.inf if milliseconds < 0 else milliseconds / 1000
