"""How TLS handshakes share the event loop with everybody else."""

from __future__ import annotations

import asyncio
import ssl
import weakref
from math import inf

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.registry import Registry as ListenersRegistry
from aclbroker.broker.server.tls_transport import TlsServer
from tests.server import test_connection
from tests.server.test_connection import Registry, Wire, small, turns, without_collector
from tests.support.certificates import Authority
from tests.support.tls import client_tls, show

connect = test_connection.connect
"""The fixture of connections in this process."""


class Listener:
    """A port with TLS in this process; the test says whether the turn of the loop is over."""

    def __init__(self, connect) -> None:
        authority = Authority()
        self.is_turn_over = True
        self.client = client_tls(authority)
        self._connect = connect
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        show(self._context, authority.issue())
        self._logins = LoginLog(Metrics(), LimitedLog(asyncio.get_running_loop().time))
        self.connections: list[weakref.ref[TlsServer]] = []

    def __call__(self) -> TlsServer:
        def above(registry: ListenersRegistry):
            return self._connect(registry=registry)[0]

        server = TlsServer(
            self._context, above, Registry(), "SSL", inf, self._logins, lambda: self.is_turn_over
        )
        self.connections.append(weakref.ref(server))
        return server


@pytest.fixture
async def listener(connect):
    return Listener(connect)


@pytest.fixture
async def port(listener: Listener):
    server = await asyncio.get_running_loop().create_server(listener, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_others_are_answered_while_a_handshake_waits_for_a_turn(
    connect, listener: Listener, port: int
) -> None:
    shaking = asyncio.create_task(asyncio.open_connection("127.0.0.1", port, ssl=listener.client))
    other, other_wire = connect()
    other.data_received(small(7))
    assert await turns(other_wire) == [7]
    assert not shaking.done()
    listener.is_turn_over = False
    async with asyncio.timeout(10):
        reader, writer = await shaking
        writer.write(small(8))
        answer = await reader.readexactly(8)
    assert int.from_bytes(answer[4:], "big") == 8
    writer.close()


async def test_who_sends_no_tls_and_ends_is_told_so_when_its_turn_comes(
    listener: Listener, port: int
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    writer.write_eof()
    with capture_logs() as lines:
        await turns(Wire())
        assert lines == []
        listener.is_turn_over = False
        async with asyncio.timeout(10):
            assert await reader.read() == b""
    assert [line["event"] for line in lines] == ["authentication failed"]
    writer.close()


async def test_a_handshake_whose_connection_is_gone_gets_no_turn_and_leaves_nothing(
    listener: Listener,
) -> None:
    with without_collector(), capture_logs() as lines:
        server, wire = listener(), Wire()
        server.connection_made(wire)
        server.data_received(b"GET / HTTP/1.0\r\n\r\n")
        wire.close()
        server.connection_lost(None)
        del server
        await turns(wire)
        assert [each() for each in listener.connections] == [None]
    assert lines == []
