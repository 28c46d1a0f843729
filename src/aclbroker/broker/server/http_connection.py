"""One connection of the HTTP API: what its client may take, below aiohttp's protocol.

aiohttp reads and writes HTTP, but gives a client as long as it likes for a header. Here a header
has its time and its bytes, and who has not logged in gives way to others as on Kafka's listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import hdrs, web

from aclbroker.broker.config.model import Listener
from aclbroker.broker.http_api.bodies import (
    MOST_OF_BODY,
    SERVER_NAME,
    refusal_of,
    refusal_of_http,
)
from aclbroker.broker.http_api.errors import ApiError
from aclbroker.broker.http_api.scheduling import next_turn
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.accounts import LARGE, Accounts
from aclbroker.broker.server.holdings import Holdings
from aclbroker.broker.server.registry import Registry
from aclbroker.broker.turns import Turns

log = get_logger()

HEADER_SECONDS: Final = 10.0
"""How long the header of a request may take: from the last answer on, of who has not logged in."""

IDLE_SECONDS: Final = 60.0
"""How long a client that has logged in may leave the connection unused."""

HEADER_BYTES: Final = 32_768
"""After so many bytes without the end of a header no more are read."""

_ANSWER_SECONDS: Final = 1.0
_BASIC: Final = "BASIC"


class HttpHandler(web.RequestHandler):
    """aiohttp's side of a connection, which says less of what is no HTTP.

    Its own answer would repeat what came, however long that is.
    """

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be read; the connection ends."""
        if request.writer.output_size > 0:
            raise ConnectionError("a part of another answer is written")
        text = "The request is no HTTP that is understood, or its header is too long."
        answer = refusal_of(ApiError(HTTPStatus(status), text, ends=True))
        # The application, which signs all other answers, never sees this one.
        answer.headers[hdrs.SERVER] = SERVER_NAME
        return answer

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write an answer. An error of aiohttp's own gets the form of all others: one of a header
        Expect that nobody can meet, which no middleware sees.
        """
        if isinstance(resp, web.HTTPException):
            resp = refusal_of_http(request, resp)
        return await super().finish_response(request, resp, start_time)


class _Reading:
    """A transport for aiohttp, from which only is read while its connection wants that, too.

    aiohttp pauses where it has as many requests or as much of a body as it takes at a time. Who
    resumed for it would have it keep all that a client sends.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_paused = self._is_held = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def pause_reading(self) -> None:
        """Read no more until aiohttp resumes."""
        self._is_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, as far as aiohttp is concerned."""
        self._is_paused = False
        if not self._is_held:
            self._transport.resume_reading()

    def hold(self, is_held: bool) -> None:
        """Stop reading, whatever aiohttp asks for; or leave reading to aiohttp again."""
        if is_held is self._is_held:
            return
        self._is_held = is_held
        if is_held:
            self._transport.pause_reading()
        elif not self._is_paused:
            self._transport.resume_reading()


class HttpConnection(asyncio.Protocol):
    """Passes bytes on to ``above``, which aiohttp has made, and ends it when it is time.

    ``host`` is the peer's address, ``login_seconds`` how long it may take to log in.
    """

    def __init__(
        self,
        above: HttpHandler,
        registry: Registry,
        listener: Listener,
        host: str,
        login_seconds: float,
        logins: LoginLog,
        accounts: Accounts,
        turns: Turns,
        gone: Callable[[HttpConnection], None],
    ) -> None:
        self.above = above
        self.host = host
        self.listener = listener.name
        self.security_protocol = listener.security_protocol
        self._registry = registry
        self._logins = logins
        self._accounts = accounts
        self._holdings = Holdings(accounts, host, self._room_again, self.give_way)
        self._held = 0
        self._turns = turns
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + login_seconds
        self._transport: asyncio.Transport | None = None
        self._reading: _Reading | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = 0
        self._most = HEADER_BYTES
        self._waiting_bytes = b""
        self._feeding: asyncio.Task[None] | None = None
        self._awaits_room: asyncio.Future[None] | None = None
        self._reads_body = self._awaits_body = self._has_ended = False
        self._is_at_work = self._is_known = self._is_stopping = False
        self._log = log.bind(peer=host, listener=listener.name)

    # -- what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request."""
        self._transport = cast(asyncio.Transport, transport)
        self._reading = _Reading(self._transport)
        self._registry.opened(self)
        self.above.connection_made(cast(asyncio.Transport, self._reading))
        self._wait_for_header()

    def data_received(self, data: bytes) -> None:
        """Pass bytes to aiohttp in a turn of the connection; pause reading if no more is wanted."""
        self._received += len(data)
        if self._feeding is None and not self._turns.is_over():
            self.above.data_received(data)
        else:
            # TLS can deliver more bytes although reading is paused.
            self._waiting_bytes += data
            if self._feeding is None:
                self._feeding = self._loop.create_task(self._feed_later())
        self._read_on()

    def eof_received(self) -> bool:
        """Note that the client sends no more; keep the connection while there is an answer."""
        self.above.eof_received()
        self._is_stopping = self._has_ended = True
        self._give_up_later()
        # What has come may be a request that is about to begin.
        return self._is_at_work or self._received > 0

    def pause_writing(self) -> None:
        """Stop writing: the client does not read."""
        self.above.pause_writing()

    def resume_writing(self) -> None:
        """Continue writing."""
        self.above.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up: the connection is gone. A change that has begun is still carried out."""
        self._transport = self._reading = None
        self._stop_timer()
        self._holdings.end()
        if self._feeding is not None:
            self._feeding.cancel()
        if self._awaits_room is not None and not self._awaits_room.done():
            self._awaits_room.set_exception(ConnectionResetError("the connection is gone"))
        self.above.connection_lost(error)
        self._registry.closed(self)
        self._gone(self)

    # -- what the server calls

    def stop(self) -> None:
        """Answer the request at work, if there is one, and close."""
        self._is_stopping = True
        if not self._is_at_work and self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def give_way(self, why: str) -> None:
        """Close: others need the room, and this one has had the most time to log in."""
        self._failed(f"made room: {why}")
        self.abort()

    def regroup(self) -> bool:
        """Do nothing: each call has a session of its own."""
        return False

    # -- what the application calls

    def begins(self, *, has_body: bool) -> None:
        """Note that a request's header is complete; its body is read only within `body`."""
        self._is_at_work = True
        self._reads_body = not has_body
        self._stop_timer()
        self._read_on()

    def ends(self) -> None:
        """Note that its answer is about to be written, or has been."""
        self._is_at_work = False
        held, self._held = self._held, 0
        self._holdings.request_ends(held)
        if self._transport is None:
            return
        # aiohttp reads and drops the rest of an unread body. Otherwise the client might see a reset
        # connection instead of the answer.
        self._most = HEADER_BYTES if self._reads_body else HEADER_BYTES + MOST_OF_BODY
        self._received = 0
        self._read_on()
        is_late = not self._is_known and self._loop.time() >= self._deadline
        if self._is_stopping or is_late:
            # It ends when the answer is written.
            self.above.close()
        self._wait_for_header()

    def logged_in(self, mechanism: str) -> None:
        """Note that who calls has been proved."""
        if not self._is_known:
            self._is_known = True
            self._logins.succeeded(self.listener, mechanism, renewed=False)
            self._registry.authenticated(self)

    def refused(self, reason: str, *, is_guess: bool) -> None:
        """Note that who calls has not been proved, maybe by a wrong password."""
        if is_guess:
            self._failed(reason)

    @asynccontextmanager
    async def body(self, principal: str, size: int) -> AsyncIterator[None]:
        """Wait until the principal may send a body of ``size`` bytes; the block reads it.

        Raises ConnectionResetError if the connection is lost.
        """
        self._holdings.belong_to(principal)
        self._holdings.reserve(size)
        while self._holdings.awaits_room and self._transport is not None:
            self._awaits_room = self._loop.create_future()
            try:
                await self._awaits_room
            finally:
                self._awaits_room = None
            self._holdings.reserve(size)
        self._held = self._holdings.request_begins()
        if self._transport is None:
            raise ConnectionResetError("the connection is gone")
        self._reads_body = self._awaits_body = True
        self._read_on()
        self._give_up_later()
        try:
            yield
        finally:
            self._awaits_body = False

    def holds(self, principal: str, size: int) -> Callable[[int], None]:
        """Hold an answer of so many bytes; return what gives some of them back."""
        if size <= LARGE:
            return _nothing
        account = self._accounts.of(principal)
        account.take_answer(size)
        return account.give_back_answer

    # -- the work

    async def _feed_later(self) -> None:
        """Pass on the waiting bytes in a turn of this client's network."""
        await next_turn(self._turns, self.host)
        self._feeding = None
        data, self._waiting_bytes = self._waiting_bytes, b""
        self.above.data_received(data)
        self._read_on()
        self._give_up_later()

    def _give_up_later(self) -> None:
        """Close if the client has ended its stream within a body, for whose rest aiohttp waits."""
        if self._has_ended and self._awaits_body and self._feeding is None:
            # A complete body has been taken by then.
            self._loop.call_soon(self._give_up)

    def _give_up(self) -> None:
        if self._awaits_body:
            self.abort()

    def _read_on(self) -> None:
        """Pause or resume reading: a header is read up to a limit, a body once it is admitted."""
        if self._reading is not None:
            is_wanted = self._reads_body if self._is_at_work else self._received <= self._most
            self._reading.hold(self._feeding is not None or not is_wanted)

    def _room_again(self) -> None:
        if self._awaits_room is not None and not self._awaits_room.done():
            self._awaits_room.set_result(None)

    def _wait_for_header(self) -> None:
        self._stop_timer()
        now = self._loop.time()
        at = now + IDLE_SECONDS if self._is_known else min(now + HEADER_SECONDS, self._deadline)
        # There may be an answer on its way.
        self._timer = self._loop.call_at(max(at, now + _ANSWER_SECONDS), self._too_slow)

    def _too_slow(self) -> None:
        if not self._is_known:
            self._failed("no request has come in time that logs in")
        self.abort()

    def _failed(self, reason: str) -> None:
        self._logins.failed(self._log, self.host, self.listener, _BASIC, reason)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _nothing(_size: int) -> Any:
    """Give nothing back: small answers are not counted."""
