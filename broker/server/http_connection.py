"""One connection of the HTTP API: what its client may take, below aiohttp's protocol.

aiohttp reads and writes HTTP, but gives a client as long as it likes for a header. Here a header
has its time and its bytes, and who has not logged in gives way to others as on Kafka's listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import hdrs, web

from aclbroker.broker.config.model import Listener
from aclbroker.broker.mds.bodies import SERVER_NAME, refusal_of, refusal_of_http
from aclbroker.broker.mds.errors import ApiError
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.accounts import LARGE, Accounts
from aclbroker.broker.server.registry import Registry

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

    def hold(self) -> None:
        """Read no more until `release`, whatever aiohttp says."""
        self._is_held = True
        self._transport.pause_reading()

    def release(self) -> None:
        """Leave it to aiohttp again."""
        self._is_held = False
        if not self._is_paused:
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
        gone: Callable[[HttpConnection], None],
    ) -> None:
        self.above = above
        self.host = host
        self.listener = listener.name
        self.security_protocol = listener.security_protocol
        self._registry = registry
        self._logins = logins
        self._accounts = accounts
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + login_seconds
        self._transport: asyncio.Transport | None = None
        self._reading: _Reading | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = 0
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
        """Pass on bytes; read no more of a header that does not end."""
        self._received += len(data)
        self.above.data_received(data)
        if self._received > HEADER_BYTES and not self._is_at_work and self._reading is not None:
            # Where the header is complete aiohttp begins with the request soon.
            self._reading.hold()

    def eof_received(self) -> bool:
        """Note that the client sends no more; keep the connection while there is an answer."""
        self.above.eof_received()
        self._is_stopping = True
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

    def begins(self) -> None:
        """Note that the header of a request is here."""
        self._is_at_work = True
        self._stop_timer()
        if self._reading is not None:
            self._reading.release()

    def ends(self) -> None:
        """Note that its answer is about to be written, or has been."""
        self._is_at_work = False
        if self._transport is None:
            return
        self._received = 0
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

    def holds(self, principal: str, size: int) -> Callable[[int], None]:
        """Hold an answer of so many bytes; return what gives some of them back."""
        if size <= LARGE:
            return _nothing
        account = self._accounts.of(principal)
        account.take_answer(size)
        return account.give_back_answer

    # -- the work

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
