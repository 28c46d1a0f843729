"""How one connection shares the event loop with the others."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import io
import ssl
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.auth.login import Login
from aclbroker.broker.auth.principals import DefaultPrincipalBuilder
from aclbroker.broker.auth.sasl.plain import PlainUsers
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.login_log import LoginLog
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.stalls import StallMonitor
from aclbroker.broker.server.accounts import Accounts
from aclbroker.broker.server.connection import Connection, Limits
from aclbroker.broker.server.registry import OpenConnection
from aclbroker.broker.server.registry import Registry as ListenersRegistry
from aclbroker.broker.server.tls_transport import TlsServer
from aclbroker.broker.turns import Turns
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import FrameReader
from tests.acl.examples import allow
from tests.gate.rights import context, everything, services
from tests.support.client import ALL_ACLS, request_frame

LIMIT = 1 << 20
PASSWORD = "p" * 400_000
BUILDER = DefaultPrincipalBuilder(str, str)
KNOWN = Login("SASL_PLAINTEXT", "PLAINTEXT", BUILDER)
STRANGE = Login("SASL_PLAINTEXT", "SASL_PLAINTEXT", BUILDER, {"PLAIN": PlainUsers({"a": PASSWORD})})


class Wire(asyncio.Transport):
    """A transport whose other side has read everything."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.reading = True
        self._frames = FrameReader(1 << 30)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._frames.feed(bytes(data))

    def answered(self) -> list[int]:
        """The correlation ids of the answers since the last call."""
        return [int.from_bytes(frame[:4], "big") for frame in iter(self._frames.next_frame, None)]

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def write_eof(self) -> None:
        """Take note of nothing."""

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


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
    limits = Limits(LIMIT, 1 << 22, inf, inf, 0)
    accounts = Accounts(LIMIT)
    parts = dataclasses.replace(parts, turns=Turns(room=accounts.room))

    def connected(
        host: str = "127.0.0.1", login: Login = KNOWN, registry: ListenersRegistry | None = None
    ) -> tuple[Connection, Wire]:
        wire = Wire()
        logins = LoginLog(Metrics(), LimitedLog(asyncio.get_running_loop().time))
        connection = Connection(
            parts,
            registry or Registry(),
            login,
            host,
            limits,
            logins,
            accounts,
            StallMonitor(Metrics(), logins.lines),
        )
        # Above TLS it begins after the handshake.
        if registry is None:
            connection.connection_made(wire)
        return connection, wire

    connected.accounts = accounts  # type: ignore[attr-defined]
    connected.parts = parts  # type: ignore[attr-defined]
    # The first requests of a kind wait for their code to be compiled.
    first, first_wire = connected()
    first.data_received(small(0) + large(0))
    assert await turns(first_wire) == [0, 0]
    yield connected
    assert parts.authorizer is not None
    await parts.authorizer.close()


def small(number: int) -> bytes:
    return request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, number)


def large(number: int) -> bytes:
    topics = [MetadataRequestTopic(name=f"topic-{n}") for n in range(500)]
    return request_frame(ApiKey.METADATA, 12, MetadataRequest(topics), number)


async def turns(wire: Wire) -> list[int]:
    """Let a turn of the loop pass, a thousand times; return what was answered."""
    found: list[int] = []
    for _ in range(1000):
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
    # A large request may need more than one turn.
    assert len(first) < count // 4
    other.data_received(small(7))
    assert other_wire.answered() == [7]
    assert first + await turns(eager_wire) == list(range(count))


async def test_a_turn_is_over_when_its_time_is_however_few_requests_were_answered(
    connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turns, "is_over", lambda _: True)
    (eager, eager_wire), (other, other_wire) = connect(), connect()
    eager.data_received(b"".join(map(small, range(50))))
    other.data_received(small(7))
    assert (eager_wire.answered(), other_wire.answered()) == ([0], [7])
    assert await turns(eager_wire) == list(range(1, 50))


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


async def test_that_a_client_is_gone_is_told_when_nothing_is_done_for_it_any_more(
    connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(Services, "disconnected", lambda _, session: told.append(session))
    monkeypatch.setattr(Turns, "is_over", lambda _: True)
    (busy, busy_wire), (idle, _) = connect(), connect()
    busy.data_received(large(1))
    busy.connection_lost(None)
    assert told == []
    idle.connection_lost(None)
    assert len(told) == 1
    assert await turns(busy_wire) == []
    assert len(told) == 2
    assert None not in told


def listing(number: int) -> bytes:
    """A request whose answer is a few hundred kilobytes long: more than half of `LIMIT`."""
    topics = [MetadataRequestTopic(name=f"{n:0249}") for n in range(2500)]
    return request_frame(ApiKey.METADATA, 12, MetadataRequest(topics), number)


async def test_a_large_answer_is_written_as_it_is_read_and_the_next_request_waits(connect) -> None:
    connection, wire = connect()
    connection.data_received(listing(1) + small(2))
    connection.pause_writing()
    assert await turns(wire) == []
    connection.resume_writing()
    assert await turns(wire) == [1, 2]


async def test_who_does_not_read_large_answers_gets_no_more_on_other_connections(connect) -> None:
    unread = [connect() for _ in range(2)]
    other, other_wire = connect()
    for connection, wire in unread:
        connection.data_received(listing(1))
        connection.pause_writing()
        assert await turns(wire) == []
    other.data_received(small(7))
    assert await turns(other_wire) == []
    unread[0][0].resume_writing()
    assert await turns(unread[0][1]) == [1]
    assert other_wire.answered() == [7]


async def test_answers_that_are_made_when_too_much_is_unread_are_not_made_before_it_is_read(
    connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the requests, each of a few bytes, have come before the first is answered."""
    authorizer = connect.parts.authorizer
    acls = [allow(name=f"{number:0100}") for number in range(5000)]
    await authorizer.create_acls(context(ApiKey.CREATE_ACLS, 3), acls)
    monkeypatch.setattr(connect.parts.turns, "is_over", lambda: True)
    unread = [connect() for _ in range(12)]
    for number, (connection, _) in enumerate(unread):
        connection.data_received(small(number))
        connection.pause_writing()
    account = connect.accounts.of("User:ANONYMOUS")
    for _, wire in unread:
        assert await turns(wire) == []
    assert LIMIT < account.unread < 2 * LIMIT
    for number, (connection, wire) in enumerate(unread):
        connection.resume_writing()
        answered = [each for _ in range(10) for each in await turns(wire)]
        assert answered == [number]
    assert account.held == 0


async def test_a_request_that_is_larger_than_all_that_may_be_held_is_answered(connect) -> None:
    topics = [MetadataRequestTopic(name=f"{n:0249}") for n in range(5000)]
    larger = request_frame(ApiKey.METADATA, 12, MetadataRequest(topics), 1)
    assert len(larger) > LIMIT
    (connection, wire), (other, other_wire) = connect(), connect()
    connection.data_received(larger[:-1])
    other.data_received(small(7))
    assert await turns(other_wire) == []
    connection.data_received(larger[-1:])
    assert await turns(wire) == [1]
    assert await turns(other_wire) == [7]


async def test_who_goes_away_holds_nothing(connect) -> None:
    unread = [connect() for _ in range(2)]
    for connection, wire in unread:
        connection.data_received(listing(1))
        connection.pause_writing()
        assert await turns(wire) == []
    other, other_wire = connect()
    other.data_received(small(7))
    unread[0][0].connection_lost(None)
    assert await turns(other_wire) == [7]


async def test_large_requests_that_arrive_at_once_are_read_one_after_the_other(connect) -> None:
    request = listing(1)
    assert LIMIT / 2 < len(request) < LIMIT
    (first, first_wire), (second, second_wire) = connect(), connect()
    first.data_received(request[:-1])
    second.data_received(request[:100])
    assert (first_wire.reading, second_wire.reading) == (True, False)
    first.data_received(request[-1:])
    assert await turns(first_wire) == [1]
    assert second_wire.reading
    second.data_received(request[100:])
    assert await turns(second_wire) == [1]


async def test_what_goes_away_in_the_midst_of_a_large_request_holds_nothing_of_it(connect) -> None:
    (gone, gone_wire), (other, other_wire) = connect(), connect()
    request = listing(2)
    gone.data_received(listing(1) + request[:100])
    gone.connection_lost(None)
    await turns(gone_wire)
    # There would be no room for it if half of the limit were held.
    other.data_received(request[:100])
    assert other_wire.reading
    other.data_received(request[100:])
    assert await turns(other_wire) == [2]


async def test_a_long_request_is_answered_though_its_client_sends_no_more(connect) -> None:
    connection, wire = connect()
    connection.data_received(listing(1))
    assert connection.eof_received()
    assert await turns(wire) == [1]
    assert wire.closed


async def test_strangers_who_announce_large_tokens_and_fall_silent_let_a_login_pass(
    connect,
) -> None:
    announced = (len(PASSWORD) + 100).to_bytes(4)
    silent = [connect("192.0.2.1", STRANGE) for _ in range(2)]
    with capture_logs() as lines:
        for connection, wire in silent:
            connection.data_received(announced)
            assert wire.reading
        login, login_wire = connect("192.0.2.2", STRANGE)
        handshake = request_frame(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"), 1)
        token = SaslAuthenticateRequest(f"\0a\0{PASSWORD}".encode())
        whole = request_frame(ApiKey.SASL_AUTHENTICATE, 2, token, 2)
        login.data_received(handshake + whole[:100])
        assert login_wire.reading
        login.data_received(whole[100:] + small(3))
        assert await turns(login_wire) == [1, 2, 3]
    assert [wire.closed for _, wire in silent] == [True, False]
    [line] = lines
    assert line["event"] == "authentication failed"
    assert line["reason"].startswith("made room: others wait")


def broken(number: int) -> bytes:
    """A long request that ends within its last topic."""
    whole = listing(number)[4:-1]
    return len(whole).to_bytes(4) + whole


@contextmanager
def without_collector() -> Iterator[None]:
    """Have nothing freed but what nobody refers to any more."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        small(1),
        small(1)[:-1],
        large(1),
        listing(1),
        listing(1)[:-1],
        broken(1),
        b"\0\0\0\4\x7f\xff\x7f\xff",
    ],
    ids=["nothing", "small", "half", "large", "long", "half long", "broken", "unknown"],
)
@pytest.mark.parametrize("login", [KNOWN, STRANGE], ids=["known", "strange"])
async def test_what_is_closed_leaves_nothing_to_the_garbage_collector(
    connect, sent: bytes, login: Login
) -> None:
    with without_collector(), capture_logs():
        connection, wire = connect("192.0.2.1", login)
        gone = weakref.ref(connection)
        connection.data_received(sent)
        await turns(wire)
        connection.connection_lost(None)
        del connection
        await turns(wire)
        assert gone() is None


async def test_a_connection_whose_handshake_fails_leaves_nothing_to_the_garbage_collector(
    connect,
) -> None:
    def above(registry: ListenersRegistry) -> Connection:
        connection: Connection = connect(registry=registry)[0]
        gone.append(weakref.ref(connection))
        return connection

    gone: list[weakref.ref[Connection]] = []
    logins = LoginLog(Metrics(), LimitedLog(asyncio.get_running_loop().time))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with without_collector(), capture_logs():
        wire = Wire()
        server = TlsServer(context, above, Registry(), "SSL", inf, logins, Turns().is_over)
        server.connection_made(wire)
        server.data_received(b"GET / HTTP/1.0\r\n\r\n")
        server.connection_lost(None)
        del server
        await turns(wire)
        assert [each() for each in gone] == [None]


async def test_a_long_request_that_is_malformed_near_its_end_is_told_in_one_line(
    connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Turns, "is_over", lambda _: True)
    connection, wire = connect()
    with capture_logs() as lines:
        connection.data_received(broken(1))
        assert await turns(wire) == []
    assert wire.closed
    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("malformed request", "warning")
    ]
