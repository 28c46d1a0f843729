"""How one connection shares the event loop with the others."""

from __future__ import annotations

import asyncio
import io
from math import inf

import pytest

from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.principals import DefaultPrincipalBuilder
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.connection import Connection, Limits, OpenConnection
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.wire import FrameReader
from tests.gate.rights import everything, services
from tests.support.client import ALL_ACLS, request_frame


class Wire(asyncio.Transport):
    """A transport whose other side has read everything."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self._frames = FrameReader(1 << 30)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._frames.feed(bytes(data))

    def answered(self) -> list[int]:
        """The correlation ids of the answers since the last call."""
        return [int.from_bytes(frame[:4], "big") for frame in iter(self._frames.next_frame, None)]

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Registry:
    def opened(self, connection: OpenConnection) -> None:
        pass

    def authenticated(self, connection: OpenConnection) -> None:
        pass

    def closed(self, connection: OpenConnection) -> None:
        pass


@pytest.fixture
async def connect():
    """Return connections whose requests are all allowed, each with its wire."""
    audit = Audit(
        load(None, {"aclbroker.audit.level": "off"}), "cluster", configure(stream=io.StringIO())
    )
    parts = services(everything, Catalog({"orders": 1}), audit)
    assert parts.authorizer is not None
    await parts.authorizer.start()
    login = Login("SASL_PLAINTEXT", "PLAINTEXT", DefaultPrincipalBuilder(str, str))
    limits = Limits(1000, 1 << 20, inf, inf, 0)

    def connected() -> tuple[Connection, Wire]:
        wire = Wire()
        logins = LoginLog(Metrics(), asyncio.get_running_loop().time)
        connection = Connection(parts, Registry(), login, "127.0.0.1", limits, logins)
        connection.connection_made(wire)
        return connection, wire

    yield connected
    await parts.authorizer.close()


def small(number: int) -> bytes:
    return request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, number)


def large(number: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"topic-{n}") for n in range(500)]
    return request_frame(ApiKey.METADATA, 12, MetadataRequest(topics), number)


async def turns(wire: Wire) -> list[int]:
    """Let a turn of the loop pass, a hundred times; return what was answered."""
    found: list[int] = []
    for _ in range(100):
        found += wire.answered()
        await asyncio.sleep(0)
    return found


@pytest.mark.parametrize(("request_of", "count"), [(small, 1000), (large, 50)])
async def test_many_requests_at_once_do_not_hold_up_the_other_connections(
    connect, request_of, count: int
) -> None:
    (eager, eager_wire), (other, other_wire) = connect(), connect()
    eager.data_received(b"".join(map(request_of, range(count))))
    first = eager_wire.answered()
    assert 0 < len(first) < count // 4
    other.data_received(small(7))
    assert other_wire.answered() == [7]
    assert first + await turns(eager_wire) == list(range(count))


async def test_requests_that_arrive_in_the_turn_of_others_are_answered_in_their_order(
    connect,
) -> None:
    connection, wire = connect()
    for first in range(0, 1000, 250):
        connection.data_received(b"".join(map(small, range(first, first + 250))))
    assert await turns(wire) == list(range(1000))


async def test_all_that_came_before_the_end_is_answered_before_the_connection_closes(
    connect,
) -> None:
    connection, wire = connect()
    connection.data_received(b"".join(map(small, range(1000))))
    assert connection.eof_received()
    assert not wire.closed
    assert await turns(wire) == list(range(1000))
    assert wire.closed


async def test_a_connection_that_is_lost_is_not_worked_for(connect) -> None:
    connection, wire = connect()
    connection.data_received(b"".join(map(small, range(1000))))
    answered = len(wire.answered())
    connection.connection_lost(None)
    assert await turns(wire) == []
    assert answered < 1000
