"""The running broker: its listeners, its connections, its authorizer, and their end in order."""

from __future__ import annotations

import asyncio
import math
import time

import structlog

from aclbroker.broker.acl.authorizer import Authorizer
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import Config, shown_settings
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.handlers.services import Node, Services
from aclbroker.broker.logins.jwks_source import KeySources
from aclbroker.broker.logins.listeners import LoginServices, logins
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.certificates import Certificates
from aclbroker.broker.server.connection import Connection, Limits, Registry
from aclbroker.broker.server.listening import ConnectionQuotas, ListeningSocket
from aclbroker.broker.server.tls_transport import TlsServer

log = structlog.get_logger()


class Server:
    """Serves a configuration's listeners with an authorizer that is already started.

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
        self._key_sources = KeySources()
        self._logins = logins(config, LoginServices(credentials, self._key_sources))
        self._certificates = Certificates(config.listeners)
        self._metrics = metrics
        self._login_log = LoginLog(metrics, time.monotonic)
        self._sockets: list[ListeningSocket] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> dict[str, str]:
        """Listen; returns the address of each listener by its name, with the port it really has."""
        await self._key_sources.start()
        backlog = self._config.socket_listen_backlog_size
        try:
            for listener in self._config.listeners:
                bound = ListeningSocket(listener, backlog, self._quotas, self._connect)
                self._sockets.append(bound)
        except OSError as error:
            self._close_sockets()
            where = f"{listener.name} on {listener.host or 'all interfaces'} port {listener.port}"
            raise OSError(error.errno, f"cannot listen for {where}: {error.strerror}") from error
        self._services = Services(
            self._cluster_id,
            {bound.listener.name: self._node(bound) for bound in self._sockets},
            self._authorizer,
            self._audit,
            self._catalog,
            Profile(self._config.gate_profile),
            shown_settings(self._config),
            credentials=self._credentials,
        )
        self._tasks = [asyncio.create_task(bound.accept()) for bound in self._sockets]
        self._tasks.append(asyncio.create_task(self._certificates.watch()))
        return {
            bound.listener.name: f"[{bound.host}]:{bound.port}"
            if ":" in bound.host
            else f"{bound.host}:{bound.port}"
            for bound in self._sockets
        }

    def reload_certificates(self) -> None:
        """Read the key and trust stores of TLS listeners anew, for connections from now on."""
        self._certificates.reload()

    async def stop(self) -> None:
        """Stop listening, let requests at work be answered, close every connection."""
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

    def _close_sockets(self) -> None:
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()

    def _node(self, bound: ListeningSocket) -> Node:
        listener = bound.listener
        port = listener.advertised_port or bound.port
        return Node(self._config.node_id, listener.advertised_host, port)

    def _connect(self, bound: ListeningSocket, host: str) -> asyncio.Protocol:
        name = bound.listener.name

        def connection(registry: Registry) -> Connection:
            login, log = self._logins[name], self._login_log
            return Connection(self._services, registry, login, host, self._limits, log)

        context = self._certificates.context(name)
        if context is None:
            return connection(bound)
        seconds = self._limits.login_seconds
        return TlsServer(context, connection, bound, name, seconds, self._login_log)


def _seconds(milliseconds: int) -> float:
    """Return a time-out of a setting, where a negative one means never."""
    return math.inf if milliseconds < 0 else milliseconds / 1000
