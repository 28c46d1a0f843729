"""librdkafka at full speed, through confluent-kafka: no record is lost, and none comes twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer

from aclbroker.testing import AclBroker
from tests.memory_cluster.rights import grant, rights, was_enough

PADDING: Final = bytes(1000)
WITHIN: Final = 60


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    with AclBroker(
        topics={"orders": 6},
        nodes=3,
        properties={"group.consumer.heartbeat.interval.ms": "500"},
    ) as running:
        yield running


def written(config: dict[str, Any], count: int) -> None:
    """Write so many records, each with its number, by an idempotent producer."""
    settings = {"enable.idempotence": True, "linger.ms": 5, "queue.buffering.max.messages": count}
    producer = Producer(config | settings)
    for number in range(count):
        producer.produce("orders", b"%d %b" % (number, PADDING))
    assert producer.flush(WITHIN) == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_gets_each_of_many_records_once(broker: AclBroker, protocol: str, every_case: bool):
    count = 100_000 if every_case else 10_000
    given = [*rights("topic", "orders", "READ", "WRITE"), *rights("group", "group", "READ")]
    grant(broker, "app", given)
    config = broker.client_config("app")
    group = {"group.id": "group", "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumers = [Consumer(config | group) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe(["orders"])
    end = time.monotonic() + WITHIN
    while [len(consumer.assignment()) for consumer in consumers] != [3, 3]:
        assert time.monotonic() < end
        for consumer in consumers:
            assert consumer.poll(0.05) is None
    written(config, count)
    numbers: list[int] = []
    while len(numbers) < count:
        assert time.monotonic() < end, len(numbers)
        for consumer in consumers:
            for record in consumer.consume(10_000, 0.1):
                assert record.error() is None
                numbers.append(int((record.value() or b"").partition(b" ")[0]))
    assert sorted(numbers) == list(range(count))
    for consumer in consumers:
        consumer.close()
    was_enough(broker, given)
