"""Random requests and answers of Produce and Fetch, and what a scan must find in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

from aclbroker.broker.backends.upstream.scans import (
    FETCH_REQUEST,
    FETCH_RESPONSE,
    PRODUCE_REQUEST,
    PRODUCE_RESPONSE,
)
from aclbroker.broker.gate.conditions import has_transactional_records
from aclbroker.protocol.compile import decoder, encode
from aclbroker.protocol.compile.scanner import Plan, Scan, scanner
from aclbroker.protocol.messages import fetch, produce
from aclbroker.protocol.primitives import ProtocolError
from tests.memory.records import batch

FIRST_BY_ID = 13
NAMES = ("orders", "t", "payments.eu", "x" * 140, "été", "")
IDS = (b"\1" * 16, b"\2" * 16, bytes(range(16)))
BATCHES = (
    batch(b"one"),
    batch(b"x" * 200, b"y"),
    batch(b"in a transaction", producer=(7, 0, 0), transactional=True),
    batch(b"first") + batch(b"in a transaction", producer=(7, 0, 0), transactional=True),
    batch(b"small")[:-3],
    b"",
    None,
)

Expected = tuple[Any, ...]


def _topic(random: Random, version: int) -> dict[str, Any]:
    return {"topic_id": random.choice(IDS)} if version >= FIRST_BY_ID else {}


def _some(random: Random, made: Callable[[], Any], most: int = 3) -> list[Any]:
    return [made() for _ in range(random.randint(0, most))]


def _tagged(random: Random, message: Any) -> Any:
    """Return a message, which sometimes has an undeclared tagged field."""
    if random.random() < 0.02:
        message.unknown_tags = ((40, b"new"),)
    return message


def produce_request(random: Random, version: int) -> Any:
    """Return a random Produce."""

    def partition() -> Any:
        records = random.choices(BATCHES, (20, 20, 5, 1, 1, 1, 1))[0]
        return _tagged(random, produce.PartitionProduceData(random.randint(0, 9), records))

    def topic() -> Any:
        name = "" if version >= FIRST_BY_ID else random.choice(NAMES)
        return produce.TopicProduceData(
            name, partition_data=_some(random, partition), **_topic(random, version)
        )

    transactional_id = random.choice((None, "tx", "")) if version >= 3 else None
    topics = _some(random, topic)
    return _tagged(
        random,
        produce.ProduceRequest(transactional_id, random.choice((-1, 0, 1)), 1000, topics),
    )


def produce_answer(random: Random, version: int) -> Any:
    """Return a random answer to a Produce."""

    def partition() -> Any:
        errors = [produce.BatchIndexAndErrorMessage(1, random.choice((None, "bad")))]
        answer = produce.PartitionProduceResponse(
            random.randint(0, 9),
            random.choice((0, 0, 3, 6)),
            random.randint(0, 1 << 40),
            record_errors=errors if version >= 8 and random.random() < 0.1 else [],
            error_message=random.choice((None, "no", "wrong")) if version >= 8 else None,
        )
        return _tagged(random, answer)

    def topic() -> Any:
        name = "" if version >= FIRST_BY_ID else random.choice(NAMES)
        return produce.TopicProduceResponse(
            name, partition_responses=_some(random, partition), **_topic(random, version)
        )

    endpoints = [produce.NodeEndpoint(1, "kafka-1", 9092)]
    is_moved = version >= 10 and random.random() < 0.05
    return produce.ProduceResponse(
        _some(random, topic), node_endpoints=endpoints if is_moved else ()
    )


def fetch_request(random: Random, version: int) -> Any:
    """Return a random Fetch."""

    def partition() -> Any:
        asked = fetch.FetchPartition(
            random.randint(0, 9),
            fetch_offset=random.randint(0, 1 << 40),
            partition_max_bytes=1 << 20,
        )
        return _tagged(random, asked)

    def topic(cls: Any, **values: Any) -> Any:
        name = "" if version >= FIRST_BY_ID else random.choice(NAMES)
        return cls(name, **values, **_topic(random, version))

    def forgotten() -> Any:
        numbers = _some(random, lambda: random.randint(0, 9))
        return topic(fetch.ForgottenTopic, partitions=numbers)

    asked = fetch.FetchRequest(
        replica_id=random.choice((-1, -1, -1, 2)) if version < 15 else -1,
        session_id=random.choice((0, 77)) if version >= 7 else 0,
        session_epoch=random.choice((-1, 0, 5)) if version >= 7 else -1,
        topics=_some(random, lambda: topic(fetch.FetchTopic, partitions=_some(random, partition))),
        forgotten_topics_data=_some(random, forgotten, 1) if version >= 7 else [],
        rack_id=random.choice(("", "rack-1", "gestell-ö")) if version >= 11 else "",
    )
    return _tagged(random, asked)


def fetch_answer(random: Random, version: int) -> Any:
    """Return a random answer to a Fetch."""

    def partition() -> Any:
        aborted = [fetch.AbortedTransaction(7, 40)]
        answer = fetch.PartitionData(
            random.randint(0, 9),
            random.choice((0, 0, 0, 6)),
            high_watermark=50,
            aborted_transactions=random.choice((None, [], aborted)) if version >= 4 else None,
            records=random.choice(BATCHES),
        )
        if version >= 12 and random.random() < 0.02:
            answer.current_leader = fetch.LeaderIdAndEpoch(2, 5)
        return answer

    def topic() -> Any:
        name = "" if version >= FIRST_BY_ID else random.choice(NAMES)
        return fetch.FetchableTopicResponse(
            name, partitions=_some(random, partition), **_topic(random, version)
        )

    return fetch.FetchResponse(
        error_code=random.choice((0, 0, 70)) if version >= 7 else 0,
        session_id=random.choice((0, 77)) if version >= 7 else 0,
        responses=_some(random, topic),
    )


def _key(topic: Any, version: int) -> bytes:
    if version >= FIRST_BY_ID:
        return bytes(topic.topic_id)
    return str(getattr(topic, "name", None) or getattr(topic, "topic", "")).encode()


def _of_produce(message: Any, version: int) -> Expected:
    topics = [
        (_key(topic, version), [each.index for each in topic.partition_data])
        for topic in message.topic_data
    ]
    name = message.transactional_id
    transactional_id = None if name is None else name.encode()
    return transactional_id, message.acks, topics, has_transactional_records(message)


def _of_fetch(message: Any, version: int) -> Expected:
    topics = [
        (_key(topic, version), [each.partition for each in topic.partitions])
        for topic in message.topics
    ]
    forgotten = [
        (_key(topic, version), tuple(topic.partitions)) for topic in message.forgotten_topics_data
    ]
    session = message.session_id, message.session_epoch
    return (message.replica_id, *session, topics, forgotten)


def _of_produce_answer(message: Any, version: int) -> Expected:
    return ([_key(topic, version) for topic in message.responses],)


def _of_fetch_answer(message: Any, version: int) -> Expected:
    topics = [_key(topic, version) for topic in message.responses]
    return message.error_code, message.session_id, topics


KINDS: Sequence[tuple[Plan, range, Any, Any]] = (
    (PRODUCE_REQUEST, range(14), produce_request, _of_produce),
    (PRODUCE_RESPONSE, range(14), produce_answer, _of_produce_answer),
    (FETCH_REQUEST, range(19), fetch_request, _of_fetch),
    (FETCH_RESPONSE, range(19), fetch_answer, _of_fetch_answer),
)
"""Each plan with its versions, a maker of random messages, and what a scan must find."""


@cache
def scan_of(kind: int, version: int) -> Scan:
    """Return the scan of a kind of message at a version."""
    return scanner(KINDS[kind][0], version)


def mutated(random: Random, frame: bytes) -> bytes:
    """Return a frame with bytes changed, removed, added or repeated."""
    data = bytearray(frame)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data[at : at + 1] = bytes([random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))])
            case 1 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 2:
                del data[at : at + random.randint(1, 5)]
            case 3:
                data[at:at] = random.randbytes(random.randint(1, 5))
            case _:
                data[at:at] = data[at : at + random.randint(1, 40)]
    return bytes(data)


def expected(kind: int, version: int, frame: bytes) -> Expected | None:
    """Return what a decoder finds in a frame, None if that is not exactly one message."""
    plan, _, _, of_message = KINDS[kind]
    try:
        message, end = decoder(plan.message, version)(frame, 0)
    except ProtocolError:
        return None
    found: Expected = of_message(message, version)
    return found if end == len(frame) else None


def comparable(kind: int, version: int, found: Expected | None) -> Expected | None:
    """Return what a scan has found, without the bytes of partitions.

    It is None if the relay would leave the frame to the decoder: when a name is not UTF-8.
    """
    if found is None:
        return None
    plan = KINDS[kind][0]
    topics = found[-1]
    if plan is PRODUCE_REQUEST:
        found, topics = found[:-1], found[2]
        if not _is_text(found[0] or b""):
            return None
    elif plan is FETCH_REQUEST:
        topics = [*found[3], *found[4]]
        plain = [(topic, [number for number, _ in partitions]) for topic, partitions in found[3]]
        found = (*found[:3], plain, found[4])
    names = [each if isinstance(each, bytes) else each[0] for each in topics]
    return found if version >= FIRST_BY_ID or all(map(_is_text, names)) else None


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def random_frame(random: Random) -> tuple[int, int, bytes]:
    """Return a kind, a version, and the bytes of a random message of it without its header."""
    kind = random.randrange(len(KINDS))
    _, versions, make, _ = KINDS[kind]
    version = random.choice(versions)
    return kind, version, encode(make(random, version), version)
