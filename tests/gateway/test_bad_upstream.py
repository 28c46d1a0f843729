"""A cluster upstream that answers wrongly, late or not at all: one client ends, others go on."""

from pathlib import Path
from typing import Any

import pytest

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest
from tests.gateway.meddling import Last, Meddle, World, framed
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.server.test_status import page
from tests.support.accounts import PLAIN_JAAS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import request_frame
from tests.support.process import wait_for

WITHIN = 20.0
TOPICS = {"plain", "single"}
MOST_ACCEPTED = 300 << 20
"""More bytes than a client may have in the gateway and in all buffers on the way."""


def names(client: Any) -> set[str]:
    answer = client.ask(ApiKey.METADATA, 12, MetadataRequest(None))
    return {topic.name for topic in answer.topics}


def renumbered(answer: bytes) -> bytes:
    return framed((int.from_bytes(answer[:4]) + 1).to_bytes(4) + answer[4:])


BAD_ANSWERS: dict[str, Meddle] = {
    "another correlation id": renumbered,
    "an answer that is too long": lambda _answer: (1 << 30).to_bytes(4),
    "a negative length": lambda _answer: (-1).to_bytes(4, signed=True),
    "an empty answer": lambda _answer: framed(b""),
    "an answer cut short": lambda answer: framed(answer[:-3]),
    "a frame that ends early": lambda answer: Last(framed(answer)[:-3]),
    "no answer": lambda _answer: Last(),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_a_bad_answer_ends_the_connection_of_its_client_alone(world: World, kind: str):
    bystander, victim = raw.admin(world.gateway), raw.admin(world.gateway)
    assert names(bystander) == names(victim) >= TOPICS
    with world.meddling(BAD_ANSWERS[kind]), pytest.raises(ConnectionClosed):
        victim.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
    assert names(bystander) >= TOPICS
    assert not [event for event in world.gateway.events() if event["level"] == "error"]


def test_a_second_answer_to_a_request_is_never_given_to_the_next_one(world: World):
    bystander, victim = raw.admin(world.gateway), raw.admin(world.gateway)
    assert names(bystander) == names(victim) >= TOPICS
    with world.meddling(lambda answer: framed(answer) * 2):
        assert victim.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest()).error_code == 0
    with pytest.raises(ConnectionClosed):
        names(victim)
    assert names(bystander) >= TOPICS


def test_a_client_that_comes_while_the_cluster_is_away_is_closed_after_the_delay(world: World):
    before = raw.admin(world.gateway)
    assert names(before) >= TOPICS
    assert page(world.gateway, "/readyz")[0] == 200
    there = world.proxy.target
    world.proxy.target = "127.0.0.1:1"
    world.proxy.drop()
    with pytest.raises(ConnectionClosed):
        names(before)
    client = raw.admin(world.gateway)
    with pytest.raises(ConnectionClosed):
        names(client)
    [problem] = wait_for("a problem", lambda: _problems(world.gateway), WITHIN)
    assert world.proxy.address in problem
    world.proxy.target = there
    wait_for("the cluster", lambda: page(world.gateway, "/readyz")[0] == 200 or None, WITHIN)
    assert names(raw.admin(world.gateway)) >= TOPICS


def test_requests_that_come_while_the_gateway_connects_are_answered_in_order(world: World):
    world.proxy.cut()
    client = raw.admin(world.gateway)
    count = 1000
    request = MetadataRequest(None)
    client.send(b"".join(request_frame(ApiKey.METADATA, 12, request, n) for n in range(count)))
    world.proxy.mend()
    answered = [client.response(ApiKey.METADATA, 12)[0] for _ in range(count)]
    assert answered == list(range(count))


def test_a_silent_cluster_keeps_no_other_client_waiting(world: World):
    waiting = raw.admin(world.gateway)
    assert names(waiting) >= TOPICS
    world.proxy.cut()
    waiting.request(ApiKey.METADATA, 12, MetadataRequest(None))
    other = raw.admin(world.gateway)
    assert other.resource_names() == []
    waiting.close()
    world.proxy.mend()
    assert names(other) >= TOPICS


def test_a_producer_without_answers_is_stopped_when_the_cluster_does_not_read(world: World):
    client = raw.admin(world.gateway)
    assert names(client) >= TOPICS
    world.proxy.cut()
    data = [p.PartitionProduceData(0, batch(b"x" * 1_000_000))]
    request = p.ProduceRequest(None, 0, 1000, [p.TopicProduceData("single", partition_data=data)])
    frame = request_frame(ApiKey.PRODUCE, 12, request, 1)
    client.socket.settimeout(2)
    with pytest.raises(TimeoutError):
        client.socket.sendall(frame * (MOST_ACCEPTED // len(frame)))
    world.proxy.mend()


def _problems(gateway: Broker) -> list[str] | None:
    status, text = page(gateway, "/readyz")
    return text.splitlines() if status == 503 else None


def test_a_refused_login_is_told_with_the_setting_until_it_is_accepted(
    tmp_path: Path, memory: Broker
):
    login = {
        "aclbroker.upstream.bootstrap.servers": memory.listeners["SASL_PLAINTEXT"],
        "aclbroker.upstream.security.protocol": "SASL_PLAINTEXT",
        "aclbroker.upstream.sasl.mechanism": "PLAIN",
        "aclbroker.upstream.sasl.jaas.config": PLAIN_JAAS.replace("admin-secret", "wrong-secret"),
        "aclbroker.metrics.address": "127.0.0.1:0",
    }
    gateway = ThreadBroker(tmp_path, login)
    gateway.write_properties()
    gateway.spawn()
    try:
        [event] = wait_for("a line", lambda: _errors(gateway), WITHIN)
        assert event["event"] == "cluster upstream is out of reach"
        assert "refuses the login" in event["reason"]
        assert "aclbroker.upstream.sasl" in event["reason"]
        assert "wrong-secret" not in gateway.log_text()
        status, text = page(gateway, "/readyz")
        assert status == 503
        assert "refuses the login" in text
    finally:
        gateway.terminate()


def _errors(gateway: Broker) -> list[dict[str, Any]] | None:
    return [event for event in gateway.events() if event["level"] == "error"] or None
