"""A gateway before three real Kafka brokers: leaders move, one is killed, a fourth one comes."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker import Broker
from tests.support.gateway import gateway_of_nodes
from tests.support.kafka import Kafka, running_cluster
from tests.support.process import wait_for

WITHIN = 60.0
IDS = range(1, 5)

pytestmark = pytest.mark.thorough


class World:
    """The brokers, the gateway before them, and clients of it, which are super users."""

    def __init__(self, nodes: list[Kafka], gateway: Broker) -> None:
        self.nodes = nodes
        self.gateway = gateway
        self.config: dict[str, Any] = {
            "bootstrap.servers": gateway.listeners["PLAINTEXT"].split(",")[0],
            "topic.metadata.refresh.interval.ms": 500,
            "log_level": 0,
        }
        self.admin = AdminClient(self.config)

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the leader of each partition; nothing while a broker is not there to answer."""
        with suppress(KafkaException):
            found = self.admin.list_topics(topic, WITHIN).topics[topic]
            return {number: each.leader for number, each in found.partitions.items()}
        return {}

    def ports(self) -> dict[int, int]:
        """Return the port at which clients reach each broker; nothing without an answer."""
        with suppress(KafkaException):
            return {node: each.port for node, each in self.admin.list_topics().brokers.items()}
        return {}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running_cluster(tmp_path) as nodes:
        addresses = ",".join(node.listeners["PLAINTEXT"] for node in nodes)
        gateway = gateway_of_nodes(addresses, tmp_path, IDS)
        yield World(nodes, gateway)
        gateway.terminate()


def test_clients_follow_leaders_through_the_ports_of_the_gateway(world: World):
    first = int(world.gateway.listeners["PLAINTEXT"].split(",")[0].rpartition(":")[2]) - 1
    expected = {number: first + number for number in range(1, 4)}
    wait_for("all brokers", lambda: world.ports() == expected or None, WITHIN)
    [created] = world.admin.create_topics([NewTopic("orders", 6, 3)]).values()
    created.result(WITHIN)
    leaders = wait_for("leaders", lambda: _all_led(world.leaders("orders")), WITHIN)
    assert set(leaders.values()) == {1, 2, 3}
    producer = Producer(world.config | {"enable.idempotence": True})
    consumer = Consumer(world.config | {"group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    written = [f"before-{number}" for number in range(300)]
    _write(producer, written)
    assert sorted(_read(consumer, 300)) == sorted(written)
    # One is killed: its partitions get other leaders, and its port stays its own.
    victim = next(node for node in world.nodes if node is not world.nodes[0])
    number = world.nodes.index(victim) + 1
    victim.kill()
    wait_for("leaders", lambda: _led_without(number, world.leaders("orders")), WITHIN)
    written = [f"while-{number}" for number in range(300)]
    _write(producer, written)
    assert sorted(_read(consumer, 300)) == sorted(written)
    victim.start_again()
    wait_for("all brokers", lambda: world.ports() == expected or None, WITHIN)
    written = [f"after-{number}" for number in range(300)]
    _write(producer, written)
    assert sorted(_read(consumer, 300)) == sorted(written)
    consumer.close()


def test_a_broker_that_comes_later_gets_its_port_without_a_restart(world: World, tmp_path: Path):
    overrides = {"process.roles": "broker", "node.id": "4"}
    directory = tmp_path / "node-4"
    directory.mkdir()
    fourth = Kafka(directory, overrides=overrides, protocols={"PLAINTEXT": "PLAINTEXT"})
    overrides["listeners"] = f"PLAINTEXT://{fourth.listeners['PLAINTEXT']}"
    overrides["controller.quorum.voters"] = ",".join(
        f"{number}@{node.controller}" for number, node in enumerate(world.nodes, 1)
    )
    fourth.format(str(world.admin.list_topics().cluster_id))
    try:
        fourth.start_again()
        ports = wait_for("the broker", lambda: _with(world.ports(), 4), WITHIN)
        assert ports[4] == ports[1] + 3
        topic = NewTopic("orders", 1, replica_assignment=[[4]])
        [created] = world.admin.create_topics([topic]).values()
        created.result(WITHIN)
        _write(Producer(world.config), ["one", "two"])
    finally:
        fourth.kill()


def _with(ports: dict[int, int], number: int) -> dict[int, int] | None:
    return ports if number in ports else None


def _led_without(number: int, leaders: dict[int, int]) -> bool | None:
    return True if _all_led(leaders) and number not in leaders.values() else None


def _all_led(leaders: dict[int, int]) -> dict[int, int] | None:
    return leaders if leaders and min(leaders.values()) > 0 else None


def _write(producer: Producer, values: list[str]) -> None:
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            errors.append(error)

    for value in values:
        producer.produce("orders", value.encode(), on_delivery=delivered)
    assert producer.flush(WITHIN) == 0
    assert errors == []


def _read(consumer: Consumer, count: int) -> list[str]:
    values: list[str] = []
    until = time.monotonic() + WITHIN
    while len(values) < count and time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append((message.value() or b"").decode())
    return values
