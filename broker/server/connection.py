"""One client connection: moves bytes between a transport and `dispatch`.

Requests of a connection are worked off one after the other, as Kafka does it, so that each sees
what the one before it changed and answers leave in the order of the requests. While one waits for
the store, or the client does not read, no more is read from it than a little ahead. A client that
sends many requests at once gets a turn of them answered, then the other connections have theirs.
A large answer is written piece by piece, as the client reads it, and is held on the account of its
principal until then (`broker.server.accounts`), as is a large request from when it begins to come.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

from aclbroker.broker.acl.authorizer import Session
from aclbroker.broker.auth.authentication import Authentication
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.stalls import StallMonitor
from aclbroker.broker.server.accounts import Accounts
from aclbroker.broker.server.answer_writer import AnswerWriter
from aclbroker.broker.server.dispatch import before_login, dispatch
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.broker.server.holdings import Holdings
from aclbroker.broker.server.registry import Registry
from aclbroker.protocol.pieces import Encoded, Pieces
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.wire import FrameReader

log = get_logger()

_REQUESTS_A_TURN: Final = 64
_BYTES_A_TURN: Final = 32_768
_READ_AHEAD: Final = 65_536


class Limits(NamedTuple):
    """What a client may not exceed; infinite seconds are no limit.

    ``login_bytes`` and ``request_bytes`` bound a frame before and after the client has
    authenticated. It has ``login_seconds`` for that, from when it was accepted. ``idle_seconds`` is
    the longest time without a byte in either direction. A failed authentication is answered after
    ``failure_delay`` seconds.
    """

    login_bytes: int
    request_bytes: int
    login_seconds: float
    idle_seconds: float
    failure_delay: float


class Connection(asyncio.Protocol):
    """The server's side of one connection.

    ``host`` is the peer's address as ACLs name it. ``login`` says how clients of the listener
    authenticate; until they have, only the requests for that are answered. ``logins`` records how
    each authentication went.
    """

    def __init__(
        self,
        services: Services,
        registry: Registry,
        login: Login,
        host: str,
        limits: Limits,
        logins: LoginLog,
        accounts: Accounts,
        stalls: StallMonitor,
    ) -> None:
        self._services = services
        self._registry = registry
        self.host = host
        self._listener = login.listener
        self._limits = limits
        self._logins = logins
        self._loop = asyncio.get_running_loop()
        self._accepted_at = self._loop.time()
        self._authentication = Authentication(login, host, before_login(services), self._loop.time)
        self._lasting_session: Session | None = None
        self._frames = FrameReader(limits.login_bytes)
        self._answering: asyncio.Task[Encoded] | None = None
        self._stalls = stalls
        self._accounts = accounts
        self._awaits_turn = False
        self._reading = True
        self._ended = False
        self._stopping = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._login_timer: asyncio.TimerHandle | None = None
        self._log = log.bind(peer=host, listener=login.listener)

    # -- what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to authenticate the peer; without SASL that is complete at once."""
        self._transport = cast(asyncio.Transport, transport)
        self._holdings = Holdings(self._accounts, self.host, self._work_soon, self.give_way)
        self._answers = AnswerWriter(self._transport, self._holdings, self._work)
        self._active_at = self._loop.time()
        self._registry.opened(self)
        if self._limits.idle_seconds < math.inf:
            self._idle_timer = self._loop.call_later(self._limits.idle_seconds, self._check_idle)
        if self._limits.login_seconds < math.inf:
            deadline = self._accepted_at + self._limits.login_seconds
            self._login_timer = self._loop.call_at(deadline, self._check_login)
        try:
            self._authentication.begin(_peer_certificate(transport))
        except AuthenticationFailed as error:
            self._failed(error.reason)
            self._stopping = True
            self._transport.close()
        self._begin_session()

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and answer each request that is complete."""
        self._active_at = self._loop.time()
        self._frames.feed(data)
        self._work()

    def eof_received(self) -> bool:
        """Note that the client will send no more; keep the connection until it is answered."""
        self._ended = True
        return self._awaits_turn or self._is_at_work

    def pause_writing(self) -> None:
        """Stop answering: the client does not read its answers."""
        self._answers.pause()

    def resume_writing(self) -> None:
        """Continue: the client has read its answers."""
        self._active_at = self._loop.time()
        was_at_work = self._answers.is_at_work
        self._answers.resume()
        if not was_at_work:
            self._work()

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up: the connection is gone. A change that has begun is still carried out."""
        self._stopping = True
        session = self._authentication.session
        if self._answering is None:
            self._services.disconnected(session)
        else:
            # What is still at work may begin what somebody has to end.
            self._answering.add_done_callback(lambda _: self._services.disconnected(session))
            # Later, so that what it waits for has begun, and is carried out.
            self._loop.call_soon(self._answering.cancel)
        self._answers.end()
        self._holdings.end()
        for timer in (self._idle_timer, self._login_timer):
            if timer is not None:
                timer.cancel()
        self._authentication.end()
        self._registry.closed(self)

    # -- what the server calls

    def stop(self) -> None:
        """Answer the request at work, if there is one, and close."""
        self._stopping = True
        if not self._is_at_work:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def give_way(self, why: str) -> None:
        """Close: others need the room, and this one has had the most time to authenticate."""
        self._failed(f"made room: {why}")
        self._stopping = True
        self.abort()

    def regroup(self) -> bool:
        """Give the session the groups that its principals have now; tell whether they are others.

        Requests that have begun go on with those of before.
        """
        changed = self._authentication.regroup()
        if self._lasting_session is not None:
            self._lasting_session = self._authentication.session
        return changed

    # -- the work

    def _work(self) -> None:
        """Answer requests until none is left, one has to wait, the client must read its answers
        first, or it is the turn of other connections.
        """
        answers: list[Encoded] = []
        size = 0
        frames = self._frames
        try:
            while self._ready() and (frame := frames.next_frame()) is not None:
                self._holdings.request_begins()
                began = perf_counter()
                session = self._lasting_session
                try:
                    if session is None:
                        answer = self._answer_unless_expired(frame)
                    else:
                        answer = dispatch(self._services, session, frame)
                except RequestRefused as refusal:
                    answer = self._answer_unread(refusal)
                self._stalls.worked(began, session or self.host, frame)
                if isinstance(answer, (bytes, Pieces)):
                    self._holdings.request_ends()
                    answers.append(answer)
                    size += len(frame) + len(answer)
                else:
                    self._wait_for(answer)
                if not frames.buffered:
                    break
                if self._is_turn_over(len(answers), size):
                    self._await_turn()
        except Exception as error:  # noqa: BLE001 # one client must not take the others along
            self._request_failed(error)
        self._answers.write(answers)
        self._close_if_done()
        self._read_on()

    def _read_on(self) -> None:
        frames = self._frames
        if frames.buffered or not self._reading:
            if not self._stopping:
                # A connection that ends reads no more: what it took now, nobody would give back.
                self._holdings.reserve(frames.announced)
            self._throttle_reading()

    @property
    def _is_at_work(self) -> bool:
        return self._answering is not None or self._answers.is_at_work

    def _close_if_done(self) -> None:
        is_done = self._stopping or (self._ended and not self._awaits_turn)
        if is_done and not self._is_at_work:
            self._transport.close()

    def _answer_unread(self, refusal: RequestRefused) -> bytes:
        self._tell(self._log.warning, "request refused", reason=str(refusal), action="answered")
        return refusal.answer

    def _request_failed(self, error: BaseException) -> None:
        if isinstance(error, ProtocolError):
            self._malformed(str(error))
            return
        self._tell(self._log.error, "request failed; connection closed", exc_info=error)
        self._stopping = True

    def _malformed(self, reason: str) -> None:
        if self._authentication.session is None:
            # Anybody can send that as often as they like: these lines of the log are limited.
            self._failed(f"malformed request: {reason}")
            self._stopping = True
        else:
            self._close("malformed request", reason)

    def _ready(self) -> bool:
        return (
            self._answering is None
            and self._answers.is_ready
            and not self._awaits_turn
            and not self._stopping
            and not self._holdings.must_wait()
        )

    def _is_turn_over(self, answers: int, size: int) -> bool:
        # The first request of a key and version has its decoder compiled, which takes milliseconds.
        is_enough = answers == _REQUESTS_A_TURN or size > _BYTES_A_TURN
        return is_enough or self._services.turns.is_over()

    def _await_turn(self) -> None:
        if self._frames.buffered:
            self._awaits_turn = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._awaits_turn = False
        self._work()

    def _work_soon(self) -> None:
        self._loop.call_soon(self._work)

    def _answer_unless_expired(self, frame: Frame) -> Encoded | Awaitable[Encoded]:
        """Answer a request of a client that authenticates, or of a session that may expire."""
        authentication = self._authentication
        if authentication.is_at_work or authentication.begins_again(frame):
            return self._authenticate(frame)
        if authentication.session is None:
            raise RuntimeError("a connection without a session and without a way to one")
        if authentication.is_expired:
            self._logins.expired(self._listener)
            self._close("session expired", "it was not authenticated again in time")
            return b""
        return dispatch(self._services, authentication.session, frame)

    def _authenticate(self, frame: Frame) -> bytes | Awaitable[bytes]:
        authentication = self._authentication
        renewed = authentication.session is not None
        reply = authentication.receive(frame)
        if reply.failure is not None:
            self._failed(reply.failure)
        if reply.closes:
            return self._refused(reply.frame)
        if authentication.is_at_work:
            self._frames.limit = self._limits.login_bytes
        else:
            self._begin_session()
            self._logins.succeeded(self._listener, authentication.mechanism, renewed=renewed)
        return reply.frame

    def _failed(self, reason: str) -> None:
        mechanism = self._authentication.mechanism
        self._logins.failed(self._log, self.host, self._listener, mechanism, reason)

    async def _refused(self, frame: bytes) -> bytes:
        """Answer a failed authentication late, so that nobody can try many passwords quickly."""
        await asyncio.sleep(self._limits.failure_delay)
        self._stopping = True
        return frame

    def _begin_session(self) -> None:
        session = self._authentication.session
        if session is None:
            return
        self._log = self._log.bind(principal=session.principals[0])
        self._holdings.belong_to(session.principals[0])
        self._frames.limit = self._limits.request_bytes
        if not self._authentication.may_expire:
            self._lasting_session = session
        if self._login_timer is not None:
            self._login_timer.cancel()
        self._registry.authenticated(self)

    def _check_login(self) -> None:
        if self._authentication.session is None:
            self._failed(f"not within {self._limits.login_seconds:g} seconds")
            self.abort()

    def _close(self, event: str, reason: str) -> None:
        self._tell(self._log.warning, event, reason=reason, action="connection closed")
        self._stopping = True

    def _tell(self, write: Callable[..., Any], event: str, **values: Any) -> None:
        """Log what the client has caused, unless it causes too much of it."""
        self._logins.lines.write(write, event, self.host, **values)

    def _wait_for(self, answer: Awaitable[Encoded]) -> None:
        self._answering = asyncio.ensure_future(answer)
        self._answering.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[Encoded]) -> None:
        self._answering = None
        self._holdings.request_ends()
        self._active_at = self._loop.time()
        if task.cancelled():
            self._stopping = True
        elif isinstance(error := task.exception(), RequestRefused):
            self._answers.write([self._answer_unread(error)])
        elif error is not None:
            self._request_failed(error)
        else:
            self._answers.write([task.result()])
        self._work()

    def _throttle_reading(self) -> None:
        reading = not self._holdings.awaits_room and (
            self._frames.buffered <= _READ_AHEAD or self._ready()
        )
        if reading is self._reading or self._ended or self._transport.is_closing():
            return
        self._reading = reading
        if reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _check_idle(self) -> None:
        left = self._active_at + self._limits.idle_seconds - self._loop.time()
        if self._answering is not None:
            left = self._limits.idle_seconds
        if left > 0:
            self._idle_timer = self._loop.call_later(left, self._check_idle)
            return
        idle_seconds = self._limits.idle_seconds
        self._tell(self._log.info, "idle connection closed", idle_seconds=idle_seconds)
        self._transport.abort()


def _peer_certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """Return the client's certificate, DER encoded; None without TLS, or if it has none."""
    tls = transport.get_extra_info("ssl_object")
    found: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return found
