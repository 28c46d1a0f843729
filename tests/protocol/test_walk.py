"""Messages are read in the pieces in which they arrive, and pass on unchanged."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import fetch, produce
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.schema import struct_of
from aclbroker.protocol.walk import RENAMED_TAG, Walk
from tests.gateway.random_frames import KINDS, random_frame
from tests.support.tables import examples


def pieces(random: Random, data: bytes) -> list[bytes]:
    """Cut bytes at random places."""
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((0, 1, 3, 30))))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def passed(walk: Walk, random: Random, data: bytes) -> bytes:
    """Return all that passes of a message that comes in pieces."""
    return b"".join(bytes(walk.take(piece)) for piece in pieces(random, data))


def walk_of(cls: Any, version: int, *kept: str, **more: Any) -> tuple[Walk, list[Any]]:
    """Return a walk, and the list of what it sees."""
    seen: list[Any] = []
    layout = struct_of(cls, version)
    return Walk(layout, kept, lambda path, value: seen.append((path, value)), **more), seen


def test_random_messages_pass_as_they_came_however_they_are_cut():
    random = Random(7)
    for _ in range(examples(5000)):
        kind, version, data = random_frame(random)
        cls = KINDS[kind][0].message
        message = decode(cls, version, data)
        walk, _ = walk_of(cls, version)
        got = passed(walk, random, data)
        assert walk.is_done
        assert len(got) == len(data)
        blanked = decode(cls, version, got)
        if got != data:
            assert blanked != message, "bytes have changed that mean nothing"
            _blank_tags(message)
        assert blanked == message


def _blank_tags(item: Any) -> None:
    """Put zeros into all undeclared tagged fields of a message."""
    for name in item.__slots__:
        value = getattr(item, name)
        if name == "unknown_tags":
            item.unknown_tags = tuple((number, bytes(len(raw))) for number, raw in value)
        for entry in value if isinstance(value, list | tuple) else ():
            if hasattr(entry, "unknown_tags"):
                _blank_tags(entry)


def test_topics_ids_and_the_first_bytes_of_records_are_seen():
    random = Random(8)
    data = [produce.PartitionProduceData(3, b"x" * 500), produce.PartitionProduceData(4, b"short")]
    request = produce.ProduceRequest("tx", -1, 1, [produce.TopicProduceData("t", bytes(16), data)])
    paths = [
        *("transactional_id", "acks", "topic_data", "topic_data.name"),
        *("topic_data.partition_data.index", "topic_data.partition_data.records"),
    ]
    for version in range(3, 13):
        walk, seen = walk_of(produce.ProduceRequest, version, *paths, head=61)
        sent = encode(request, version)
        assert passed(walk, random, sent) == sent
        assert [value for _, value in seen] == [
            *(b"tx", -1, 1, b"t"),
            *(3, (b"x" * 61, 500), 4, (b"short", 5)),
        ]


def test_hidden_tagged_fields_are_read_as_undeclared_ones():
    random = Random(9)
    endpoints = [fetch.NodeEndpoint(1, "kafka-1.internal", 9092)]
    answer = fetch.FetchResponse(5, node_endpoints=endpoints)
    for _ in range(20):
        walk, _ = walk_of(fetch.FetchResponse, 16, hidden={"": (0,)})
        got = passed(walk, random, encode(answer, 16))
        read = decode(fetch.FetchResponse, 16, got)
        [(number, raw)] = read.unknown_tags
        assert (number, set(raw)) == (RENAMED_TAG, {0})
        assert (read.throttle_time_ms, list(read.node_endpoints)) == (5, [])


def test_records_pass_before_all_of_them_are_there():
    walk, _ = walk_of(produce.ProduceRequest, 9)
    data = [produce.PartitionProduceData(0, b"x" * 100_000)]
    sent = encode(
        produce.ProduceRequest(None, -1, 1, [produce.TopicProduceData("t", bytes(16), data)]), 9
    )
    assert walk.take(sent[:50_000]) == sent[:50_000]
    middle = sent[50_000:60_000]
    assert walk.take(middle) is middle
    assert walk.take(sent[60_000:]) == sent[60_000:]
    assert walk.is_done


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data + b"\0", "behind"),
        (lambda data: data[:-1] + b"\1\x28\1x", "unknown"),
        (lambda data: data[:-1] + b"\xff\xff\xff\xff\xff", "32 bits"),
        (lambda data: data[:-1] + b"\x7f", "tagged fields"),
    ],
)
def test_what_is_no_such_message_is_refused(change: Any, reason: str):
    walk, _ = walk_of(produce.ProduceRequest, 9, refuses_tags=True)
    with pytest.raises(ProtocolError, match=reason):
        walk.take(change(encode(produce.ProduceRequest(None, -1, 1, []), 9)))


def _answer(tags: bytes) -> bytes:
    """Return the answer to a Fetch without topics, with the bytes of its tagged fields."""
    return encode(fetch.FetchResponse(), 16)[:-1] + tags


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encode(produce.ProduceRequest(None, -1, 1, []), 9)[:-2] + b"\0\0", "is null"),
        (_answer(b"\1\x28" + b"\xff\xff\x7f" + bytes(100)), "bytes; 65536"),
        (_answer(b"\1\x80\x00\x01\x01"), "longer number"),
    ],
)
def test_values_that_no_client_or_broker_sends_are_refused(data: bytes, reason: str):
    cls = produce.ProduceRequest if reason == "is null" else fetch.FetchResponse
    walk, _ = walk_of(cls, 9 if reason == "is null" else 16, hidden={"": (0,)})
    with pytest.raises(ProtocolError, match=reason):
        walk.take(data)


def test_a_name_that_is_too_long_is_refused():
    walk, _ = walk_of(fetch.FetchResponse, 12, "responses.topic")
    topics = encode(fetch.FetchResponse(), 12)[:-2] + b"\2" + b"\xff\xff\x03" + bytes(40_000)
    with pytest.raises(ProtocolError, match="more than 32767 bytes"):
        walk.take(topics)


def test_entries_with_tagged_fields_are_read_one_by_one():
    aborted: list[Any] = [fetch.AbortedTransaction(number, 1) for number in range(50)]
    aborted[40].unknown_tags = ((7, b"x"),)
    data = fetch.PartitionData(0, 0, 1, aborted_transactions=aborted, records=b"")
    answer = fetch.FetchResponse(responses=[fetch.FetchableTopicResponse("t", partitions=[data])])
    walk, _ = walk_of(fetch.FetchResponse, 12)
    sent = encode(answer, 12)
    got = passed(walk, Random(3), sent)
    assert walk.is_done
    assert len(got) == len(sent)
    assert b"\7\1x" in sent
    assert b"\7\1\0" in got


def test_a_message_that_ends_early_is_not_done():
    walk, _ = walk_of(produce.ProduceRequest, 9)
    walk.take(encode(produce.ProduceRequest(None, -1, 1, []), 9)[:-1])
    assert not walk.is_done
