"""Large requests and answers pass through a gateway in pieces, and rights hold all the same."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.compile import encode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.wire import decode_response, response_frame
from tests.gateway.meddling import LENGTH, Last, framed
from tests.gateway.test_relay import TRANSACTIONAL_ID_REFUSED, Scene, scene
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.memory_cluster.raw import fetched, partition, request, told, write
from tests.memory_cluster.test_fetching import REFUSED, new_topic, revoke
from tests.support.broker import Broker
from tests.support.client import request_frame
from tests.support.gateway import gateway_before
from tests.support.process import wait_for

__all__ = ["scene"]

BLOCK = os.urandom(1 << 20)
LARGE = batch(*[BLOCK[:700_000]] * 5)
TRANSACTIONAL = batch(BLOCK, producer=(7, 0, 0), transactional=True)
MOST = 1 << 30
WITHIN = 20.0
GIVEN = 16
"""The first bytes of a batch, up to the epoch of the leader, are the broker's."""


def produce(topic: str, *batches: bytes, transactional_id: str | None = None) -> bytes:
    """Return the frame of a Produce to the partitions of one topic."""
    data = [p.PartitionProduceData(number, each) for number, each in enumerate(batches)]
    message = p.ProduceRequest(
        transactional_id, -1, 5000, [p.TopicProduceData(topic, partition_data=data)]
    )
    return request_frame(ApiKey.PRODUCE, 9, message, 5)


def answered(scene: Scene) -> int:
    """Return the code of the next answer to a Produce of alice."""
    _, answer = scene.alice.response(ApiKey.PRODUCE, 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def end_of(scene: Scene, topic: str) -> int:
    """Return the end of a topic's first partition."""
    answer = fetched(scene.admin, 12, request({topic: [partition(0, most=1)]}))
    return int(answer.responses[0].partitions[0].high_watermark)


def records(answer: f.FetchResponse) -> bytes:
    """Return all records of an answer."""
    return b"".join(
        bytes(each.records or b"") for topic in answer.responses for each in topic.partitions
    )


def test_a_large_produce_and_a_large_answer_pass_unchanged(scene: Scene):
    before = scene.relayed
    assert write(scene.alice, scene.both, LARGE).error_code == 0
    asked = request({scene.both: [partition(0, 1, most=MOST)]}, max_bytes=MOST)
    answer = fetched(scene.alice, 12, asked)
    assert records(answer)[GIVEN:] == LARGE[GIVEN:]
    assert scene.relayed - before == 2


@pytest.mark.parametrize("size", [1, 1000, 5000, 70_000])
def test_a_large_produce_may_come_in_pieces_of_any_size(scene: Scene, size: int):
    data = batch(BLOCK[:100_000])
    frame = produce(scene.both, data)
    step = size if size > 1 else len(frame) // 200
    for first in range(0, 2 * len(frame), step):
        scene.alice.send((frame * 2)[first : first + step])
    assert [answered(scene), answered(scene)] == [0, 0]
    assert end_of(scene, scene.both) == 3


def test_a_session_begins_with_a_large_answer(scene: Scene):
    write(scene.admin, scene.both, LARGE)
    asked = {scene.both: [partition(0, 0, most=MOST)], scene.read: [partition(0, 1)]}
    first = fetched(scene.alice, 12, request(asked, (0, 0), max_bytes=MOST))
    assert len(records(first)) > len(LARGE)
    before = scene.relayed
    moved = request({scene.both: [partition(0, 6)]}, (first.session_id, 1))
    assert told(fetched(scene.alice, 12, moved)) == []
    assert scene.relayed - before == 1
    revoke(scene.admin, scene.read)
    answer = fetched(scene.alice, 12, request(session=(first.session_id, 2)))
    assert told(answer) == [(scene.read, 0, REFUSED, 0)]


def test_a_large_produce_is_refused_as_a_small_one(scene: Scene):
    for topic in (scene.read, scene.hidden):
        scene.alice.send(produce(topic, LARGE))
        assert answered(scene) == REFUSED
        assert end_of(scene, topic) == 1
    scene.alice.send(produce(scene.both, TRANSACTIONAL, transactional_id="tx"))
    assert answered(scene) == TRANSACTIONAL_ID_REFUSED


def test_requests_behind_a_large_one_are_answered_behind_it(scene: Scene):
    """One creates a topic first: it must not be sent in the middle of the large one."""
    missing = MetadataRequest([MetadataRequestTopic(name="created-behind")], True)
    scene.admin.ask(ApiKey.METADATA, 12, MetadataRequest(None))
    frames = [
        request_frame(ApiKey.METADATA, 12, missing, 1),
        produce(scene.both, LARGE),
        request_frame(ApiKey.METADATA, 12, MetadataRequest(None), 7),
        produce(scene.both, LARGE),
    ]
    scene.admin.send(b"".join(frames))
    answers = scene.admin.socket.makefile("rb")
    numbers = []
    for key, version in ((3, 12), (0, 9), (3, 12), (0, 9)):
        frame = answers.read(int.from_bytes(answers.read(4)))
        number, answer = decode_response(APIS[key], version, frame)
        numbers.append(number)
        if key == ApiKey.PRODUCE:
            assert answer.responses[0].partition_responses[0].error_code == 0
    assert numbers == [1, 5, 7, 5]
    assert end_of(scene, scene.both) == 11


def with_tag(frame: bytes) -> bytes:
    """Return a request with an undeclared tagged field at its end."""
    changed = frame[4:-1] + b"\1\x28\1x"
    return LENGTH.pack(len(changed)) + changed


BAD_REQUESTS: dict[str, Callable[[Scene], bytes]] = {
    "an undeclared tagged field": lambda scene: with_tag(produce(scene.both, LARGE)),
    "a transaction without the right": lambda scene: produce(
        scene.both, LARGE, TRANSACTIONAL, transactional_id="tx"
    ),
    "several batches": lambda scene: produce(scene.both, LARGE, LARGE + LARGE),
    "bytes behind its end": lambda scene: framed(produce(scene.both, LARGE)[4:] + b"behind"),
    "a length beyond its end": lambda scene: framed(produce(scene.both, LARGE)[4:-1]),
}


@pytest.mark.parametrize("kind", BAD_REQUESTS)
def test_a_request_that_is_bad_far_behind_its_beginning_has_no_effect(scene: Scene, kind: str):
    frame = BAD_REQUESTS[kind](scene)
    # So much that the gateway has sent the first bytes when the bad ones come.
    scene.alice.send(frame[:300_000])
    wait_for("the first bytes", lambda: _is_sent(scene), WITHIN)
    with suppress(ConnectionError):
        scene.alice.send(frame[300_000:])
    with pytest.raises((ConnectionClosed, ConnectionError)):
        answered(scene)
    assert end_of(scene, scene.both) == 1
    assert "malformed request" in scene.world.gateway.log_text()


def _is_sent(scene: Scene) -> bool | None:
    """Whether bytes of a large request wait in the cluster for the others."""
    return True if scene.world.proxy.passed > 200_000 else None


def test_a_client_that_goes_away_in_the_middle_writes_nothing(scene: Scene):
    scene.alice.send(produce(scene.both, LARGE)[:-5])
    wait_for("the first bytes", lambda: _is_sent(scene), WITHIN)
    scene.alice.close()
    other = raw.logged_in(scene.world.gateway, "alice")
    assert write(other, scene.both, batch(b"x")).base_offset == 1
    assert end_of(scene, scene.both) == 2


def cut(answer: bytes) -> bytes:
    return Last(framed(answer)[: len(answer) // 2])


def with_hidden_topic(scene: Scene) -> Callable[[bytes], bytes]:
    def add(answer: bytes) -> bytes:
        number, message = decode_response(APIS[ApiKey.FETCH], 12, answer)
        data = f.PartitionData(0, 0, 1, records=batch(b"secret"))
        message.responses.append(f.FetchableTopicResponse(scene.hidden, partitions=[data]))
        return response_frame(APIS[ApiKey.FETCH], 12, number, message)

    return add


BAD_ANSWERS: dict[str, Callable[[Scene], Callable[[bytes], bytes]]] = {
    "that ends": lambda _scene: cut,
    "with a topic that was not asked for": with_hidden_topic,
    "with a topic twice": lambda _scene: _doubled,
    "that is shorter than its length": lambda _scene: (
        lambda answer: LENGTH.pack(len(answer) + 9) + answer + bytes(9)
    ),
}


def _doubled(answer: bytes) -> bytes:
    number, message = decode_response(APIS[ApiKey.FETCH], 12, answer)
    message.responses = [*message.responses, *message.responses]
    return response_frame(APIS[ApiKey.FETCH], 12, number, message)


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_an_answer_that_is_bad_far_behind_its_beginning_ends_the_connection(
    scene: Scene, kind: str
):
    write(scene.admin, scene.both, LARGE)
    asked = request({scene.both: [partition(0, 1, most=MOST)]}, max_bytes=MOST)
    with scene.world.meddling(BAD_ANSWERS[kind](scene)), pytest.raises(ConnectionClosed):
        fetched(scene.alice, 12, asked)
    other = raw.logged_in(scene.world.gateway, "alice")
    assert len(records(fetched(other, 12, asked))) == len(LARGE)


def test_undeclared_names_and_addresses_in_a_large_answer_become_zeros(scene: Scene):
    write(scene.admin, scene.both, LARGE)
    topic_id = raw.id_of(scene.admin, scene.both)
    asked = request({topic_id: [partition(0, 1, most=MOST)]}, max_bytes=MOST)
    fetched(scene.alice, 16, request({topic_id: [partition(0, 1, most=1)]}))

    def add(answer: bytes) -> bytes:
        number, message = decode_response(APIS[ApiKey.FETCH], 16, answer)
        message.node_endpoints = [f.NodeEndpoint(1, "kafka-1.internal", 9092)]
        message.responses[0].unknown_tags = ((77, b"undeclared"),)
        return response_frame(APIS[ApiKey.FETCH], 16, number, message)

    with scene.world.meddling(add):
        answer = fetched(scene.alice, 16, asked)
    assert records(answer)[GIVEN:] == LARGE[GIVEN:]
    assert list(answer.node_endpoints) == []
    kept = encode(answer, 16)
    assert b"kafka-1" not in kept
    assert b"undeclared" not in kept


def test_a_client_that_reads_late_gets_all_of_many_large_answers(scene: Scene):
    topic = new_topic(scene.admin)
    scene.admin.create(raw.acl("alice", raw.READ, topic))
    for _ in range(3):
        write(scene.admin, topic, LARGE)
    asked = request({topic: [partition(0, most=MOST)]}, max_bytes=MOST)
    frame = request_frame(ApiKey.FETCH, 12, asked, 3)
    before = scene.world.proxy.passed
    scene.alice.send(frame * 8)
    # The gateway stops reading long before all eight are there.
    passed = wait_for("a pause", lambda: _still(scene), WITHIN)
    assert passed - before < 24 * len(LARGE) / 2
    answers = scene.alice.socket.makefile("rb")
    for _ in range(8):
        _, answer = decode_response(
            APIS[ApiKey.FETCH], 12, answers.read(int.from_bytes(answers.read(4)))
        )
        assert len(records(answer)) == 3 * len(LARGE)


def _still(scene: Scene) -> int | None:
    """How many bytes have passed, once no more do for a while."""
    passed = scene.world.proxy.passed
    return passed if not wait_for_more(scene, passed) else None


def wait_for_more(scene: Scene, passed: int) -> bool:
    try:
        wait_for("more", lambda: scene.world.proxy.passed > passed or None, 0.5)
    except TimeoutError:
        return False
    return True


def test_a_client_that_reads_nothing_is_closed_when_it_is_idle(memory: Broker, tmp_path: Path):
    idle = {"connections.max.idle.ms": "1000"}
    gateway = gateway_before(memory.listeners["PLAINTEXT"], tmp_path, **idle)
    try:
        writer = raw.admin(memory)
        topic = new_topic(writer)
        for _ in range(10):
            assert write(writer, topic, batch(BLOCK[:900_000])).error_code == 0
        client = raw.admin(gateway)
        asked = request({topic: [partition(0, most=MOST)]}, max_bytes=MOST)
        fetched(client, 12, asked)
        client.send(request_frame(ApiKey.FETCH, 12, asked, 3) * 20)
        wait_for("a line", lambda: _is_closed(gateway), WITHIN)
    finally:
        gateway.terminate()


def _is_closed(gateway: Broker) -> bool | None:
    return True if "idle connection closed" in gateway.log_text() else None


def test_a_session_that_expires_in_the_middle_of_a_request_lets_it_end(
    memory: Broker, tmp_path: Path
):
    expiry = {"connections.max.reauth.ms": "1000"}
    gateway = gateway_before(memory.listeners["PLAINTEXT"], tmp_path, **expiry)
    try:
        topic = new_topic(raw.admin(memory))
        raw.admin(gateway).create(raw.acl("alice", raw.WRITE, topic))
        client = raw.logged_in(gateway, "alice")
        expires_at = time.monotonic() + 1.1
        assert write(client, topic, batch(b"x")).error_code == 0
        frame = produce(topic, batch(BLOCK[:900_000]))
        client.send(frame[:500_000])
        wait_for("expiry", lambda: time.monotonic() > expires_at or None, WITHIN)
        client.send(frame[500_000:])
        _, answer = client.response(ApiKey.PRODUCE, 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
    finally:
        gateway.terminate()


def test_a_client_that_stops_in_the_middle_of_a_request_is_closed_when_it_is_idle(
    memory: Broker, tmp_path: Path
):
    idle = {"connections.max.idle.ms": "1000"}
    gateway = gateway_before(memory.listeners["PLAINTEXT"], tmp_path, **idle)
    try:
        client = raw.admin(gateway)
        topic = new_topic(client)
        client.send(produce(topic, batch(BLOCK[:900_000]))[:500_000])
        wait_for("a line", lambda: _is_closed(gateway), WITHIN)
    finally:
        gateway.terminate()
