"""One client connection: moves bytes between a transport and `dispatch`.

It consists of a `RequestReader`, a `ClientSession` and an `AnswerQueue`. Requests of a connection
are answered one after the other, as in Kafka, so that each sees the changes of the one before it.
Only requests that a backend answers later are at work at the same time; all answers leave in the
order of the requests. While requests are at work, or the client does not read, the connection reads
only a little more. A client that sends many requests at once gets a turn of them, then the other
connections have theirs. A large answer is written piece by piece, as the client reads it. It is
held on the account of its principal until then (`broker.server.accounts`), as is a large request
from its first byte on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Final, NamedTuple, cast

from aclbroker.acl.authorizer import Session
from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed
from aclbroker.broker.backends.backend import BackendUnavailable, Relay
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.stalls import StallMonitor
from aclbroker.broker.server.accounts import Accounts
from aclbroker.broker.server.answer_queue import AnswerEvents, AnswerQueue
from aclbroker.broker.server.answer_writer import AnswerWriter
from aclbroker.broker.server.client_session import ClientSession, SessionEvents
from aclbroker.broker.server.dispatch import Dispatched, answer_relayed, before_login, dispatch
from aclbroker.broker.server.errors import RequestRefused
from aclbroker.broker.server.holdings import Holdings
from aclbroker.broker.server.registry import Registry
from aclbroker.broker.server.request_reader import RequestReader
from aclbroker.protocol.pieces import Encoded, Pieces
from aclbroker.protocol.primitives import Frame, ProtocolError

_REQUESTS_A_TURN: Final = 64
_BYTES_A_TURN: Final = 32_768

_MOST_UNREAD_BYTES: Final = 1 << 20
"""How many bytes that a cluster upstream has sent may wait for a client to read them."""


class Limits(NamedTuple):
    """The limits of a client; infinite seconds are no limit.

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

    The peer's address is ``host``, as ACLs name it. The listener authenticates by ``login``. Until
    a client has authenticated, only the requests for that are answered. The log ``logins`` records
    the outcome of each authentication.
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
        self._limits = limits
        self._logins = logins
        self._loop = asyncio.get_running_loop()
        self._accepted_at = self._loop.time()
        self._session = ClientSession(
            login, host, before_login(services), logins, limits.failure_delay
        )
        self._stalls = stalls
        self._accounts = accounts
        self._awaits_turn = False
        self._ended = False
        self._stopping = False
        self._idle_timer: asyncio.TimerHandle | None = None
        self._relay: Relay | None = None

    # -- what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to authenticate the peer; without SASL that is complete at once."""
        self._transport = cast(asyncio.Transport, transport)
        self._holdings = Holdings(self._accounts, self.host, self._work_soon, self.give_way)
        self._reader = RequestReader(self._transport, self._holdings, self._limits.login_bytes)
        self._writer = AnswerWriter(self._transport, self._holdings, self._written)
        events = AnswerEvents(
            self._holdings.request_ends,
            self._answer_unread,
            self._request_failed,
            self._answered,
            self._passed_on,
            partial(answer_relayed, self._services),
            self.stop,
        )
        self._answers = AnswerQueue(self._writer, events)
        self._active_at = self._loop.time()
        self._registry.opened(self)
        if self._limits.idle_seconds < math.inf:
            self._idle_timer = self._loop.call_later(self._limits.idle_seconds, self._check_idle)
        of_session = SessionEvents(
            self._session_begun, self._login_begins, self._close, self._stop_soon, self.abort
        )
        certificate, seconds = _peer_certificate(transport), self._limits.login_seconds
        try:
            self._session.begin(of_session, certificate, seconds, self._accepted_at)
        except AuthenticationFailed as error:
            self._session.failed(error.reason)
            self._stopping = True
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Take in bytes, and answer each request that is complete."""
        self._active_at = self._loop.time()
        self._reader.frames.feed(data)
        self._work()

    def eof_received(self) -> bool:
        """Note that the client will send no more; keep the connection until it is answered."""
        self._ended = True
        self._reader.end()
        if self._reader.frames.is_midway:
            self.abort()  # The rest of a request will never come.
        return self._awaits_turn or self._answers.is_at_work

    def pause_writing(self) -> None:
        """Stop answering: the client does not read its answers."""
        self._writer.pause()

    def resume_writing(self) -> None:
        """Continue: the client has read its answers."""
        self._active_at = self._loop.time()
        was_at_work = self._writer.is_at_work
        self._writer.resume()
        if not was_at_work:
            self._written()

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up: the connection is gone. A change that has begun is still carried out."""
        self._stopping = True
        session = self._session.session
        self._relay = None
        # Requests at work may begin something that only `disconnected` ends.
        self._answers.end(partial(self._services.disconnected, session))
        self._writer.end()
        self._holdings.end()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._session.end()
        self._registry.closed(self)

    # -- what the server calls

    def stop(self) -> None:
        """Answer the requests at work, if there are any, and close."""
        self._stopping = True
        if not self._answers.is_at_work:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def give_way(self, why: str) -> None:
        """Close: others need the room, and this one has had the most time to authenticate."""
        self._session.failed(f"made room: {why}")
        self._stopping = True
        self.abort()

    def regroup(self) -> bool:
        """Give the session its principals' current groups; return whether they have changed.

        Requests that have begun keep the former ones.
        """
        return self._session.regroup()

    # -- the work

    def _work(self) -> None:
        """Answer requests until none is left, one has to wait, the client must read its answers
        first, or it is the turn of other connections.
        """
        answers: list[Encoded] = []
        size = 0
        frames = self._reader.frames
        try:
            while self._ready():
                if answers and self._relay is not None:
                    # These come before the answers to requests that are relayed now.
                    self._answers.write(answers)
                    answers = []
                if (frame := self._next_frame()) is None:
                    break
                held = self._holdings.request_begins()
                began = perf_counter()
                session = self._session.lasting
                try:
                    if session is None:
                        answer = self._answer_unless_expired(frame)
                    else:
                        answer = dispatch(self._services, session, frame)
                except RequestRefused as refusal:
                    answer = self._answer_unread(refusal)
                self._stalls.worked(began, session or self.host, frame)
                if isinstance(answer, (bytes, Pieces)):
                    self._holdings.request_ends(held)
                    answers.append(answer)
                    size += len(frame) + len(answer)
                else:
                    self._answers.write(answers)
                    answers = []
                    self._answers.wait_for(answer, held)
                if not frames.buffered:
                    break
                if self._is_turn_over(len(answers), size):
                    self._await_turn()
        except Exception as error:  # noqa: BLE001 # one client must not take the others along
            self._request_failed(error)
        self._answers.write(answers)
        self._close_if_done()
        self._reader.read_on(self._ready, is_stopping=self._stopping)

    def _next_frame(self) -> Frame | None:
        """Return the next frame to be decoded, behind those that are forwarded as they came."""
        frames = self._reader.frames
        if self._relay is None:
            return frames.next_frame()
        if frames.data:
            self._take(self._relay)
        return frames.next_frame() if frames.data and self._answers.is_ready else None

    def _take(self, relay: Relay) -> None:
        """Forward the first requests without decoding them, as far as that is possible."""
        rights, session, frames = (
            self._services.whole_rights,
            self._session.usable,
            self._reader.frames,
        )
        # A request of which a part has left is sent to its end, also if the session expires.
        if rights is None or (session is None and not frames.is_midway):
            return
        began = perf_counter()
        if relay.take(rights, session, frames):
            self._stalls.worked(began, session or self.host, b"")
            if self._holdings.is_arriving:
                self._holdings.request_ends(self._holdings.request_begins())

    def _close_if_done(self) -> None:
        is_done = self._stopping or (self._ended and not self._awaits_turn)
        if is_done and not self._answers.is_at_work:
            self._transport.close()

    def _answer_unread(self, refusal: RequestRefused) -> bytes:
        log = self._session.log
        self._tell(log.warning, "request refused", reason=str(refusal), action="answered")
        return refusal.answer

    def _request_failed(self, error: BaseException) -> None:
        if isinstance(error, ProtocolError):
            self._malformed(str(error))
            return
        if isinstance(error, BackendUnavailable):
            self._close("cluster behind the gate is out of reach", str(error))
            return
        self._stopping = True
        if not isinstance(error, asyncio.CancelledError):
            log = self._session.log
            self._tell(log.error, "request failed; connection closed", exc_info=error)

    def _malformed(self, reason: str) -> None:
        if self._session.session is None:
            # Any peer can cause these lines of the log as often as it likes, so they are limited.
            self._session.failed(f"malformed request: {reason}")
            self._stopping = True
        else:
            self._close("malformed request", reason)

    def _ready(self) -> bool:
        return (
            self._answers.is_ready
            and self._writer.is_ready
            and not self._awaits_turn
            and not self._stopping
            and not self._holdings.must_wait()
            and not (self._relay is not None and self._relay.is_full)
        )

    def _is_turn_over(self, answers: int, size: int) -> bool:
        # The first request of a key and version has its decoder compiled, which takes milliseconds.
        is_enough = answers == _REQUESTS_A_TURN or size > _BYTES_A_TURN
        return is_enough or self._services.turns.is_over()

    def _await_turn(self) -> None:
        if self._reader.frames.buffered:
            self._awaits_turn = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._awaits_turn = False
        self._work()

    def _work_soon(self) -> None:
        self._loop.call_soon(self._work)

    def _answer_unless_expired(self, frame: Frame) -> Dispatched:
        """Answer a request of a client that authenticates, or of a session that may expire."""
        answer = self._session.receive(frame)
        if isinstance(answer, Session):
            return dispatch(self._services, answer, frame)
        return answer

    def _session_begun(self, session: Session) -> None:
        self._holdings.belong_to(session.principals[0])
        relay = self._services.connected(session, self._answers)
        if relay is not None:
            self._relay = relay
            self._transport.set_write_buffer_limits(_MOST_UNREAD_BYTES)
        self._reader.frames.limit = self._limits.request_bytes
        self._registry.authenticated(self)

    def _login_begins(self) -> None:
        self._reader.frames.limit = self._limits.login_bytes

    def _stop_soon(self) -> None:
        self._stopping = True

    def _close(self, event: str, reason: str) -> None:
        log = self._session.log
        self._tell(log.warning, event, reason=reason, action="connection closed")
        self._stopping = True

    def _tell(self, write: Callable[..., Any], event: str, **values: Any) -> None:
        """Log an event that the client has caused, unless it causes too many."""
        self._logins.lines.write(write, event, self.host, **values)

    def _passed_on(self) -> None:
        self._active_at = self._loop.time()
        if self._reader.frames.buffered or self._ended or self._stopping:
            self._work()

    def _written(self) -> None:
        if self._relay is not None:
            self._relay.go_on()
        self._answers.flush()
        self._work()

    def _answered(self) -> None:
        self._active_at = self._loop.time()
        self._work()

    def _check_idle(self) -> None:
        left = self._active_at + self._limits.idle_seconds - self._loop.time()
        # While the client must send or read, it is not the broker that the client waits for.
        is_its_turn = self._reader.frames.is_midway or not self._answers.is_writable
        if self._answers.is_waiting and not is_its_turn:
            left = self._limits.idle_seconds
        if left > 0:
            self._idle_timer = self._loop.call_later(left, self._check_idle)
            return
        idle_seconds = self._limits.idle_seconds
        self._tell(self._session.log.info, "idle connection closed", idle_seconds=idle_seconds)
        self._transport.abort()


def _peer_certificate(transport: asyncio.BaseTransport) -> bytes | None:
    """Return the client's certificate, DER encoded; None without TLS, or if it has none."""
    tls = transport.get_extra_info("ssl_object")
    found: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
    return found
