"""A running broker under 100,000 well-formed, unkind requests: nobody else notices.

The daily run sends 5,000 of them, and leaves out the largest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from random import Random
from typing import Final

import pytest

from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.primitives import MOST_ENTRIES
from aclbroker.protocol.wire import FrameReader, decode_response
from tests.conftest import StartBroker
from tests.fuzz.peers import Healthy, all_that_comes, connect
from tests.fuzz.senders import Tally, batches, parties
from tests.fuzz.unkind import LOGIN, NAMES, WIDE, Request, request, requests
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client, request_frame

SEED: Final = 20_261_122
MORE: Final = 5 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 1
REQUESTS: Final = 100_000 * MORE
DAILY_REQUESTS: Final = 2_500
LARGE: Final = 12 * MORE
pytestmark = [pytest.mark.broker_process, pytest.mark.timeout(300 * MORE)]
LOGINS: Final = 4_800
DAILY_LOGINS: Final = 320
STRANGERS: Final = 16
"""Connections at a time of who has not logged in."""

MIB: Final = 1 << 20

MORE_MEMORY_MIB: Final = 16
"""What the broker may have at the end above what it had when it had seen all kinds of requests."""

BYTES_OF_AN_ENTRY: Final = 1_024
"""What the broker may take for an entry while it works: the objects that it is decoded into, asked
for with and answered with, and the ACL that it may become. A request has 100,000.
"""

COPIES: Final = 4
"""How many times the bytes of a request and its answer the broker may take beside that.

They are there as they arrived and as a frame, as texts, in parts and as a whole; a text takes four
bytes for each character if only one of these is outside of the basic multilingual plane.
"""


def most_mib(request: Request, answer: int) -> float:
    """Return how much memory the broker may take while it works for a request."""
    held = COPIES * (len(request.frame) + answer) + BYTES_OF_AN_ENTRY * request.entries
    return held / MIB + 4


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    """A broker that has what requests name, and forgets its ACLs when it ends."""
    return start_broker(
        {
            "aclbroker.store": "memory:",
            "aclbroker.audit.file": "audit.log",
            "aclbroker.catalog.topics": ",".join(f"{name}:1" for name in NAMES),
            "aclbroker.catalog.groups": ",".join(NAMES),
            "connection.failed.authentication.delay.ms": "0",
        }
    )


def assert_unharmed(broker: Broker, tally: Tally) -> None:
    """Check that the broker's log has a line for each request it refused, and for nothing else."""
    assert broker.terminate() == 0
    events = [event["event"] for event in broker.events()]
    assert [event for event in events if event.startswith("request failed")] == []
    assert "Traceback" not in broker.log_text()
    assert events[-1] == "stopped"
    assert broker.told("malformed request")[1] == tally.closed
    assert broker.told("request refused")[1] == tally.refused > 0


def test_unkind_requests_are_answered_and_leave_nothing_behind(
    broker: Broker, every_case: bool
) -> None:
    print("seed", SEED)
    count = REQUESTS if every_case else DAILY_REQUESTS
    with parties(broker.listeners) as everyone:
        tally, memory = everyone.tally, 0.0
        waiting = batches(requests(Random(SEED), count, everyone.ids))
        while tally.sent < count:
            everyone.exchange(waiting)
            everyone.forget()
            if not memory and tally.sent > count // 10:
                memory = broker.resident_mib
        assert broker.resident_mib - memory < MORE_MEMORY_MIB
    assert tally.closed
    assert_unharmed(broker, tally)


def large_requests(chance: Random, ids: list[bytes]) -> Iterator[Request]:
    """Yield requests with as many entries as may be, and one in three with too many."""
    for number, (api, version) in enumerate(chance.sample(WIDE, LARGE)):
        room = MOST_ENTRIES + (MOST_ENTRIES // 100 if number % 3 == 2 else -1)
        yield request(chance, api, version, room, ids)


@pytest.mark.thorough
def test_what_the_largest_requests_take_is_bounded_and_given_back(broker: Broker) -> None:
    print("seed", SEED)
    chance = Random(SEED)
    memory = []
    with parties(broker.listeners) as everyone:
        tally = everyone.tally
        asked = [
            (chance.choice(everyone.senders), each) for each in large_requests(chance, everyone.ids)
        ]
        for _ in range(2):
            for sender, each in asked:
                before = broker.resident_mib
                broker.forget_peak()
                sender.send(iter([[each]]))
                everyone.healthy.works()
                sender.receive()
                assert broker.peak_mib - before < most_mib(each, tally.last), str(each)
            everyone.forget()
            memory.append(broker.resident_mib)
    assert memory[1] - memory[0] < MORE_MEMORY_MIB
    assert_unharmed(broker, tally)


def of_new_names(number: int) -> Request:
    """Return a Metadata of 50,000 names that no request with another number has."""
    names = [MetadataRequestTopic(name=f"new-{number}-{n:050}") for n in range(50_000)]
    message = MetadataRequest(names, allow_auto_topic_creation=False)
    frame = request_frame(ApiKey.METADATA, 9, message, 7)
    return Request(ApiKey.METADATA, 9, 7, frame, len(names), is_refused=False, is_closed=False)


def of_too_many(_: int) -> Request:
    """Return a DescribeGroups of 10 MB, with more names than are read."""
    groups = ["x" * 100] * (MOST_ENTRIES + 1)
    frame = request_frame(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups), 7)
    return Request(ApiKey.DESCRIBE_GROUPS, 5, 7, frame, 0, is_refused=True, is_closed=False)


@pytest.mark.thorough
@pytest.mark.parametrize("made", [of_new_names, of_too_many])
def test_large_requests_over_and_over_take_no_more_than_the_first(
    broker: Broker, made: Callable[[int], Request]
) -> None:
    memory = []
    with parties(broker.listeners) as everyone:
        no_rights = everyone.senders[-1]
        for number in range(10):
            no_rights.send(iter([[made(number)]]))
            everyone.healthy.works()
            no_rights.receive()
            memory.append(broker.resident_mib)
    assert max(memory[5:]) - max(memory[:5]) < MORE_MEMORY_MIB


@pytest.mark.thorough
def test_who_reads_no_answers_on_many_connections_holds_nobody_up(broker: Broker) -> None:
    print("seed", SEED)
    chance = Random(SEED)
    with parties(broker.listeners) as everyone:
        for _ in range(10):
            api, version = chance.choice(WIDE)
            large = [request(chance, api, version, 3_000, everyone.ids) for _ in range(16)]
            waiting = iter([[each] for each in large])
            for sender in everyone.senders:
                sender.send(waiting)
            for _ in range(20):
                everyone.healthy.works()
            for sender in everyone.senders:
                sender.receive()
            everyone.forget()
    assert broker.terminate() == 0


HANDSHAKE: Final = (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
MARKED: Final = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
"""What only who has logged in gets an answer to; of anybody else it ends the connection."""


def test_strangers_get_answers_until_their_connection_ends_with_one_log_line(
    broker: Broker, every_case: bool
) -> None:
    print("seed", SEED)
    logins = LOGINS if every_case else DAILY_LOGINS
    chance = Random(SEED)
    address = broker.listeners["SASL_PLAINTEXT"]
    answered = 0
    with Client(broker.listeners["PLAINTEXT"]) as client:
        healthy = Healthy(client)
        for _ in range(logins // STRANGERS):
            with ExitStack() as stack:
                strangers = [stack.enter_context(connect(address)) for _ in range(STRANGERS)]
                asked = [unkind_login(chance) for _ in strangers]
                for stranger, sent in zip(strangers, asked, strict=True):
                    stranger.send(b"".join(each.frame for each in sent) + MARKED)
                healthy.works()
                for stranger, sent in zip(strangers, asked, strict=True):
                    answered += answers_among(all_that_comes(stranger), sent)
    assert answered > logins
    assert broker.terminate() == 0
    assert broker.told("authentication failed")[1] == logins
    assert "Traceback" not in broker.log_text()


def unkind_login(chance: Random) -> list[Request]:
    """Return requests that may come before a login; half of them begin with a good handshake."""
    sent = [request(chance, *chance.choice(LOGIN), chance.randint(0, 20)) for _ in range(4)]
    if chance.random() < 0.5:
        frame = request_frame(*HANDSHAKE, correlation_id=7)
        sent.insert(0, Request(*HANDSHAKE[:2], 7, frame, 0, is_refused=False, is_closed=False))
    return sent


def answers_among(data: bytes, sent: Sequence[Request]) -> int:
    """Return how many of the requests have answers, which must be first and all that came."""
    frames = FrameReader(MIB)
    frames.feed(data)
    count = 0
    for each in sent:
        if (frame := frames.next_frame()) is None:
            return count
        correlation_id, _ = decode_response(APIS[each.key], each.version, frame)
        assert correlation_id == each.correlation_id, str(each)
        count += 1
    return count
