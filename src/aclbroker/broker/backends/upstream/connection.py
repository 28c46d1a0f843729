"""One connection to a broker upstream: it logs in, sends requests and matches their answers."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, cast

from aclbroker.broker.backends.upstream.access import Access, UpstreamUnavailable, shown
from aclbroker.broker.client.errors import ClientError, code_name
from aclbroker.broker.client.sasl.mechanism import SaslClient
from aclbroker.broker.client.settings import Address
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.wire import FrameReader, decode_response, request_frame

CLIENT_ID: Final = "aclbroker-gateway"
"""The client id of the gateway's own requests, unless ``client.id`` names another."""

_LENGTH: Final = struct.Struct(">i")
_CORRELATION_ID: Final = struct.Struct(">i")
_MOST_UNREAD_BYTES: Final = 1 << 20
"""How many bytes of answers may wait for the client until no more are read from the broker.

As many bytes of requests may wait for the broker.
"""

_MOST_LOGIN_MESSAGES: Final = 32
"""The most messages that a login may take; SCRAM takes two."""


class Answering(Protocol):
    """Takes the answer to a request: a future, or the slot of a relayed request."""

    def done(self) -> bool:
        """Return whether the answer is not needed any more."""

    def set_result(self, result: Frame, /) -> None:
        """Take the answer, a frame without its length."""

    def set_exception(self, exception: BaseException, /) -> None:
        """Take the reason why there will be no answer."""


class AnswerRelay(Protocol):
    """Passes answers on without decoding them."""

    def take_answers(self, frames: FrameReader) -> None:
        """Pass on the answers at the front of those that have arrived, up to one to decode."""


def _nothing() -> None:
    """Do nothing."""


class UpstreamConnection(asyncio.Protocol):
    """A connection to a broker: requests are pipelined, and answers come in their order.

    ``largest_answer`` is in bytes; ``client_id`` is that of the gateway's own requests.
    """

    def __init__(self, address: Address, largest_answer: int, client_id: str) -> None:
        self.address = address
        self._client_id = client_id
        self._frames = FrameReader(largest_answer)
        self.expected: deque[tuple[int, Any]] = deque()
        """The correlation ids of the requests without an answer, and where the answers go."""

        self._waiting: list[tuple[Frame, int | None, asyncio.Future[Frame]]] | None = None
        self._own_requests = 0
        self._unread: deque[int] = deque()
        self._unread_bytes = 0
        self._is_paused = False
        self.is_full = False
        """Whether the broker does not read."""

        self.relay: AnswerRelay | None = None
        """Forwards answers without decoding them, if there is one."""

        self._unsent: list[asyncio.Future[Frame]] = []
        self._transport: asyncio.Transport | None = None
        self._lost = ""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Is done when the connection is closed, by whichever side."""

        self.was_read: Callable[[], None] = _nothing
        """Is called after each read, and when the connection is closed."""

        self.resumed: Callable[[], None] = _nothing
        """Is called when the broker reads again."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport, on which requests may be sent."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_MOST_UNREAD_BYTES)

    def data_received(self, data: bytes) -> None:
        """Give each answer to the request that waits for it."""
        self._frames.feed(data)
        if self.relay is not None:
            self.relay.take_answers(self._frames)
            if not self._frames.data:
                return
        try:
            while (frame := self._frames.next_frame()) is not None:
                self._answered(frame)
        except ProtocolError as error:
            self.lose(f"malformed answer: {error}")
        self.was_read()

    def connection_lost(self, error: Exception | None) -> None:
        """Fail the requests that have no answer yet."""
        self._lost = self._lost or "the connection was closed" + (f": {error}" if error else "")
        if not self.closed.done():
            self.closed.set_result(None)
        waiting = [answer for _, _, answer in self._waiting or ()]
        answers = [*(answer for _, answer in self.expected), *waiting, *self._unsent]
        self._waiting = None
        self.expected.clear()
        self._unsent.clear()
        for answer in answers:
            if not answer.done():
                answer.set_exception(self._error())
        self.was_read()
        self.was_read = self.resumed = _nothing
        self.relay = None

    def pause_writing(self) -> None:
        """Note that the broker reads more slowly than requests come."""
        self.is_full = True

    def resume_writing(self) -> None:
        """Let the requests end that have no answer and waited for the broker to read."""
        self.is_full = False
        unsent, self._unsent = self._unsent, []
        for answer in unsent:
            if not answer.done():
                answer.set_result(b"")
        self.resumed()

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return not self._lost and self._transport is not None and not self._transport.is_closing()

    def send(self, frame: Frame, correlation_id: int | None, answer: asyncio.Future[Frame]) -> None:
        """Send a request. ``answer`` becomes its answer, a frame without its length.

        Without a correlation id the broker sends no answer (a Produce with acks=0); ``answer`` is
        then empty, and comes when the broker reads. It fails with `UpstreamUnavailable` if the
        connection is lost.
        """
        if self._transport is None or not self.is_open:
            answer.set_exception(self._error())
            return
        if self._waiting is not None:
            self._waiting.append((frame, correlation_id, answer))
            return
        if correlation_id is not None:
            self.expected.append((correlation_id, answer))
        self._transport.writelines((_LENGTH.pack(len(frame)), frame))
        if correlation_id is None:
            # The request counts as memory of its principal until then.
            if self.is_full:
                self._unsent.append(answer)
            else:
                answer.set_result(b"")

    def write(self, data: Frame) -> None:
        """Send requests with their lengths; their answers must be `expected`."""
        self._of_transport().write(data)

    def begin_large(self) -> None:
        """Let other requests wait, because `write` sends one in pieces."""
        self._waiting = []

    def end_large(self) -> None:
        """Send the requests that have waited."""
        waiting, self._waiting = self._waiting or [], None
        for request in waiting:
            self.send(*request)

    def pause(self) -> None:
        """Read nothing until `go_on`."""
        if not self._is_paused and self.is_open:
            self._is_paused = True
            self._of_transport().pause_reading()

    def go_on(self) -> None:
        """Read again, unless too many answers wait for the client."""
        if self._is_paused and self._unread_bytes <= _MOST_UNREAD_BYTES and self.is_open:
            self._is_paused = False
            self._of_transport().resume_reading()

    async def ask(self, key: ApiKey, version: int, message: Any) -> Any:
        """Send one of the gateway's own requests and return the message of its answer.

        Raises `UpstreamUnavailable`.
        """
        self._own_requests += 1
        number = self._own_requests
        framed = request_frame(APIS[key], version, number, self._client_id, message)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self.send(framed[_LENGTH.size :], number, answer)
        try:
            response = await answer
            self.answer_left()
            return decode_response(APIS[key], version, response)[1]
        except ProtocolError as error:
            self.lose(f"malformed answer to {key.name}: {error}")
            raise self._error() from error

    def answer_left(self) -> None:
        """Note that the earliest answer has left for the client, so that more may be read."""
        if self._unread:
            self._unread_bytes -= self._unread.popleft()
        self.go_on()

    def close(self) -> None:
        """Close the connection; requests without an answer fail."""
        self.lose("the gateway has closed the connection")

    def _answered(self, frame: Frame) -> None:
        if len(frame) < _CORRELATION_ID.size:
            raise ProtocolError(f"{len(frame)} bytes are shorter than a header")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if not self.expected:
            raise ProtocolError(f"no request waits for the answer {correlation_id}")
        expected, answer = self.expected[0]
        if correlation_id != expected:
            raise ProtocolError(f"the answer {correlation_id} came in place of {expected}")
        if answer.done():
            self.expected.popleft()
            return  # It came too late.
        self._unread.append(len(frame))
        self._unread_bytes += len(frame)
        if self._unread_bytes > _MOST_UNREAD_BYTES:
            # The client does not read as fast as the broker sends.
            self.pause()
        # If this fails, the answer is among those that fail with the connection.
        answer.set_result(frame)
        self.expected.popleft()

    def _of_transport(self) -> asyncio.Transport:
        if self._transport is None:
            raise RuntimeError("the connection is not made")
        return self._transport

    def lose(self, reason: str) -> None:
        """Close the connection; requests without an answer fail for this reason."""
        self._lost = self._lost or reason
        if self._transport is not None:
            self._transport.abort()

    def _error(self) -> UpstreamUnavailable:
        return UpstreamUnavailable(f"{shown(self.address)}: {self._lost}")


async def connect(address: Address, access: Access) -> UpstreamConnection:
    """Return a connection to a broker that has logged in; raises `UpstreamUnavailable`."""
    loop = asyncio.get_running_loop()
    host, port = address
    settings = access.settings
    made = partial(
        UpstreamConnection, address, access.largest_answer, settings.client_id or CLIENT_ID
    )
    connection = None
    try:
        async with asyncio.timeout(settings.connect_timeout):
            _, connection = await loop.create_connection(
                made, host, port, ssl=access.tls, server_hostname=host if access.tls else None
            )
        if access.sasl is not None:
            async with asyncio.timeout(settings.request_timeout):
                await _log_in(connection, access.sasl(host), settings.mechanism)
    except (OSError, ClientError, UpstreamUnavailable) as error:
        if connection is not None:
            connection.close()
        if isinstance(error, UpstreamUnavailable):
            raise
        raise UpstreamUnavailable(f"{shown(address)}: {_reason(error)}") from error
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    return connection


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "verify_message", None) or error.reason or str(error)
        return f"TLS handshake failed: {str(reason).replace('_', ' ').lower()}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


async def _log_in(connection: UpstreamConnection, client: SaslClient, mechanism: str) -> None:
    """Authenticate by SASL; raises `UpstreamUnavailable` and `ClientError`."""
    handshake = await connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))
    if handshake.error_code:
        offered = ", ".join(handshake.mechanisms) or "none"
        raise _refused(connection, f"it does not offer {mechanism}; it offers: {offered}")
    message: bytes | None = client.first()
    for _ in range(_MOST_LOGIN_MESSAGES):
        if message is None:
            return
        request = SaslAuthenticateRequest(message)
        answer = await connection.ask(ApiKey.SASL_AUTHENTICATE, 1, request)
        if answer.error_code:
            reason = answer.error_message or code_name(answer.error_code)
            raise _refused(connection, f"it refuses the login: {reason}")
        # The proof of a password takes milliseconds, or seconds if the broker asks for that.
        message = await asyncio.to_thread(client.answer, answer.auth_bytes)
    raise _refused(connection, "the login does not end")


def _refused(connection: UpstreamConnection, reason: str) -> UpstreamUnavailable:
    return UpstreamUnavailable(
        f"{shown(connection.address)}: {reason}; see aclbroker.upstream.sasl.*"
    )
