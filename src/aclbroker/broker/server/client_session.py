"""The session of one connection: authentication, expiry, and authentication once more."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import Session
from aclbroker.broker.auth.authentication import Authentication
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.sasl.exchange import Answers
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.protocol.primitives import Frame


class SessionEvents(NamedTuple):
    """Functions that a session calls.

    ``begun`` takes the session of a client that has authenticated, again or for the first time;
    ``begins`` is called when a client begins to authenticate again. ``close`` closes the connection
    with an event of the log and its reason, ``stop`` after the last answer, and ``abort`` at once.
    """

    begun: Callable[[Session], None]
    begins: Callable[[], None]
    close: Callable[[str, str], None]
    stop: Callable[[], None]
    abort: Callable[[], None]


def _nothing(*_values: object) -> None:
    """Do nothing."""


_NO_EVENTS: Final = SessionEvents(_nothing, _nothing, _nothing, _nothing, _nothing)


class ClientSession:
    """Authenticates the client of a connection, and keeps its session.

    ``lasting`` is the session if it cannot expire, so that no request has to be looked at here. A
    failed authentication is answered after ``failure_delay`` seconds.
    """

    def __init__(
        self,
        login: Login,
        host: str,
        answers: Answers,
        logins: LoginLog,
        failure_delay: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._authentication = Authentication(login, host, answers, self._loop.time)
        self._host = host
        self._listener = login.listener
        self._logins = logins
        self._events = _NO_EVENTS
        self._failure_delay = failure_delay
        self._timer: asyncio.TimerHandle | None = None
        self.lasting: Session | None = None
        self.log = get_logger().bind(peer=host, listener=login.listener)

    @property
    def session(self) -> Session | None:
        """The session; None before the client has authenticated."""
        return self._authentication.session

    @property
    def usable(self) -> Session | None:
        """The session, unless the client authenticates or the session has expired."""
        authentication = self._authentication
        if self.lasting is not None:
            return self.lasting
        if authentication.is_at_work or authentication.is_expired:
            return None
        return authentication.session

    def begin(
        self,
        events: SessionEvents,
        certificate: bytes | None,
        login_seconds: float,
        accepted_at: float,
    ) -> None:
        """Begin to authenticate the client; without SASL that is complete at once.

        ``certificate`` is the client's from TLS, DER encoded. The client has ``login_seconds`` from
        ``accepted_at`` on. Raises `AuthenticationFailed`.
        """
        self._events = events
        if login_seconds < math.inf:
            self._timer = self._loop.call_at(
                accepted_at + login_seconds, self._check_login, login_seconds
            )
        self._authentication.begin(certificate)
        self._begun()

    def end(self) -> None:
        """Give up an authentication at work, because the connection is closed."""
        # The functions refer to the connection, which would be garbage in a circle.
        self._events = _NO_EVENTS
        if self._timer is not None:
            self._timer.cancel()
        self._authentication.end()

    def regroup(self) -> bool:
        """Give the session its principals' current groups; return whether they have changed."""
        changed = self._authentication.regroup()
        if self.lasting is not None:
            self.lasting = self._authentication.session
        return changed

    def receive(self, frame: Frame) -> Session | bytes | Awaitable[bytes]:
        """Return the session that a request belongs to, or the answer to a step of authentication.

        The answer to a request of an expired session is empty, and the connection closes.
        """
        authentication = self._authentication
        if authentication.is_at_work or authentication.begins_again(frame):
            return self._authenticate(frame)
        if authentication.session is None:
            raise RuntimeError("a connection without a session and without a way to one")
        if authentication.is_expired:
            self._logins.expired(self._listener)
            self._events.close("session expired", "it was not authenticated again in time")
            return b""
        return authentication.session

    def failed(self, reason: str) -> None:
        """Log and count a failed authentication."""
        mechanism = self._authentication.mechanism
        self._logins.failed(self.log, self._host, self._listener, mechanism, reason)

    def _authenticate(self, frame: Frame) -> bytes | Awaitable[bytes]:
        authentication = self._authentication
        renewed = authentication.session is not None
        reply = authentication.receive(frame)
        if reply.failure is not None:
            self.failed(reply.failure)
        if reply.closes:
            return self._refused(reply.frame)
        if authentication.is_at_work:
            self._events.begins()
        else:
            self._begun()
            self._logins.succeeded(self._listener, authentication.mechanism, renewed=renewed)
        return reply.frame

    async def _refused(self, frame: bytes) -> bytes:
        """Answer a failed authentication late, so that a client cannot try passwords quickly."""
        await asyncio.sleep(self._failure_delay)
        self._events.stop()
        return frame

    def _begun(self) -> None:
        session = self._authentication.session
        if session is None:
            return
        self.log = self.log.bind(principal=session.principals[0])
        if not self._authentication.may_expire:
            self.lasting = session
        if self._timer is not None:
            self._timer.cancel()
        self._events.begun(session)

    def _check_login(self, seconds: float) -> None:
        if self._authentication.session is None:
            self.failed(f"not within {seconds:g} seconds")
            self._events.abort()
