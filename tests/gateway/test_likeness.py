"""Produce requests that are like one before pass without a scan, if a scan would find the same."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from aclbroker.acl.authorizer import Session
from aclbroker.broker.backends.upstream.likeness import Likeness, likeness_of
from aclbroker.broker.backends.upstream.relayed import (
    REQUEST_HEAD,
    Asked,
    Form,
    Forms,
    Route,
    relay_produce,
)
from aclbroker.broker.config import load
from aclbroker.broker.gate.whole import WholeRights
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.protocol.compile import decode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.wire import response_frame
from tests.gateway.random_frames import FIRST_BY_ID, mutated, produce_answer
from tests.memory.records import batch
from tests.support.client import request_frame
from tests.support.tables import examples

NAME, ID = "orders", b"\7" * 16
SESSION = Session(("User:alice",), "127.0.0.1", "PLAINTEXT")
RIGHTS = WholeRights(None, Audit(load(), "cluster", configure()), ())
BACKEND: Any = SimpleNamespace(directory=SimpleNamespace(names={ID: NAME}))
BATCHES = [batch(b"x" * size) for size in (1, 3, 50, 64, 120, 5000, 20_000)]


def request(version: int, records: bytes, number: int = 1) -> bytes:
    """Return the frame of a Produce of one batch."""
    data = [p.PartitionProduceData(2, records)]
    by_id = version >= FIRST_BY_ID
    topic = (
        p.TopicProduceData(topic_id=ID, partition_data=data)
        if by_id
        else p.TopicProduceData(NAME, partition_data=data)
    )
    return request_frame(ApiKey.PRODUCE, version, p.ProduceRequest(None, 1, 1000, [topic]), number)


def form(version: int) -> Form:
    made = Forms({ApiKey.PRODUCE: APIS[ApiKey.PRODUCE].versions})[version]
    assert made is not None
    return made


def scanned(version: int, frame: bytes) -> Any:
    """Return what a scan finds in a request, None if it must be decoded."""
    *_, size = REQUEST_HEAD.unpack_from(frame)
    body = REQUEST_HEAD.size + max(size, 0)
    if form(version).is_flexible:
        if frame[body : body + 1] != b"\0":
            return None
        body += 1
    return form(version).request(frame, body, len(frame))


def likeness(version: int) -> Likeness:
    """Return the form of requests like one of a version."""
    frame = request(version, BATCHES[2])
    route = Route(BACKEND, cast(Any, None))
    asked = Asked(route, RIGHTS, SESSION, form(version), frame[: REQUEST_HEAD.size + 4])
    found = scanned(version, frame)
    slot = relay_produce(asked, 1, *found)
    assert slot is not None
    made = likeness_of(slot, frame, 0, found[4], len(frame))
    assert made is not None
    return made


@pytest.mark.parametrize("version", range(3, 14))
def test_requests_with_other_records_are_alike(version: int):
    alike = likeness(version)
    for number, records in enumerate(BATCHES):
        frame = request(version, records, number)
        slot = alike.relayed(RIGHTS, SESSION, frame, 0, len(frame))
        assert slot is not None
        assert slot.correlation_id == number
        among = b"\1\2" + frame + b"\3"
        assert alike.relayed(RIGHTS, SESSION, bytearray(among), 2, 2 + len(frame)) is not None
    others = Session(("User:alice",), "127.0.0.1", "PLAINTEXT")
    assert alike.relayed(RIGHTS, others, frame, 0, len(frame)) is None


def test_a_request_that_is_alike_has_the_same_topic_and_one_batch():
    random, count = Random(11), 0
    forms = {version: likeness(version) for version in range(3, 14)}
    for _ in range(examples(20_000)):
        version = random.randint(3, 13)
        frame = mutated(random, request(version, random.choice(BATCHES[:5])))
        if forms[version].relayed(RIGHTS, SESSION, frame, 0, len(frame)) is None:
            continue
        count += 1
        found = scanned(version, frame)
        assert found is not None, frame.hex()
        key = ID if version >= FIRST_BY_ID else NAME.encode()
        assert found[1:4] == (1, [(key, [2])], False)
    assert count


@pytest.mark.parametrize("version", range(3, 14))
def test_a_produce_to_a_reserved_topic_is_not_relayed(version: int):
    reserved = WholeRights(None, Audit(load(), "cluster", configure()), {NAME})
    frame = request(version, BATCHES[0])
    route = Route(BACKEND, cast(Any, None))
    asked = Asked(route, reserved, SESSION, form(version), frame[: REQUEST_HEAD.size + 4])
    assert relay_produce(asked, 1, *scanned(version, frame)) is None


@pytest.mark.parametrize("version", range(3, 14))
def test_a_plain_answer_is_alike(version: int):
    alike = likeness(version)
    answer = p.ProduceResponse(
        [_answered(version, p.PartitionProduceResponse(2, 6, 1 << 40, 7, 9))]
    )
    frame = response_frame(APIS[ApiKey.PRODUCE], version, 1, answer)
    assert alike.is_answer(frame, 4, len(frame))


def _answered(version: int, partition: p.PartitionProduceResponse) -> p.TopicProduceResponse:
    if version >= FIRST_BY_ID:
        return p.TopicProduceResponse(topic_id=ID, partition_responses=[partition])
    return p.TopicProduceResponse(NAME, partition_responses=[partition])


def test_an_answer_that_is_alike_has_the_topic_alone():
    random, count = Random(12), 0
    forms = {version: likeness(version) for version in range(3, 14)}
    for _ in range(examples(20_000)):
        version = random.randint(3, 13)
        partition = p.PartitionProduceResponse(2, random.choice((0, 6)), random.getrandbits(60))
        answer = p.ProduceResponse([_answered(version, partition)])
        if random.random() < 0.3:
            answer = produce_answer(random, version)
        frame = mutated(random, response_frame(APIS[ApiKey.PRODUCE], version, 1, answer))
        if not forms[version].is_answer(frame, 4, len(frame)):
            continue
        count += 1
        head = 8 + (version >= 9)
        [topic] = decode(p.ProduceResponse, version, frame[head:]).responses
        [only] = topic.partition_responses
        named = topic.topic_id if version >= FIRST_BY_ID else topic.name
        assert (named, only.index) == (ID if version >= FIRST_BY_ID else NAME, 2)
        assert (only.error_message, list(only.record_errors)) == (None, [])
    assert count
