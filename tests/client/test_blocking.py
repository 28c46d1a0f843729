"""The blocking client at a peer that answers as a broker would, and as none should."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from aclbroker.broker.client.blocking import BlockingClient, ConnectionClosed, NoAnswer, connect
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.wire import FrameReader, Request, decode_request, response_frame

API = APIS[ApiKey.DESCRIBE_ACLS]
EVERYTHING = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
REFUSED = DescribeAclsResponse(0, 31, "no", [])


class Peer:
    """The broker's end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._frames = FrameReader(1 << 20)

    def request(self) -> Request:
        """Return the next request that the client sent."""
        while (frame := self._frames.next_frame()) is None:
            self._frames.feed(self.socket.recv(65_536))
        return decode_request(frame)

    def answer(self, correlation_id: int, version: int = 3) -> None:
        """Answer a DescribeAcls request."""
        self.socket.sendall(response_frame(API, version, correlation_id, REFUSED))


@pytest.fixture
def connection() -> Iterator[tuple[BlockingClient, Peer]]:
    near, far = socket.socketpair()
    near.settimeout(20)
    with far, BlockingClient(near, "a client") as client:
        yield client, Peer(far)


@pytest.mark.parametrize("version", API.versions)
def test_a_request_is_answered_by_its_message(
    connection: tuple[BlockingClient, Peer], version: int
) -> None:
    client, peer = connection
    peer.answer(1, version)
    assert client.ask(ApiKey.DESCRIBE_ACLS, version, EVERYTHING) == REFUSED
    assert peer.request().header[:4] == (ApiKey.DESCRIBE_ACLS, version, 1, "a client")


def test_requests_have_correlation_ids_of_their_own(
    connection: tuple[BlockingClient, Peer],
) -> None:
    client, peer = connection
    sent = [client.request(ApiKey.DESCRIBE_ACLS, 3, EVERYTHING) for _ in range(3)]
    assert len(set(sent)) == 3
    assert [peer.request().header.correlation_id for _ in sent] == sent
    for correlation_id in sent:
        peer.answer(correlation_id)
        assert client.response(ApiKey.DESCRIBE_ACLS, 3) == (correlation_id, REFUSED)


def test_the_answer_to_another_request_is_not_taken(
    connection: tuple[BlockingClient, Peer],
) -> None:
    client, peer = connection
    peer.answer(7)
    with pytest.raises(ProtocolError, match="request 1 got the answer to request 7"):
        client.ask(ApiKey.DESCRIBE_ACLS, 3, EVERYTHING)


@pytest.mark.parametrize("size", [-1, 64 * 1024 * 1024 + 1, 0x1603_0301])
def test_a_length_that_no_answer_has_is_refused_at_once(
    connection: tuple[BlockingClient, Peer], size: int
) -> None:
    client, peer = connection
    peer.socket.sendall(struct.pack(">i", size))
    with pytest.raises(ProtocolError, match=f"an answer of {size} bytes"):
        client.receive()


@pytest.mark.parametrize("part", [b"", b"\0\0", b"\0\0\0\x08\0\0\0\x01"])
def test_a_broker_that_hangs_up_within_an_answer_has_closed_the_connection(
    connection: tuple[BlockingClient, Peer], part: bytes
) -> None:
    client, peer = connection
    peer.socket.sendall(part)
    peer.socket.close()
    with pytest.raises(ConnectionClosed):
        client.receive()


def test_nothing_can_be_sent_to_a_broker_that_has_hung_up(
    connection: tuple[BlockingClient, Peer],
) -> None:
    client, peer = connection
    peer.socket.close()
    with pytest.raises(ConnectionClosed):
        client.send(b"anything")


def test_a_broker_that_is_silent_does_not_answer_in_time(
    connection: tuple[BlockingClient, Peer],
) -> None:
    client, _ = connection
    client.socket.settimeout(0.05)
    with pytest.raises(NoAnswer):
        client.receive()


def test_a_broker_that_reads_nothing_does_not_answer_in_time(
    connection: tuple[BlockingClient, Peer],
) -> None:
    client, _ = connection
    client.socket.settimeout(0.05)
    with pytest.raises(NoAnswer):
        client.send(bytes(1 << 24))


def test_plain_is_one_handshake_and_one_token(connection: tuple[BlockingClient, Peer]) -> None:
    client, peer = connection
    handshake, authenticate = APIS[ApiKey.SASL_HANDSHAKE], APIS[ApiKey.SASL_AUTHENTICATE]
    peer.socket.sendall(response_frame(handshake, 1, 1, handshake.response()))
    peer.socket.sendall(response_frame(authenticate, 0, 2, authenticate.response(58, "no", b"")))
    answer = client.login("alice", "secret")
    assert (answer.error_code, answer.error_message) == (58, "no")
    assert peer.request().message.mechanism == "PLAIN"
    assert peer.request().message.auth_bytes == b"\0alice\0secret"


def test_where_nobody_listens_there_is_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connect("127.0.0.1", port, 20)
