"""A blocking client on one connection, which sends typed requests or raw bytes."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.wire import decode_response, request_frame

if TYPE_CHECKING:
    import ssl

_LENGTH: Final = struct.Struct(">i")
_LARGEST_ANSWER: Final = 64 * 1024 * 1024
_LARGEST_READ: Final = 1024 * 1024


class ConnectionClosed(ConnectionError):
    """The broker closed the connection."""


class NoAnswer(TimeoutError):
    """The broker did not answer or read in time; the connection cannot be used any more."""


def connect(
    host: str, port: int, timeout: float, tls: ssl.SSLContext | None = None
) -> socket.socket:
    """Return a connection to a broker, through TLS if a context is given.

    ``timeout`` is in seconds and applies to connecting and to each later read or write. Raises
    `OSError`, of which `ssl.SSLError` is a subclass, if the broker cannot be reached.
    """
    connection = socket.create_connection((host, port), timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is None:
        return connection
    return tls.wrap_socket(connection, server_hostname=host)


class BlockingClient:
    """A client on an open connection; it waits as long as the socket's timeout says.

    Methods that send or receive raise `ConnectionClosed` and `NoAnswer`. Those that receive also
    raise `ProtocolError` for a malformed answer.
    """

    def __init__(self, connection: socket.socket, client_id: str | None) -> None:
        self.socket = connection
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send raw bytes."""
        try:
            self.socket.sendall(data)
        except TimeoutError as error:
            raise NoAnswer from error
        except ConnectionError as error:
            raise ConnectionClosed from error

    def receive(self) -> bytes:
        """Return the next frame, without its length prefix."""
        (size,) = _LENGTH.unpack(self._read(_LENGTH.size))
        if not 0 <= size <= _LARGEST_ANSWER:
            raise ProtocolError(f"an answer of {size} bytes")
        return self._read(size)

    def request(self, key: int, version: int, message: Any) -> int:
        """Send a request and return its correlation id, which is unique on this connection."""
        self._correlation_id += 1
        frame = request_frame(APIS[key], version, self._correlation_id, self._client_id, message)
        self.send(frame)
        return self._correlation_id

    def response(self, key: int, version: int) -> tuple[int, Any]:
        """Return the correlation id and the message of the next response."""
        return decode_response(APIS[key], version, self.receive())

    def ask(self, key: int, version: int, message: Any) -> Any:
        """Send a request and return the message of its response."""
        sent = self.request(key, version, message)
        answered, response = self.response(key, version)
        if answered != sent:
            raise ProtocolError(f"request {sent} got the answer to request {answered}")
        return response

    def handshake(self, mechanism: str) -> Any:
        """Ask for a SASL mechanism; return the SaslHandshake response."""
        return self.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))

    def authenticate(self, token: bytes, version: int = 0) -> Any:
        """Send a token of the SASL mechanism; return the SaslAuthenticate response."""
        return self.ask(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))

    def login(self, username: str, password: str) -> Any:
        """Authenticate with PLAIN; return the SaslAuthenticate response, which may be an error."""
        self.handshake("PLAIN")
        return self.authenticate(f"\0{username}\0{password}".encode())

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self.socket.recv(min(size - len(data), _LARGEST_READ))
            except TimeoutError as error:
                raise NoAnswer from error
            except ConnectionError as error:
                raise ConnectionClosed from error
            if not part:
                raise ConnectionClosed
            data += part
        return bytes(data)
