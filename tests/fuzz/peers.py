"""The two sides of a broker under test: who sends it damaged frames, and who just does its work."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from aclbroker.protocol.compile import decoder
from aclbroker.protocol.header import decode_response_header
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.wire import Request
from tests.fuzz.batches import Batch, End
from tests.fuzz.requests import NAMES, RIGHTS
from tests.support.client import Client, request_frame

ACLS = [AclCreation(2, "healthy", 3, "User:dave", "*", operation, 3) for operation in (3, 4, 8)]
ASK_FOR_THEM = DescribeAclsRequest(2, "healthy", 3, "User:dave", None, 1, 1)
PROTECTED = {None, *(creation.principal for creation in ACLS + RIGHTS)}

Asked = tuple[int, int, object]
"""Key, version and message of a request."""


class Healthy:
    """A connection that does its work and gets the right answers, whatever others do."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._create()

    def _create(self) -> None:
        assert self._client.create(*ACLS, *RIGHTS) == [0] * (len(ACLS) + len(RIGHTS))

    def begin_anew(self) -> None:
        """Delete all ACLs there are, and create its own again."""
        every = DeleteAclsFilter(1, None, 1, None, None, 1, 1)
        [result] = self._client.ask(
            ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([every])
        ).filter_results
        assert result.error_code == 0
        self._create()

    def works(self) -> None:
        """Check that the ACLs it made are there, and no others."""
        [resource] = self._client.ask(ApiKey.DESCRIBE_ACLS, 3, ASK_FOR_THEM).resources
        found = {(acl.principal, acl.operation, acl.permission_type) for acl in resource.acls}
        assert found == {(each.principal, each.operation, 3) for each in ACLS}

    def topic_id(self) -> bytes:
        """Return the id of the first of the topics that the requests name."""
        request = MetadataRequest([MetadataRequestTopic(name=NAMES[0])])
        [topic] = self._client.ask(ApiKey.METADATA, 12, request).topics
        return bytes(topic.topic_id)


def harmless(request: Request) -> bool:
    """Tell whether a request is answered without a wait, and leaves alone what others rely on."""
    match request.header.api_key:
        case ApiKey.PRODUCE:
            return bool(request.message.acks)
        case ApiKey.FETCH:
            return bool(request.message.max_wait_ms <= 0)
        case ApiKey.DELETE_ACLS:
            return not any(each.principal_filter in PROTECTED for each in request.message.filters)
    return True


def login(token: bytes) -> list[Asked]:
    """Return the requests of a login with PLAIN."""
    return [
        (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")),
        (ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)),
    ]


class Damaging:
    """Connections to ``address`` that begin with the same requests and go on with batches."""

    def __init__(self, address: str, begin: Sequence[Asked]) -> None:
        self._address = address
        self._begin = begin

    def exchange(self, batches: Sequence[Batch], meanwhile: Callable[[], None]) -> None:
        """Send each batch over a connection of its own, do something else, check the answers."""
        beginning = b"".join(request_frame(*asked) for asked in self._begin)
        with ExitStack() as stack:
            clients = [stack.enter_context(connect(self._address)) for _ in batches]
            for client, batch in zip(clients, batches, strict=True):
                client.send(beginning + batch.data)
            meanwhile()
            for client, batch in zip(clients, batches, strict=True):
                for key, version, _ in self._begin:
                    assert client.response(key, version)[1].error_code == 0
                assert_answered(client, batch)


def connect(address: str) -> Client:
    """Connect so that a close is at once and leaves nothing: tens of thousands follow."""
    client = Client(address)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return client


def assert_answered(client: Client, batch: Batch) -> None:
    """Check that each request of a batch has its answer, in order, and what became of the rest."""
    request = None
    try:
        for request in batch.requests:
            assert_answers(client.receive(), request)
        assert batch.end is not End.MALFORMED or client.is_closed()
    except (AssertionError, OSError, ProtocolError) as error:
        raise AssertionError(f"at {request}, of all these bytes: {batch.data.hex()}") from error


def assert_answers(response: bytes, request: Request) -> None:
    """Check that a response is one to the request, and whole."""
    header = request.header
    version = header.api_version if request.message is not None else 0
    correlation_id, begin = decode_response_header(request.api, version, response)
    assert correlation_id == header.correlation_id
    _, end = decoder(request.api.response, version)(response, begin)
    assert end == len(response)


def all_that_comes(client: Client) -> bytes:
    """End our side of a connection and return what the broker sends until it ends its own."""
    parts = []
    # If it closed before it had read everything, there is no connection to end, but what it sent
    # before can still be read.
    with suppress(OSError):
        client.socket.shutdown(socket.SHUT_WR)
    with suppress(ConnectionError):
        while part := client.socket.recv(65_536):
            parts.append(part)
    return b"".join(parts)
