"""The product's blocking client with what tests do over and over: log in, make ACLs and list them.

It also sends what no real client would, as bytes.
"""

from __future__ import annotations

import ssl
from typing import Any

from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol import wire
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from tests.support.scram import ScramClient

TIMEOUT_SECONDS = 20


def request_frame(
    key: int, version: int, message: Any, correlation_id: int = 1, client_id: str | None = "test"
) -> bytes:
    """Return a request as a frame."""
    return wire.request_frame(APIS[key], version, correlation_id, client_id, message)


def topic_read(name: str, principal: str = "User:carol") -> AclCreation:
    """Return the creation that allows a principal to read a topic."""
    return AclCreation(2, name, 3, principal, "*", 3, 3)


ALL_ACLS = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


class Client(BlockingClient):
    """One connection to ``host:port``, through ``tls`` if that is given."""

    def __init__(
        self, address: str, *, tls: ssl.SSLContext | None = None, client_id: str = "test"
    ) -> None:
        host, _, port = address.rpartition(":")
        super().__init__(connect(host.strip("[]"), int(port), TIMEOUT_SECONDS, tls), client_id)

    def authenticate(self, token: bytes, version: int = 2) -> Any:
        """Send a token of the mechanism; returns the SaslAuthenticate response."""
        return super().authenticate(token, version)

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
