"""Clients of Python write records to a cluster in memory, and read them again, without groups."""

import asyncio
import uuid
import warnings
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.support.broker import Broker

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer
    from kafka import TopicPartition as PyPartition

WITHIN = 20


def produced(servers: str, values: list[bytes], topic: str, **config: Any) -> list[tuple[int, int]]:
    """Return the partition and the offset of each value."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **config})
    told: list[Any] = []
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, record: told.append((error, record))
        )
    assert producer.flush(WITHIN) == 0
    assert [error for error, _ in told if error is not None] == []
    return [(record.partition(), record.offset()) for _, record in told]


def consumed(servers: str, topic: str, partitions: int, count: int, **config: Any) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **config,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[bytes] = []
    while len(values) < count:
        records = consumer.consume(count - len(values), WITHIN)
        assert records, f"only {len(values)} records came"
        for record in records:
            assert record.error() is None, record.error()
            values.append(record.value() or b"")
    consumer.close()
    return values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_confluent_kafka_reads_what_it_has_written(broker: Broker, codec: str):
    topic = f"confluent-{codec}-{uuid.uuid4().hex}"
    servers = broker.listeners["PLAINTEXT"]
    values = [f"{number}".encode() * 50 for number in range(2000)]
    produced(servers, values, topic, **{"compression.type": codec, "enable.idempotence": True})
    assert sorted(consumed(servers, topic, 1, len(values))) == sorted(values)


def test_records_of_all_partitions_come_from_all_nodes(broker: Broker):
    servers = broker.listeners["PLAINTEXT"]
    values = [uuid.uuid4().bytes for _ in range(3000)]
    places = produced(servers, values, "plain", **{"sticky.partitioning.linger.ms": 0})
    assert {partition for partition, _ in places} == {0, 1, 2}
    consumed_values = consumed(servers, "plain", 3, len(values))
    assert sorted(consumed_values) == sorted(values)


async def test_aiokafka_reads_what_it_has_written(broker: Broker):
    topic = f"aio-{uuid.uuid4().hex}"
    servers = broker.listeners["PLAINTEXT"]
    producer = AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True)
    await producer.start()
    sent = [await producer.send(topic, str(number).encode()) for number in range(500)]
    assert [(await each).offset for each in sent] == list(range(500))
    await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([AioPartition(topic, 0)])
    consumer.seek(AioPartition(topic, 0), 0)
    values = [
        (await asyncio.wait_for(consumer.getone(), WITHIN)).value.decode() for _ in range(500)
    ]
    assert values == [str(number) for number in range(500)]
    assert await consumer.end_offsets([AioPartition(topic, 0)]) == {AioPartition(topic, 0): 500}
    await consumer.stop()


def test_kafka_python_reads_what_it_has_written(broker: Broker):
    topic = f"py-{uuid.uuid4().hex}"
    servers = broker.listeners["PLAINTEXT"].split(",")
    producer = KafkaProducer(bootstrap_servers=servers)
    sent = [producer.send(topic, str(number).encode()) for number in range(500)]
    assert [each.get(WITHIN).offset for each in sent] == list(range(500))
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=servers, consumer_timeout_ms=WITHIN * 1000)
    partition = PyPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    values = [next(consumer).value.decode() for _ in range(500)]
    assert values == [str(number) for number in range(500)]
    assert consumer.end_offsets([partition]) == {partition: 500}
    consumer.close()


def test_a_record_that_is_too_large_is_refused(broker: Broker):
    servers = broker.listeners["PLAINTEXT"]
    producer = Producer({"bootstrap.servers": servers, "message.max.bytes": 4_000_000})
    told: list[Any] = []
    producer.produce("single", b"x" * 2_000_000, on_delivery=lambda error, _: told.append(error))
    producer.flush(WITHIN)
    assert [error.code() for error in told] == [KafkaError.MSG_SIZE_TOO_LARGE]
