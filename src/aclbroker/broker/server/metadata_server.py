"""The listeners of the HTTP API for centralised ACLs, and what serves them.

It is imported where there are some: aiohttp's server takes time at start, and memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple, cast

from aiohttp import web

from aclbroker.broker.auth.login import Login
from aclbroker.broker.config import Config
from aclbroker.broker.config.metadata_definitions import METADATA_PREFIX
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.http_api.application import Application, Parts
from aclbroker.broker.http_api.clusters import Clusters
from aclbroker.broker.http_api.registry import ClusterRegistry
from aclbroker.broker.http_api.tokens import (
    TokenKey,
    TokenKeyError,
    Tokens,
    key_of_file,
    random_key,
)
from aclbroker.broker.http_api.users import Users
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.accounts import Accounts
from aclbroker.broker.server.certificates import Certificates
from aclbroker.broker.server.doors import Door, Doors, Entrance
from aclbroker.broker.server.http_connection import HttpConnection, HttpHandler
from aclbroker.broker.server.registry import Registry
from aclbroker.broker.server.tls_transport import TlsServer
from aclbroker.broker.turns import Turns

log = get_logger()

_LINE_BYTES: Final = 8_190
_LINGER_SECONDS: Final = 1.0
_IDLE_SECONDS: Final = 3600.0
"""Longer than `HttpConnection` allows."""


class Shared(NamedTuple):
    """What the API shares with Kafka's listeners: limits, certificates, records of logins."""

    doors: Doors
    certificates: Certificates
    accounts: Accounts
    logins: LoginLog
    turns: Turns
    login_seconds: float
    failure_delay: float


class MetadataServer:
    """Serves the HTTP API. Raises ValueError for a key of tokens that cannot be used."""

    def __init__(self, config: Config, shared: Shared) -> None:
        self._config = config
        self._shared = shared
        self._tokens = Tokens(_token_key(config), config.metadata_token_max_lifetime_ms)
        self._open: dict[web.RequestHandler, HttpConnection] = {}
        self._sockets: list[Door] = []
        self._runner: web.AppRunner | None = None
        self._users: Users | None = None

    async def start(
        self,
        clusters: Mapping[str, Services],
        own_id: str,
        logins: Mapping[str, Login],
        credentials: Credentials | None,
        registry: ClusterRegistry | None,
    ) -> dict[str, str]:
        """Listen for calls about clusters; ``logins`` are those of the listeners that have users.

        ``registry`` is loaded; None is an empty one that keeps nothing. Returns the address of each
        listener by its name. Raises `OSError`.
        """
        registry = registry or ClusterRegistry(None, self._shared.logins.lines)
        self._users = Users(logins, credentials, self._tokens)
        application = Application(
            Parts(
                Clusters(own_id, clusters),
                self._users,
                registry,
                self._addresses,
                self._peer,
                self._shared.failure_delay,
                self._shared.turns,
            )
        )
        self._runner = web.AppRunner(application.made())
        await self._runner.setup()
        self._listen()
        return {
            bound.listener.name: f"{_bracketed(bound.host)}:{bound.port}" for bound in self._sockets
        }

    async def accept(self) -> None:
        """Accept connections until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for bound in self._sockets:
                tasks.create_task(bound.accept())

    def close(self) -> None:
        """Close the listening sockets; connections stay."""
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()

    async def stop(self) -> None:
        """Release what is left when all connections are closed."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._users is not None:
            self._users.close()

    def _listen(self) -> None:
        backlog = self._config.socket_listen_backlog_size
        lines = self._shared.logins.lines
        for listener in self._config.metadata_listeners:
            try:
                bound = self._shared.doors.listen(listener, backlog, lines, self._connect)
            except OSError as error:
                self.close()
                where = f"{METADATA_PREFIX}listeners: {listener.name}"
                raise OSError(error.errno, f"{where}: cannot listen: {error.strerror}") from error
            self._sockets.append(bound)

    def _connect(self, bound: Entrance, host: str) -> asyncio.Protocol:
        shared = self._shared
        connect = partial(self._connection, bound, host)
        context = shared.certificates.context(bound.listener.name)
        if context is None:
            return connect(bound)
        return TlsServer(
            context,
            connect,
            bound,
            bound.listener.name,
            shared.login_seconds,
            shared.logins,
            shared.turns.is_over,
        )

    def _connection(self, bound: Entrance, host: str, registry: Registry) -> HttpConnection:
        runner = cast(web.AppRunner, self._runner)
        above = HttpHandler(
            cast(web.Server, runner.server),
            loop=asyncio.get_running_loop(),
            logger=_silent(),
            access_log=None,  # type: ignore[arg-type] # it may be None, as aiohttp documents it
            keepalive_timeout=_IDLE_SECONDS,
            lingering_time=_LINGER_SECONDS,
            max_line_size=_LINE_BYTES,
            max_field_size=_LINE_BYTES,
            auto_decompress=False,
        )
        made = HttpConnection(
            above,
            registry,
            bound.listener,
            host,
            self._shared.login_seconds,
            self._shared.logins,
            self._shared.accounts,
            self._shared.turns,
            self._gone,
        )
        self._open[above] = made
        return made

    def _gone(self, connection: HttpConnection) -> None:
        del self._open[connection.above]

    def _peer(self, request: web.BaseRequest) -> HttpConnection:
        try:
            return self._open[request.protocol]
        except KeyError:
            raise ConnectionResetError("the connection is gone") from None

    def _addresses(self) -> dict[str, list[str]]:
        """Return the URLs that clients are told, by their scheme."""
        found: dict[str, list[str]] = {"http": [], "https": []}
        if self._config.metadata_advertised:
            for url in self._config.metadata_advertised:
                found[url.scheme].append(str(url))
            return found
        for bound in self._sockets:
            scheme = bound.listener.name.partition(":")[0]
            host = _bracketed(bound.listener.advertised_host)
            found[scheme].append(f"{scheme}://{host}:{bound.port}")
        return found


def _token_key(config: Config) -> TokenKey:
    path = config.metadata_token_key_path
    if path is None:
        log.info("tokens are signed with a random key, and end with this process")
        return random_key()
    try:
        return key_of_file(path)
    except TokenKeyError as error:
        raise ValueError(f"{METADATA_PREFIX}token.key.path={path}: {error}") from error


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _silent() -> logging.Logger:
    """Return a logger that writes nothing: what peers cause is told by our own log, and limited."""
    made = logging.getLogger("aiohttp.of-aclbroker")
    made.propagate = False
    made.disabled = True
    return made
