"""Attempts with kafka-python."""

from collections.abc import Callable
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.clients.python.attempts.session import DONE, NOTHING, Session

ERRORS = (KafkaError,)


def name_of(error: Exception) -> str:
    """The name of an exception's class; the text of one whose class says nothing."""
    return str(error) if type(error) is KafkaError else type(error).__name__


def _producer(session: Session, **more: Any) -> KafkaProducer:
    millis = int(session.patience * 1000)
    return KafkaProducer(**session.config, max_block_ms=millis, delivery_timeout_ms=millis, **more)


def _produce(session: Session, topic: str, idempotence: bool = False) -> str:
    producer = _producer(session, enable_idempotence=idempotence)
    try:
        producer.send(topic, b"value").get(session.left)
    finally:
        producer.close(timeout=0)
    return DONE


def _produce_idempotently(session: Session, topic: str) -> str:
    return _produce(session, topic, idempotence=True)


def _produce_in_transaction(session: Session, transactional_id: str, topic: str) -> str:
    producer = _producer(session, transactional_id=transactional_id)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"value").get(session.left)
        producer.commit_transaction()
    finally:
        producer.close(timeout=0)
    return DONE


def _consumer(session: Session, **more: Any) -> KafkaConsumer:
    return KafkaConsumer(
        **session.config,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **more,
    )


def _read(session: Session, consumer: KafkaConsumer) -> str:
    """Poll until a fetch was answered, which the consumer knows by the high watermark."""
    while session.left:
        consumer.poll(timeout_ms=50)
        if any(consumer.highwater(partition) is not None for partition in consumer.assignment()):
            return DONE
    return NOTHING


def _assign(session: Session, topic: str, _group: str) -> str:
    consumer = _consumer(session, group_id=None)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        return _read(session, consumer)
    finally:
        consumer.close(timeout_ms=0)


def _subscribe(session: Session, topic: str, group: str) -> str:
    consumer = _consumer(session, group_id=group)
    try:
        consumer.subscribe([topic])
        return _read(session, consumer)
    finally:
        consumer.close(timeout_ms=0)


def _commit(session: Session, topic: str, group: str) -> str:
    consumer = _consumer(session, group_id=group)
    partition = TopicPartition(topic, 0)
    try:
        consumer.assign([partition])
        consumer.commit(
            {partition: OffsetAndMetadata(0, "", -1)}, timeout_ms=int(session.left * 1000)
        )
    finally:
        consumer.close(timeout_ms=0)
    return DONE


def _administer(request: Callable[[KafkaAdminClient, str], Any]) -> Callable[..., str]:
    def attempt(session: Session, name: str = "") -> str:
        admin = KafkaAdminClient(**session.config)
        try:
            request(admin, name)
        finally:
            admin.close()
        return DONE

    return attempt


ATTEMPTS: dict[str, Callable[..., str]] = {
    "produce": _produce,
    "produce-idempotently": _produce_idempotently,
    "produce-in-transaction": _produce_in_transaction,
    "assign": _assign,
    "subscribe": _subscribe,
    "commit": _commit,
    "delete-topic": _administer(lambda admin, topic: admin.delete_topics([topic])),
    "describe-group": _administer(lambda admin, group: admin.describe_groups([group])),
    "list-offsets-of-group": _administer(lambda admin, group: admin.list_group_offsets(group)),
    "describe-transaction": _administer(lambda admin, name: admin.describe_transactions([name])),
    "describe-quorum": _administer(lambda admin, _: admin.describe_metadata_quorum()),
}
