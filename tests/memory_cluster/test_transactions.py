"""Transactions of real clients, with no more rights than they need."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from aclbroker.testing import AclBroker

WITHIN = 20
QUIET = {"log_level": 0}


@pytest.fixture(params=[1, 3], ids=["node", "nodes"])
def broker(request: pytest.FixtureRequest) -> Iterator[AclBroker]:
    """A cluster in which the user app has what reading orders and writing payments needs."""
    with AclBroker(topics={"orders": 3, "payments": 2}, nodes=request.param) as running:
        running.grant("app", "READ", topic="orders")
        running.grant("app", "READ", group="g")
        running.grant("app", "WRITE", topic="payments")
        running.grant("app", "WRITE", transactional_id="t")
        yield running


def write(broker: AclBroker, topic: str, *values: bytes) -> None:
    producer = Producer(broker.client_config("admin") | QUIET)
    for value in values:
        producer.produce(topic, value, key=value)
    assert producer.flush(WITHIN) == 0


def consumer(broker: AclBroker, user: str, **more: object) -> Consumer:
    return Consumer(
        broker.client_config(user)
        | QUIET
        | {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        | {name.replace("_", "."): value for name, value in more.items()}
    )


def taken(reader: Consumer, count: int) -> list[Message]:
    """Return as many messages as are there within the time."""
    found: list[Message] = []
    deadline = time.monotonic() + WITHIN
    while len(found) < count and time.monotonic() < deadline:
        message = reader.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    return found


def committed_payments(broker: AclBroker) -> list[bytes]:
    """Return what a reader of committed records sees of payments, once it is at the end."""
    reader = consumer(broker, "admin", group_id="looks", isolation_level="read_committed")
    found = []
    try:
        for index in range(2):
            place = TopicPartition("payments", index, 0)
            reader.assign([place])
            end = reader.get_watermark_offsets(place, timeout=WITHIN)[1]
            deadline = time.monotonic() + WITHIN
            while end and reader.position([place])[0].offset < end:
                assert time.monotonic() < deadline
                message = reader.poll(0.2)
                if message is not None:
                    found.append(message.value() or b"")
                elif reader.position([place])[0].offset < 0:
                    break  # nothing of it is committed
    finally:
        reader.close()
    return sorted(found)


def test_what_is_read_is_written_exactly_once_with_the_offsets_of_what_was_read(broker):
    write(broker, "orders", *(b"%d" % n for n in range(9)))
    producer = Producer(broker.client_config("app") | QUIET | {"transactional.id": "t"})
    producer.init_transactions(WITHIN)
    reader = consumer(broker, "app", group_id="g")
    reader.subscribe(["orders"])
    orders = taken(reader, 9)
    assert len(orders) == 9
    for outcome in ("aborted", "committed"):
        producer.begin_transaction()
        for order in orders:
            producer.produce("payments", outcome.encode() + (order.value() or b""))
        positions = reader.position(reader.assignment())
        producer.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), WITHIN)
        if outcome == "aborted":
            producer.abort_transaction(WITHIN)
            committed = reader.committed(reader.assignment(), timeout=WITHIN)
            assert {each.offset for each in committed} == {-1001}
        else:
            producer.commit_transaction(WITHIN)
    committed = reader.committed(reader.assignment(), timeout=WITHIN)
    assert sum(each.offset for each in committed) == 9
    reader.close()
    assert committed_payments(broker) == sorted(b"committed%d" % n for n in range(9))
    assert broker.denials() == []


def test_a_second_producer_of_the_same_id_fences_the_first(broker):
    settings = broker.client_config("app") | QUIET | {"transactional.id": "t"}
    first, second = Producer(settings), Producer(settings)
    first.init_transactions(WITHIN)
    first.begin_transaction()
    first.produce("payments", b"lost")
    first.flush(WITHIN)
    second.init_transactions(WITHIN)
    second.begin_transaction()
    second.produce("payments", b"kept")
    second.commit_transaction(WITHIN)
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch"):
        first.commit_transaction(WITHIN)
    assert committed_payments(broker) == [b"kept"]


def test_a_transaction_that_takes_too_long_is_aborted(broker):
    settings = broker.client_config("app") | QUIET
    slow = Producer(settings | {"transactional.id": "t", "transaction.timeout.ms": 60_000})
    slow.init_transactions(WITHIN)
    slow.begin_transaction()
    slow.produce("payments", b"late")
    slow.flush(WITHIN)
    broker.advance(61)
    with pytest.raises(KafkaException):
        slow.commit_transaction(WITHIN)
    assert committed_payments(broker) == []


@pytest.mark.parametrize(("missing", "needed"), [
    ({"transactional_id": "t"}, "on TRANSACTIONAL_ID t"),
    ({"topic": "payments"}, "on TOPIC payments"),
    ({"group": "g"}, "on GROUP g"),
])  # fmt: skip
def test_without_one_of_its_rights_a_transaction_fails_at_once_and_the_right_is_named(
    broker, missing, needed
):
    """The first request that needs something on it may need no more than DESCRIBE."""
    operation = "READ" if "group" in missing else "WRITE"
    broker.revoke(broker.grant("app", operation, **missing))
    producer = Producer(broker.client_config("app") | QUIET | {"transactional.id": "t"})
    began = time.monotonic()
    with pytest.raises(KafkaException, match=r"(?i)authoriz"):
        transact(broker, producer)
    assert time.monotonic() - began < WITHIN / 2
    assert any(needed in str(denial) for denial in broker.denials())


def transact(broker: AclBroker, producer: Producer) -> None:
    """Write a payment and commit an offset, raising what the producer was told."""
    failed = []
    reader = consumer(broker, "admin", group_id="g")
    try:
        producer.init_transactions(WITHIN)
        producer.begin_transaction()
        producer.produce("payments", b"one", on_delivery=lambda error, _: failed.append(error))
        producer.flush(WITHIN)
        if failed[0] is not None:
            raise KafkaException(failed[0])
        offsets = [TopicPartition("orders", 0, 1)]
        producer.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), WITHIN)
        producer.commit_transaction(WITHIN)
    finally:
        reader.close()


async def test_aiokafka_writes_transactions_and_reads_what_is_committed(broker):
    settings = broker.client_config("app", "aiokafka")
    producer = AIOKafkaProducer(**settings, transactional_id="t")
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send_and_wait("payments", b"kept", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait("payments", b"lost", partition=0)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait("payments", b"last", partition=0)
    finally:
        await producer.stop()
    reader = AIOKafkaConsumer(
        **broker.client_config("admin", "aiokafka"),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    await reader.start()
    try:
        reader.assign([AioPartition("payments", 0)])
        found = [(await reader.getone()).value for _ in range(2)]
    finally:
        await reader.stop()
    assert found == [b"kept", b"last"]
