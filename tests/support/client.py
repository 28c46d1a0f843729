"""A small blocking client over a raw socket, for tests of what no real client would send."""

from __future__ import annotations

import socket
import ssl
import struct
from types import TracebackType
from typing import Any, Self

from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.header import (
    RequestHeader,
    encode_request_header,
    response_header_version,
)
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import framed
from tests.support.scram import ScramClient

TIMEOUT_SECONDS = 20


class Closed(Exception):
    """The broker closed the connection."""


def request_frame(
    key: int, version: int, message: Any, correlation_id: int = 1, client_id: str | None = "test"
) -> bytes:
    """Return a request as a frame."""
    header = RequestHeader(key, version, correlation_id, client_id, (), 0)
    return framed(encode_request_header(APIS[key], header) + encode(message, version))


def topic_read(name: str, principal: str = "User:carol") -> AclCreation:
    """Return the creation that allows a principal to read a topic."""
    return AclCreation(2, name, 3, principal, "*", 3, 3)


ALL_ACLS = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


class Client:
    """One connection to ``host:port``, through ``tls`` if that is given."""

    def __init__(
        self,
        address: str,
        *,
        receive_buffer: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT_SECONDS)
        self.socket.connect((host.strip("[]"), int(port)))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host.strip("[]"))

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
        """End the connection."""
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """Return the next frame's payload; raises `Closed`."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def response(self, key: int, version: int) -> tuple[int, Any]:
        """Return the next response: its correlation id, and the message."""
        payload = self.receive()
        header = 4 + response_header_version(APIS[key], version)
        correlation_id = int.from_bytes(payload[:4], "big", signed=True)
        return correlation_id, decode(APIS[key].response, version, payload[header:])

    def ask(self, key: int, version: int, message: Any) -> Any:
        """Send a request and return the response."""
        self.send(request_frame(key, version, message))
        return self.response(key, version)[1]

    def login(self, user: str, password: str) -> Any:
        """Authenticate with PLAIN; returns the SaslAuthenticate response."""
        self.handshake("PLAIN")
        return self.authenticate(f"\0{user}\0{password}".encode())

    def login_scram(
        self, user: str, password: str, mechanism: str = "SCRAM-SHA-256", extensions: str = ""
    ) -> Any:
        """Authenticate with SCRAM; returns the last SaslAuthenticate response."""
        scram = ScramClient(mechanism, user, password, extensions=extensions)
        self.handshake(mechanism)
        response = self.authenticate(scram.first())
        if not response.error_code:
            response = self.authenticate(scram.final(response.auth_bytes))
            assert response.error_code or scram.is_server(response.auth_bytes)
        return response

    def handshake(self, mechanism: str) -> Any:
        """Say which SASL mechanism comes; returns the SaslHandshake response."""
        return self.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism))

    def authenticate(self, token: bytes) -> Any:
        """Send a token of the mechanism; returns the SaslAuthenticate response."""
        return self.ask(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token))

    def create(self, *creations: AclCreation) -> list[int]:
        """Create ACLs; returns the error code of each."""
        response = self.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(creations))
        return [result.error_code for result in response.results]

    def resource_names(self) -> list[str]:
        """Return the name of each resource pattern that has ACLs, sorted."""
        response = self.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
        assert response.error_code == 0, response
        return sorted(resource.resource_name for resource in response.resources)

    def is_closed(self) -> bool:
        """Tell whether the broker ends the connection without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(size - len(parts))
            except ConnectionError as error:
                raise Closed from error
            if not part:
                raise Closed
            parts += part
        return bytes(parts)
