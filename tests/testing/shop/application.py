"""A shop: it places orders, ships them, bills them in transactions, and has the bills looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

ORDERS, INVOICES = "orders", "invoices"
WITHIN = 10.0
POLLS = 200

Config = dict[str, Any]


def place(config: Config, order: bytes) -> None:
    """Write an order; raises KafkaException if that is refused."""
    delivered: list[KafkaError | None] = []
    producer = Producer(config)
    producer.produce(ORDERS, order, on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(WITHIN) == 0
    if delivered[0] is not None:
        raise KafkaException(delivered[0])


def ship(config: Config) -> bytes:
    """Take the next order from the group of those who ship, and return it."""
    return _next_order(config, "shipping", _commit)


def bill(config: Config) -> None:
    """Take the next order, and write its invoice in the transaction that says it was taken."""
    producer = Producer(config | {"transactional.id": "billing-1"})
    producer.init_transactions(WITHIN)

    def invoice(consumer: Consumer, order: Message) -> None:
        producer.begin_transaction()
        producer.produce(INVOICES, b"invoice of " + bytes(order.value() or b""))
        member = consumer.consumer_group_metadata()
        taken = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(taken, member, WITHIN)
        producer.commit_transaction(WITHIN)

    _next_order(config, "billing", invoice)


async def audit(config: Config) -> bytes:
    """Return the first invoice, by a client that has nothing to do with the other."""
    consumer = AIOKafkaConsumer(
        INVOICES,
        **config,
        group_id="audit",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    try:
        return bytes((await consumer.getone()).value)
    finally:
        await consumer.stop()


def _next_order(config: Config, group: str, take: Callable[[Consumer, Message], None]) -> bytes:
    """Return the next order of a group after it was taken; whatever is refused is raised."""
    consumer = Consumer(
        config
        | {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
    try:
        consumer.subscribe([ORDERS])
        for _ in range(POLLS):
            order = consumer.poll(0.05)
            if order is None:
                continue
            if order.error() is not None:
                raise KafkaException(order.error())
            take(consumer, order)
            return bytes(order.value() or b"")
        raise TimeoutError("there is no order")
    finally:
        consumer.close()


def _commit(consumer: Consumer, order: Message) -> None:
    consumer.commit(message=order, asynchronous=False)
