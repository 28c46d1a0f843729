"""Damaged frames (110,000, or 2,750 in the daily run) disturb no other connection of a broker."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from random import Random

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import FrameReader, decode_request, decode_response, framed
from tests.conftest import StartBroker
from tests.fuzz.batches import LIMIT, Batch, End, damaged_batch, damaged_frame
from tests.fuzz.peers import (
    Asked,
    Damaging,
    Healthy,
    all_that_comes,
    connect,
    harmless,
    login,
)
from tests.fuzz.requests import NAMES, request_payloads
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client, request_frame

pytestmark = pytest.mark.broker_process

CONNECTIONS = 16
"""Open at a time."""

DAILY_PART = 40
"""Daily, one frame in 20 is sent."""

MORE_MEMORY_MIB = 16
"""What the broker may have at the end above what it had when every kind of request was answered."""

ALICE = login(f"\0alice\0{PASSWORDS['alice']}".encode())
NOBODY = login(b"\0nobody\0no such password")


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    """A broker that has the resources named in the requests, and says when it fails at one."""
    return start_broker(
        {
            "aclbroker.store": "memory:",
            "aclbroker.catalog.topics": ",".join(f"{name}:1" for name in NAMES),
            "aclbroker.catalog.groups": ",".join(NAMES),
            "socket.request.max.bytes": str(LIMIT),
            "connection.failed.authentication.delay.ms": "0",
        }
    )


def assert_unharmed(broker: Broker, memory_mib: float) -> int:
    """Check the broker's log and memory, and that it stops as it should.

    Returns how many connections it closed for what was sent on them.
    """
    assert broker.resident_mib - memory_mib < MORE_MEMORY_MIB
    assert broker.terminate() == 0
    events = [event["event"] for event in broker.events()]
    assert [event for event in events if event.startswith("request failed")] == []
    assert events[-1] == "stopped"
    return broker.told("malformed request")[1]


@pytest.mark.parametrize(
    ("listener", "begin", "frames"),
    [
        pytest.param("PLAINTEXT", [], 70_000, id="of a super user"),
        pytest.param("SASL_PLAINTEXT", ALICE, 40_000, id="of a user with some rights"),
    ],
)
def test_damaged_frames_are_answered_or_end_their_own_connection_with_one_log_line(
    broker: Broker, listener: str, begin: Sequence[Asked], frames: int, every_case: bool
) -> None:
    chance = Random(frames)
    frames = frames if every_case else frames // DAILY_PART
    damaging = Damaging(broker.listeners[listener], begin)
    sent = malformed = 0
    with Client(broker.listeners["PLAINTEXT"]) as client:
        healthy = Healthy(client)
        payloads = request_payloads(healthy.topic_id())
        for payload in payloads:
            whole = Batch(framed(payload), 1, [decode_request(payload)], End.OPEN)
            damaging.exchange([whole], healthy.works)
        memory = broker.resident_mib
        while sent < frames:
            batches = [damaged_batch(chance, payloads, harmless) for _ in range(CONNECTIONS)]
            damaging.exchange(batches, healthy.works)
            sent += sum(batch.frames for batch in batches)
            malformed += sum(batch.end is End.MALFORMED for batch in batches)
    assert assert_unharmed(broker, memory) == malformed


MARKER = 0x1234_5678
"""The correlation id of a request that only a session that has logged in gets answered."""

MARKED = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, MARKER)


def before_login(chance: Random, payloads: Sequence[bytes]) -> bytes:
    """Return a login of nobody, damaged, up to what must not be answered."""
    parts = []
    if chance.random() < 0.5:
        parts.append(request_frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1.0")))
    if chance.random() < 0.7:
        handshake = SaslHandshakeRequest("PLAIN")
        parts.append(request_frame(ApiKey.SASL_HANDSHAKE, chance.randrange(2), handshake))
    parts.append(damaged_frame(chance, payloads))
    return b"".join([*parts, MARKED])


def is_let_in(data: bytes) -> bool:
    """Tell whether the frames that came on a connection answer `MARKED`.

    That it stood where SaslAuthenticate was expected (error 34) is no answer to it, and is
    what Kafka says there, too.
    """
    frames = FrameReader(LIMIT)
    frames.feed(data)
    while (frame := frames.next_frame()) is not None:
        if frame[:4] == MARKER.to_bytes(4, "big"):
            _, answer = decode_response(APIS[ApiKey.DESCRIBE_ACLS], 3, frame)
            return bool(answer.error_code != ErrorCode.ILLEGAL_SASL_STATE)
    return False


def login_payloads() -> list[bytes]:
    """Return the requests of a login that fails, and tokens as a handshake of version 0 wants."""
    return [
        request_frame(key, version, message, 1, "fuzz")[4:]
        for key, _, message in NOBODY
        for version in APIS[key].versions
    ] + [b"\0nobody\0no such password", b"someone\0nobody\0no such password"]


def test_damaged_logins_let_nobody_in(broker: Broker, every_case: bool) -> None:
    chance = Random(20_000)
    logins = 20_000 if every_case else 20_000 // DAILY_PART
    address = broker.listeners["SASL_PLAINTEXT"]
    with Client(broker.listeners["PLAINTEXT"]) as client:
        healthy = Healthy(client)
        kinds = (login_payloads(), login_payloads(), request_payloads(healthy.topic_id()))
        with connect(address) as alice:
            alice.send(b"".join(request_frame(*asked) for asked in ALICE) + MARKED)
            assert is_let_in(all_that_comes(alice))
        memory = broker.resident_mib
        for _ in range(logins // CONNECTIONS):
            with ExitStack() as stack:
                intruders = [stack.enter_context(connect(address)) for _ in range(CONNECTIONS)]
                for intruder in intruders:
                    intruder.send(before_login(chance, chance.choice(kinds)))
                healthy.works()
                assert not any(is_let_in(all_that_comes(intruder)) for intruder in intruders)
    assert_unharmed(broker, memory)
    reasons = [event.get("reason", "") for event in broker.events()]
    assert any(reason.startswith("malformed request") for reason in reasons)
