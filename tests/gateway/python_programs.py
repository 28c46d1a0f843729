"""Programs of librdkafka and aiokafka that write, read and commit as a principal."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.gateway.principals import WITHIN, Side
from tests.gateway.test_real_clients import values

COUNT: Final = 200


def rdkafka_group(side: Side, user: str, topic: str, protocol: str) -> tuple[list[str], list[int]]:
    """Read a topic of two partitions as a group; return the values and the committed offsets.

    Return the name of an error in place of the values.
    """
    group = {"group_id": topic, "group_protocol": protocol, "auto_offset_reset": "earliest"}
    consumer = Consumer(side.librdkafka(user, **group))
    try:
        consumer.subscribe([topic])
        read = values(consumer, COUNT)
        if len(read) < COUNT:
            return read, []
        consumer.commit(asynchronous=False)
        places = consumer.committed([TopicPartition(topic, index) for index in range(2)], WITHIN)
        return sorted(read), [place.offset for place in places]
    finally:
        consumer.close()


def rdkafka_transactions(side: Side, user: str, name: str) -> list[str] | str:
    """Abort a transaction and commit another; return the committed values that a consumer reads.

    Return the name of an error in place of the values.
    """
    try:
        _write_transactions(side, user, name)
    except KafkaException as error:
        return str(error.args[0].name())
    options = {"group_id": name, "isolation_level": "read_committed"}
    consumer = Consumer(side.librdkafka(user, **options))
    try:
        consumer.assign([TopicPartition(name, 0, 0)])
        read = values(consumer, COUNT)
        [place] = consumer.committed([TopicPartition(name, 0)], WITHIN)
        return [*read, f"offset {place.offset}"]
    finally:
        consumer.close()


def _write_transactions(side: Side, user: str, name: str) -> None:
    producer = Producer(side.librdkafka(user, transactional_id=name))
    group = Consumer(side.librdkafka(user, group_id=name))
    try:
        producer.init_transactions(WITHIN)
        for number, outcome in enumerate(("aborted", "committed")):
            producer.begin_transaction()
            for index in range(COUNT):
                producer.produce(name, f"{outcome} {index}", partition=0)
            producer.flush(WITHIN)
            # If a record was refused, the next step raises the error of the transaction.
            offsets = [TopicPartition(name, 0, number)]
            producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), WITHIN)
            if outcome == "aborted":
                producer.abort_transaction(WITHIN)
            else:
                producer.commit_transaction(WITHIN)
    finally:
        group.close()


def aiokafka_round_trip(side: Side, user: str, written: str, read: str) -> list[Any]:
    """Write to one topic idempotently, and read another as a group.

    Return the offsets of the written records, and the values read with the committed offset. The
    class of an error stands in place of either.
    """
    login = {
        "bootstrap_servers": side.address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": side.password(user),
    }
    return [asyncio.run(_written(login, written)), asyncio.run(_read(login, read))]


async def _written(login: dict[str, Any], topic: str) -> list[int] | str:
    producer = AIOKafkaProducer(**login, enable_idempotence=True)
    try:
        await producer.start()
        first = await producer.send_and_wait(topic, b"0", partition=0)
        sent = [await producer.send(topic, b"%d" % n, partition=0) for n in range(1, COUNT)]
        return [first.offset, *[(await future).offset for future in sent]]
    except AioError as error:
        return type(error).__name__
    finally:
        await _stopped(producer)


async def _read(login: dict[str, Any], topic: str) -> list[Any] | str:
    options = {"group_id": topic, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = AIOKafkaConsumer(topic, **login, **options)
    try:
        await asyncio.wait_for(consumer.start(), WITHIN)
        read: list[str] = []
        deadline = time.monotonic() + WITHIN
        while len(read) < COUNT and time.monotonic() < deadline:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                read += [(record.value or b"").decode() for record in records]
        await consumer.commit()
        committed = {place: await consumer.committed(place) for place in consumer.assignment()}
        return [read, sorted((place.partition, offset) for place, offset in committed.items())]
    except AioError as error:
        return type(error).__name__
    finally:
        await _stopped(consumer)


async def _stopped(client: AIOKafkaConsumer | AIOKafkaProducer) -> None:
    """Stop a client; after some errors it never stops, so it gets a second."""
    try:
        await asyncio.wait_for(client.stop(), 1)
    except (AioError, TimeoutError, ValueError):
        return
