"""Attempts with aiokafka."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from tests.clients.python.attempts.session import DONE, NOTHING, Session

ERRORS = (KafkaError, TimeoutError)


def name_of(error: Exception) -> str:
    """The name of an exception's class."""
    return type(error).__name__


async def _produce(session: Session, topic: str, **more: Any) -> str:
    producer = AIOKafkaProducer(**session.config, **more)
    await producer.start()
    try:
        await asyncio.wait_for(producer.send_and_wait(topic, b"value"), session.left)
    finally:
        await _close(producer.stop())
    return DONE


async def _produce_idempotently(session: Session, topic: str) -> str:
    return await _produce(session, topic, enable_idempotence=True)


async def _produce_in_transaction(session: Session, transactional_id: str, topic: str) -> str:
    producer = AIOKafkaProducer(**session.config, transactional_id=transactional_id)
    try:
        await asyncio.wait_for(producer.start(), session.left)
        await producer.begin_transaction()
        await asyncio.wait_for(producer.send_and_wait(topic, b"value"), session.left)
        await asyncio.wait_for(producer.commit_transaction(), session.left)
    finally:
        await _close(producer.stop())
    return DONE


async def _close(stopping: Awaitable[None]) -> None:
    """Wait a little for a client to stop, which some errors make it never do."""
    try:
        await asyncio.wait_for(stopping, 1)
    except (*ERRORS, ValueError):
        return


async def _read(session: Session, consumer: AIOKafkaConsumer) -> str:
    """Poll until a fetch was answered, which the consumer knows by the high watermark."""
    while session.left:
        await consumer.getmany(timeout_ms=50)
        if any(consumer.highwater(partition) is not None for partition in consumer.assignment()):
            return DONE
    return NOTHING


async def _assign(session: Session, topic: str, _group: str) -> str:
    consumer = AIOKafkaConsumer(**session.config, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    try:
        await consumer.start()
        return await _read(session, consumer)
    finally:
        await _close(consumer.stop())


async def _subscribe(session: Session, topic: str, group: str) -> str:
    consumer = AIOKafkaConsumer(
        topic, **session.config, group_id=group, auto_offset_reset="earliest"
    )
    try:
        await asyncio.wait_for(consumer.start(), session.left)
        return await _read(session, consumer)
    finally:
        await _close(consumer.stop())


async def _commit(session: Session, topic: str, group: str) -> str:
    consumer = AIOKafkaConsumer(**session.config, group_id=group, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    try:
        await asyncio.wait_for(consumer.start(), session.left)
        await asyncio.wait_for(consumer.commit({partition: 0}), session.left)
    finally:
        await _close(consumer.stop())
    return DONE


def _synchronous(attempt: Callable[..., Coroutine[Any, Any, str]]) -> Callable[..., str]:
    return lambda session, *resources: asyncio.run(attempt(session, *resources))


ATTEMPTS = {
    "produce": _synchronous(_produce),
    "produce-idempotently": _synchronous(_produce_idempotently),
    "produce-in-transaction": _synchronous(_produce_in_transaction),
    "assign": _synchronous(_assign),
    "subscribe": _synchronous(_subscribe),
    "commit": _synchronous(_commit),
}
