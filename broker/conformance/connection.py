"""One blocking connection to a Kafka-compatible broker, on which each request waits for its answer.

It speaks PLAINTEXT and SASL_PLAINTEXT with PLAIN, as the suite needs no more.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Final, NamedTuple

from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.header import RequestHeader, encode_request_header, response_header_version
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import framed

CLIENT_ID: Final = "conformance"
_LARGEST_ANSWER: Final = 64 * 1024 * 1024


class ConnectionClosed(Exception):
    """The broker closed the connection instead of answering."""


class NoAnswer(Exception):
    """The broker did not answer in time; the connection is of no more use."""


class LoginError(Exception):
    """The broker did not accept the credentials."""


class Login(NamedTuple):
    """How to reach a broker as one user; without a user name by PLAINTEXT, else with PLAIN."""

    host: str
    port: int
    username: str | None = None
    password: str = ""


class Connection:
    """A connection that is logged in.

    `timeout` is in seconds, for connecting and for each answer. Raises `OSError` if the broker
    cannot be reached and `LoginError` if it does not accept the user.
    """

    def __init__(self, login: Login, timeout: float) -> None:
        self._socket = socket.create_connection((login.host, login.port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        if login.username is not None:
            self._log_in(login.username, login.password)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, key: ApiKey, version: int, message: Any) -> None:
        """Send a request; raises `ConnectionClosed`."""
        self._correlation_id += 1
        header = RequestHeader(key, version, self._correlation_id, CLIENT_ID, (), 0)
        frame = framed(encode_request_header(APIS[key], header) + encode(message, version))
        try:
            self._socket.sendall(frame)
        except TimeoutError as error:
            raise NoAnswer from error
        except OSError as error:
            raise ConnectionClosed from error

    def receive(self, key: ApiKey, version: int) -> Any:
        """Return the answer to the last request.

        Raises `ConnectionClosed`, `NoAnswer`, and `ProtocolError` for an answer that is none.
        """
        (size,) = struct.unpack(">i", self._read(4))
        if not 0 <= size <= _LARGEST_ANSWER:
            raise ConnectionClosed
        payload = self._read(size)
        body = 4 + response_header_version(APIS[key], version)
        return decode(APIS[key].response, version, payload[body:])

    def ask(self, key: ApiKey, version: int, message: Any) -> Any:
        """Send a request and return its answer; raises what `send` and `receive` raise."""
        self.send(key, version, message)
        return self.receive(key, version)

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self._socket.recv(size - len(data))
            except TimeoutError as error:
                raise NoAnswer from error
            except OSError as error:
                raise ConnectionClosed from error
            if not part:
                raise ConnectionClosed
            data += part
        return bytes(data)

    def _log_in(self, username: str, password: str) -> None:
        try:
            self.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
            token = f"\0{username}\0{password}".encode()
            answer = self.ask(ApiKey.SASL_AUTHENTICATE, 0, SaslAuthenticateRequest(token))
        except (ConnectionClosed, NoAnswer) as error:
            raise LoginError(f"{username} cannot log in: no answer") from error
        if answer.error_code:
            raise LoginError(f"{username} cannot log in: {answer.error_message}")
