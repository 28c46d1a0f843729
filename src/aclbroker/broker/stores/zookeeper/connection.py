"""A connection to ZooKeeper whose requests are awaited: kazoo's threads are never waited for.

kazoo has a thread for the connection and two that call back. What these have to say comes over to
the event loop with `call_soon_threadsafe`. Few requests are under way at a time: each wakes kazoo's
thread through a socket, and a full one would let the loop wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import StoreError, StoreUnavailable
from aclbroker.broker.stores.zookeeper.handler import Handler
from aclbroker.broker.stores.zookeeper.settings import ZookeeperSettings

log = get_logger()

_AT_ONCE: Final = 100
"""How many requests are under way at a time; a socket has room for about 270."""

_BEGUN_IN_THE_LOOP: Final = 4
"""Up to so many requests are begun in the event loop. With each, kazoo's thread may get its turn,
and with many the loop would wait for that."""

_STOP_S: Final = 5.0

_RETRY: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 2.0}
_CONNECTED: Final = (KeeperState.CONNECTED, KeeperState.CONNECTED_RO)
_UNREACHED: Final = (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
)

Request = Callable[[KazooClient], Any]
"""Begins a request and returns kazoo's result of it, for which others can wait."""


def ask(method: str, *arguments: Any, **options: Any) -> Request:
    """Return the request that a method of kazoo's client makes, by its name without ``_async``."""
    return lambda client: getattr(client, f"{method}_async")(*arguments, **options)


class Connection:
    """A session with ZooKeeper, and another when that is over. Used from one event loop.

    ``changed`` is called in that loop when it gets connected or loses its connection.
    """

    def __init__(self, settings: ZookeeperSettings, changed: Callable[[], None]) -> None:
        self.settings = settings
        self._changed = changed
        self._client: KazooClient | None = None
        self.ended = ""
        """Why there will be no connection unless it is opened again; "" if there may be one."""

        self._loop = asyncio.get_running_loop()
        # Its own is at debug what requests carry, and at warning a line for each attempt.
        self._logger = logging.Logger("aclbroker.zookeeper", logging.CRITICAL)

    def open(self) -> None:
        """Begin to connect, and go on until `close`."""
        settings = self.settings
        sasl = None
        if settings.login is not None:
            user, password = settings.login
            sasl = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
        self._client = KazooClient(
            ",".join(settings.servers),
            timeout=settings.session_timeout_ms / 1000,
            handler=Handler(settings.tls, settings.connection_timeout_ms / 1000),
            connection_retry=_RETRY,
            sasl_options=sasl,
            logger=self._logger,
        )
        self.ended = ""
        self._client.add_listener(self._noted)
        self._client.start_async()

    def _noted(self, state: str) -> None:
        """Take a change of the connection's state, in kazoo's thread."""
        client = self._client
        if client is not None and state == KazooState.LOST:
            if client.client_state == KeeperState.AUTH_FAILED:
                self.ended = "it does not accept the login"
            elif client.client_state == KeeperState.CLOSED:
                self.ended = "the client of ZooKeeper has ended"
        self._call_soon(self._changed)

    async def close(self) -> None:
        """End the session; of a server that does not answer nobody waits for long."""
        client, self._client = self._client, None
        if client is None:
            return
        done: asyncio.Future[None] = self._loop.create_future()

        def stop() -> None:
            _stop(client)
            self._call_soon(_finish, done)

        # A thread of the loop's own would be waited for at the end of the loop.
        threading.Thread(target=stop, name="aclbroker-zookeeper-stop", daemon=True).start()
        await asyncio.wait([done], timeout=_STOP_S)

    async def reopen(self) -> None:
        """Begin anew, also where it has ``ended``."""
        await self.close()
        self.open()

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._client is not None and self._client.client_state in _CONNECTED

    @property
    def session(self) -> int | None:
        """The number of the session; None while there is no connection."""
        known = self._client.client_id if self._client is not None else None
        return None if known is None else int(known[0])

    @property
    def seen(self) -> int:
        """A zxid up to which everything is in what is read from now on, in this session."""
        return 0 if self._client is None else int(self._client.last_zxid or 0)

    @property
    def acls(self) -> list[Any]:
        """Who may do what with a node that anybody may read."""
        readable = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]
        return readable if self.settings.sets_acls else [*OPEN_ACL_UNSAFE]

    @property
    def secret_acls(self) -> list[Any]:
        """Who may do what with a node that has secrets."""
        return [*(CREATOR_ALL_ACL if self.settings.sets_acls else OPEN_ACL_UNSAFE)]

    def path(self, path: str) -> str:
        """Return the whole path of one that begins at the chroot."""
        return f"{self.settings.chroot}{path}"

    async def one(self, request: Request) -> Any:
        """Return the answer to a request. Raises `StoreError`, or kazoo's error of that request."""
        [answer] = await self.all([request])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def all(self, requests: Sequence[Request]) -> list[Any]:
        """Return the answers to requests in their order; an error in place of one that has failed.

        Raises `StoreUnavailable` if the connection is lost, `StoreError` if ZooKeeper does not
        allow one of them.
        """
        answers: list[Any] = []
        for begin in range(0, len(requests), _AT_ONCE):
            answers += await self._some(requests[begin : begin + _AT_ONCE])
        for answer in answers:
            if isinstance(answer, _UNREACHED):
                raise self._unavailable(_reason(answer))
            if isinstance(answer, NoAuthError):
                raise StoreError(
                    f"ZooKeeper does not allow this broker to do that at {self.settings.url}: its "
                    "nodes belong to another user; see aclbroker.zookeeper.sasl.jaas.config"
                )
        return answers

    async def _some(self, requests: Sequence[Request]) -> list[Any]:
        client = self._client
        if client is None or not self.is_connected:
            raise self._unavailable("there is no connection")
        done: asyncio.Future[None] = self._loop.create_future()
        answers: list[Any] = [None] * len(requests)
        left = len(requests)

        def take(number: int, result: Any) -> None:
            # All of them are called in one thread of kazoo's.
            nonlocal left
            answers[number] = result.exception if result.exception is not None else result.value
            left -= 1
            if not left:
                self._call_soon(_finish, done)

        def begin() -> None:
            for number, request in enumerate(requests):
                request(client).rawlink(lambda result, number=number: take(number, result))

        if len(requests) <= _BEGUN_IN_THE_LOOP:
            begin()
        else:
            await asyncio.to_thread(begin)
        try:
            async with asyncio.timeout(self.settings.session_timeout_ms / 1000):
                await done
        except TimeoutError:
            raise self._unavailable("it does not answer") from None
        return answers

    def _unavailable(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(f"ZooKeeper cannot be reached at {self.settings.url}: {reason}")

    def call_soon(self, function: Callable[..., None]) -> Callable[..., None]:
        """Return what calls a function in the event loop, without arguments, from any thread."""
        return lambda *ignored: self._call_soon(function)

    def _call_soon(self, function: Callable[..., None], *arguments: Any) -> None:
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _stop(client: KazooClient) -> None:
    # A thread that is connecting may not end in time; it does later.
    with suppress(KazooException, OSError):
        client.stop()
    with suppress(KazooException, OSError):
        client.close()


def _reason(error: Exception) -> str:
    if isinstance(error, AuthFailedError):
        return "it does not accept the login"
    return "the connection was lost"
