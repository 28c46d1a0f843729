"""TLS between a transport and the protocol above it, on the server's side of one connection.

asyncio and uvloop have this too, but drop what OpenSSL wants to send when a handshake fails
(python/cpython#98078). A Kafka client that gets no alert takes it for a lost connection and tries
again until it times out; with the alert it tells its user at once what is wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.registry import OpenConnection, Registry

log = get_logger()

_READ_BYTES: Final = 65_536

_LINGER_SECONDS: Final = 1.0
"""How long a client has to take in the alert, before its connection is gone with all it sent."""

_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST")
"""What OpenSSL makes of bytes that are no TLS."""


_MECHANISM: Final = "TLS"
"""The name of failed handshakes among failed authentications."""


class ConnectionAbove(OpenConnection, Protocol):
    """The protocol that reads and writes decrypted bytes; see `asyncio.Protocol`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the handshake is complete."""

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""

    def eof_received(self) -> bool:
        """Note that the peer sends no more; true keeps the connection."""

    def pause_writing(self) -> None:
        """Stop writing."""

    def resume_writing(self) -> None:
        """Continue writing."""

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up: the connection is gone."""


class TlsTransport(asyncio.Transport):
    """What the protocol above writes to.

    While the peer does not read what it is sent, nothing more is read from it: otherwise it could
    make TLS itself write answers (to key updates, for example) without end.
    """

    def __init__(
        self, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO, below: asyncio.Transport
    ) -> None:
        super().__init__()
        self._tls = tls
        self._outgoing = outgoing
        self._below = below
        self._closing = False
        self._reading = True
        self._wanted_above = True
        self._taken_in = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection; `ssl_object` has the peer's certificate."""
        return self._tls if name == "ssl_object" else self._below.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send."""
        if self._closing:
            return
        with memoryview(data) as rest:
            written = 0
            while written < len(rest):
                # One record at a time is written, which is no more than 16 KiB.
                written += self._tls.write(rest[written:])
        self.flush()

    def flush(self) -> None:
        """Send what TLS has to send."""
        if self._outgoing.pending and not self._below.is_closing():
            self._below.write(self._outgoing.read())

    def is_closing(self) -> bool:
        """Tell whether it was closed, by the protocol above or by the transport."""
        return self._closing or self._below.is_closing()

    def close(self) -> None:
        """Send a close_notify and all that is not yet sent, and close."""
        if not self._closing:
            self._closing = True
            # OpenSSL wants the peer's close_notify, for which nobody waits.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self.flush()
        self._below.close()

    def abort(self) -> None:
        """Close at once."""
        self._closing = True
        self._below.abort()

    def fail(self) -> None:
        """Send the alert and nothing after it, and give the client a moment to read it."""
        self._closing = True
        self.flush()
        if self._below.is_closing():
            return
        # The kernel resets a connection that is closed with bytes unread: the alert would be lost.
        self._below.write_eof()
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._below.abort)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set how many encrypted bytes may wait for the peer until writing pauses."""
        self._below.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Stop reading; what is decrypted already is still passed on."""
        self._wanted_above = False
        self._throttle()

    def resume_reading(self) -> None:
        """Continue reading."""
        self._wanted_above = True
        self._throttle()

    def below_paused(self, paused: bool) -> None:
        """Note whether the peer has stopped reading what it is sent."""
        self._taken_in = not paused
        self._throttle()

    def _throttle(self) -> None:
        reading = self._wanted_above and self._taken_in
        if reading is self._reading or self._below.is_closing():
            return
        self._reading = reading
        if reading:
            self._below.resume_reading()
        else:
            self._below.pause_reading()


class TlsServer(asyncio.Protocol):
    """Performs the handshake within ``seconds``, then passes decrypted bytes to the protocol above.

    ``connect`` makes the protocol above. To the listener's registry this object is the connection,
    and to the protocol above it is the registry. ``logins`` records failed handshakes. A step of a
    handshake takes a millisecond or two, and many clients can come at once: when ``is_turn_over``
    says that the turn of the event loop is over (see `Turns.is_over`), it waits for another one.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        connect: Callable[[Registry], ConnectionAbove],
        registry: Registry,
        listener: str,
        seconds: float,
        logins: LoginLog,
        is_turn_over: Callable[[], bool],
    ) -> None:
        self._above = connect(self)
        self._registry = registry
        self._listener = listener
        self._seconds = seconds
        self._logins = logins
        self._is_turn_over = is_turn_over
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaking_hands = True
        self._known = False
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None
        self.host = self._above.host
        self._log = log.bind(peer=self.host, listener=listener)

    # -- what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the client to begin the handshake."""
        self._transport = TlsTransport(
            self._tls, self._outgoing, cast(asyncio.Transport, transport)
        )
        self._registry.opened(self)
        if self._seconds < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._seconds, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """Continue the handshake, or pass on the decrypted bytes."""
        if self._transport.is_closing():
            return
        self._incoming.write(data)
        if self._shaking_hands and self._is_turn_over():
            # What comes after is left to the kernel, the end of the stream as well.
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._shake_hands_later)
        else:
            self._take_in()

    def eof_received(self) -> bool:
        """Note that the client will send no more; true keeps the connection."""
        return not self._shaking_hands and self._end()

    def pause_writing(self) -> None:
        """Stop writing: the client does not read."""
        self._transport.below_paused(True)
        if not self._shaking_hands:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        """Continue writing."""
        self._transport.below_paused(False)
        if not self._shaking_hands:
            self._above.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Clean up: the connection is gone. Tell the protocol above, if it has begun."""
        self._stop_timer()
        if not self._shaking_hands:
            self._above.connection_lost(error)
        self._registry.closed(self)
        # They refer to each other, and would keep OpenSSL's memory until a garbage collection.
        del self._above

    # -- what the server calls

    def stop(self) -> None:
        """Let the protocol above finish what is at work, and close."""
        if self._shaking_hands:
            self._transport.abort()
        else:
            self._above.stop()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def give_way(self, why: str) -> None:
        """Close: there are too many, and this one has had the most time to authenticate."""
        if self._shaking_hands:
            self._refuse(f"made room: {why}")
            self.abort()
        else:
            self._above.give_way(why)

    def regroup(self) -> bool:
        """Give the session its principals' groups of now; tell whether they are others."""
        return not self._shaking_hands and self._above.regroup()

    # -- what the protocol above calls

    def opened(self, connection: OpenConnection) -> None:
        """Do nothing: the registry knows this connection already."""

    def authenticated(self, connection: OpenConnection) -> None:
        """Note that the client has authenticated."""
        self._known = True
        self._registry.authenticated(self)

    def closed(self, connection: OpenConnection) -> None:
        """Do nothing: the registry is told when the transport is closed."""

    # -- the work

    def _shake_hands_later(self) -> None:
        if self._transport.is_closing():
            return
        if self._is_turn_over():
            asyncio.get_running_loop().call_soon(self._shake_hands_later)
            return
        self._transport.resume_reading()
        self._take_in()

    def _take_in(self) -> None:
        try:
            if self._shaking_hands:
                self._tls.do_handshake()
                self._begin()
            received, ended = self._decrypted()
        except ssl.SSLWantReadError:
            self._transport.flush()
            return
        except ssl.SSLError as error:
            self._fail(_reason(error))
            return
        self._transport.flush()
        if received:
            self._above.data_received(received)
        if ended and not self._end():
            self._transport.close()

    def _begin(self) -> None:
        self._shaking_hands = False
        self._stop_timer()
        self._logins.succeeded(self._listener, _MECHANISM, renewed=False)
        self._above.connection_made(self._transport)

    def _decrypted(self) -> tuple[bytes, bool]:
        """Return what can be read, and whether the peer has ended the stream."""
        chunks = []
        with contextlib.suppress(ssl.SSLWantReadError):
            while chunk := self._tls.read(_READ_BYTES):
                chunks.append(chunk)
            return b"".join(chunks), True
        return b"".join(chunks), False

    def _end(self) -> bool:
        """Tell the protocol above that no more comes; returns whether it has more to do."""
        if self._ended:
            return not self._transport.is_closing()
        self._ended = True
        return self._above.eof_received()

    def _fail(self, reason: str) -> None:
        self._stop_timer()
        if self._known:
            self._logins.lines.write(
                self._log.warning,
                "TLS failed",
                self.host,
                reason=reason,
                action="connection closed",
            )
        else:
            self._refuse(reason)
        self._transport.fail()

    def _refuse(self, reason: str) -> None:
        self._logins.failed(self._log, self.host, self._listener, _MECHANISM, reason)

    def _too_slow(self) -> None:
        self._refuse(f"no handshake within {self._seconds:g} seconds")
        self._transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    if error.reason in _NO_TLS:
        return "the client does not speak TLS"
    return (error.reason or str(error)).replace("_", " ").lower()
