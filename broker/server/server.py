"""The running broker: its listeners, its connections, its authorizer, and their end in order."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from aclbroker.broker.acl.authorizer import Authorizer
from aclbroker.broker.auth.sasl.plain import PlainUsers
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import Config, Listener, shown_settings
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers import HANDLERS
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.handlers.services import Handler, Node, Services
from aclbroker.broker.logins.jwks_source import KeySources
from aclbroker.broker.logins.listeners import LoginServices, logins
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.stalls import StallMonitor
from aclbroker.broker.server.accounts import Accounts
from aclbroker.broker.server.certificates import Certificates
from aclbroker.broker.server.connection import Connection, Limits
from aclbroker.broker.server.descriptors import room_for_connections
from aclbroker.broker.server.listening import ConnectionQuotas, ListeningSocket
from aclbroker.broker.server.membership import Membership
from aclbroker.broker.server.registry import Registry
from aclbroker.broker.server.tls_transport import TlsServer
from aclbroker.broker.turns import Turns

if TYPE_CHECKING:
    from aclbroker.broker.memory import MemoryCluster

log = get_logger()

_REGROUPED_AT_ONCE: Final = 100
"""How many sessions get other groups before other work has its turn."""


class Server:
    """Serves a configuration's listeners with an authorizer that is already started.

    What clients cause in the log goes through ``lines``.

    Raises ValueError for a principal builder or a key store that cannot be used. ``start`` raises
    `OSError` where a listener cannot be bound, and `JwksUnavailable` where one has no keys to check
    access tokens with; ``stop`` lets every request at work be answered and takes at most
    ``shutdown_timeout_ms`` for that.
    """

    def __init__(
        self,
        config: Config,
        cluster_id: str,
        catalog: Catalog,
        authorizer: Authorizer | None,
        audit: Audit,
        metrics: Metrics,
        credentials: Credentials | None,
        lines: LimitedLog,
        membership: Membership,
        cluster: MemoryCluster | None = None,
        rights_class: type[RequestRights] = RequestRights,
        faults: Faults | None = None,
    ) -> None:
        self._config = config
        self._cluster_id = cluster_id
        self._catalog = catalog
        self._authorizer = authorizer
        self._audit = audit
        self._credentials = credentials
        self._quotas = ConnectionQuotas(
            config.max_connections,
            config.max_connections_per_ip,
            config.max_connections_per_ip_overrides,
            config.max_unauthenticated_connections,
            metrics,
        )
        self._limits = Limits(
            login_bytes=config.sasl_server_max_receive_size,
            request_bytes=config.socket_request_max_bytes,
            login_seconds=_seconds(config.sasl_timeout_ms),
            idle_seconds=_seconds(config.connections_max_idle_ms),
            failure_delay=_seconds(config.connection_failed_authentication_delay_ms),
        )
        self._accounts = Accounts(config.max_request_bytes_per_principal)
        self._key_sources = KeySources()
        self._membership = membership
        self._cluster = cluster
        self._rights_class = rights_class
        self._faults = faults
        services = LoginServices(credentials, self._key_sources, membership.groups)
        self._logins = logins(config, services)
        self._certificates = Certificates(config.listeners)
        self._metrics = metrics
        self._shown = shown_settings(config.properties)
        self._login_log = LoginLog(metrics, lines)
        self.stalls = StallMonitor(metrics, self._login_log.lines)
        self._turns = Turns(worked=self._had_turn, room=self._accounts.room)
        self._sockets: list[tuple[int, ListeningSocket]] = []
        self._services: dict[int, Services] = {}
        self._tasks: list[asyncio.Task[None]] = []

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
                    connect = partial(self._connect, self._config.node_id + number)
                    bound = ListeningSocket(listener, backlog, self._quotas, lines, connect)
                    self._sockets.append((self._config.node_id + number, bound))
        except OSError as error:
            self._close_sockets()
            host = f"[{listener.host}]" if ":" in (listener.host or "") else listener.host or ""
            where = f"listeners: {listener.name}://{host}:{listener.port}"
            raise OSError(error.errno, f"{where}: cannot listen: {error.strerror}") from error
        self._keep_descriptors()
        self._services = self._services_by_node()
        self._show_work()
        self.stalls.start()
        self._tasks = [asyncio.create_task(bound.accept()) for _, bound in self._sockets]
        self._tasks.append(asyncio.create_task(self._certificates.watch()))
        self._tasks.append(asyncio.create_task(self._membership.watch(self._regroup)))
        addresses: dict[str, list[str]] = {}
        for _, bound in self._sockets:
            host = f"[{bound.host}]" if ":" in bound.host else bound.host
            addresses.setdefault(bound.listener.name, []).append(f"{host}:{bound.port}")
        return {name: ",".join(each) for name, each in addresses.items()}

    @property
    def is_idle(self) -> bool:
        """Whether no request is at work that could not be answered at once."""
        return not self._turns.unfinished

    def reload_files(self) -> None:
        """Read the key and trust stores of TLS listeners anew, for connections from now on, and
        the groups of users, for sessions that are open as well.
        """
        self._certificates.reload()
        self._membership.reload()

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
        if self._cluster is not None:
            self._cluster.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._key_sources.stop()
        self._close_sockets()
        for connection in list(self._quotas.open):
            connection.stop()
        try:
            async with asyncio.timeout(self._config.shutdown_timeout_ms / 1000):
                await self._quotas.all_closed()
        except TimeoutError:
            log.warning("connections aborted", count=len(self._quotas.open))
            for connection in list(self._quotas.open):
                connection.abort()
            await self._quotas.all_closed()
        self.stalls.stop()

    async def _regroup(self) -> int:
        """Give all sessions the groups that there are now; return how many have others."""
        changed = 0
        for number, connection in enumerate(list(self._quotas.open), 1):
            # Some may have closed while others had their turn.
            if connection in self._quotas.open:
                changed += connection.regroup()
            if number % _REGROUPED_AT_ONCE == 0:
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

    def _keep_descriptors(self) -> None:
        """Admit no more connections than leave descriptors for the broker's own files."""
        room = room_for_connections()
        if room is not None and room < self._quotas.limit:
            self._quotas.limit = room
            log.info("connections limited by file descriptors", limit=room)

    def _close_sockets(self) -> None:
        for _, bound in self._sockets:
            bound.close()
        self._sockets.clear()

    def _services_by_node(self) -> dict[int, Services]:
        """Return what the handlers need, which differs by the node that a client talks to."""
        peers: dict[str, list[Node]] = {}
        by_node: dict[int, dict[str, Node]] = {}
        for node_id, bound in self._sockets:
            listener = bound.listener
            node = Node(node_id, listener.advertised_host, listener.advertised_port or bound.port)
            peers.setdefault(listener.name, []).append(node)
            by_node.setdefault(node_id, {})[listener.name] = node
        of_first = Services(
            self._cluster_id,
            by_node[self._config.node_id],
            self._authorizer,
            self._audit,
            self._catalog,
            Profile(self._config.gate_profile),
            self._shown,
            credentials=self._credentials,
            turns=self._turns,
            handlers=_handlers(self._cluster),
            cluster=self._cluster,
            rights_class=self._rights_class,
            faults=self._faults,
            peers={name: tuple(nodes) for name, nodes in peers.items()},
        )
        return {
            node_id: replace(of_first, advertised=advertised, catalog=self._catalog_of(node_id))
            for node_id, advertised in by_node.items()
        }

    def _catalog_of(self, node_id: int) -> Catalog:
        return self._catalog if self._cluster is None else self._cluster.topics.of_node(node_id)

    def _connect(self, node_id: int, bound: ListeningSocket, host: str) -> asyncio.Protocol:
        name = bound.listener.name

        def connection(registry: Registry) -> Connection:
            return Connection(
                self._services[node_id],
                registry,
                self._logins[name],
                host,
                self._limits,
                self._login_log,
                self._accounts,
                self.stalls,
            )

        context = self._certificates.context(name)
        if context is None:
            return connection(bound)
        seconds = self._limits.login_seconds
        return TlsServer(
            context, connection, bound, name, seconds, self._login_log, self._turns.is_over
        )


def _handlers(cluster: MemoryCluster | None) -> Mapping[int, Handler]:
    if cluster is None:
        return HANDLERS
    # Who has no data need not wait for these imports, which bring aiokafka's client along.
    from aclbroker.broker.handlers.memory import MEMORY_HANDLERS

    return MEMORY_HANDLERS


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
