"""Attempts with confluent-kafka, that is librdkafka."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.clients.python.attempts.session import DONE, NOTHING, Session

ERRORS = (KafkaException, TimeoutError)


def name_of(error: Exception) -> str:
    """librdkafka's name of an error: Kafka's, or with a leading _ one of its own."""
    return _name(error.args[0]) if isinstance(error, KafkaException) else NOTHING


def _name(error: KafkaError) -> str:
    # What was fatal stands in the text only.
    return error.str() if error.code() == KafkaError._FATAL else error.name()


def _config(session: Session, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": session.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": session.user,
        "sasl.password": session.password,
        "log_level": 0,
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def _deliver(session: Session, producer: Producer, topic: str) -> str:
    outcomes: list[KafkaError | None] = []
    producer.produce(topic, b"value", on_delivery=lambda error, message: outcomes.append(error))
    try:
        producer.flush(session.left)
    except SystemError as error:
        # So it raises a fatal error while it has a delivery to report.
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from None
        raise
    if not outcomes:
        return NOTHING
    return _name(outcomes[0]) if outcomes[0] else DONE


def _produce(session: Session, topic: str, idempotence: bool = False) -> str:
    producer = Producer(
        _config(
            session,
            enable_idempotence=idempotence,
            message_timeout_ms=int(session.patience * 1000),
        )
    )
    outcome = _deliver(session, producer, topic)
    producer.purge()
    return outcome


def _produce_idempotently(session: Session, topic: str) -> str:
    return _produce(session, topic, idempotence=True)


def _produce_in_transaction(session: Session, transactional_id: str, topic: str) -> str:
    millis = int(session.patience * 1000)
    producer = Producer(
        _config(
            session,
            transactional_id=transactional_id,
            transaction_timeout_ms=millis,
            message_timeout_ms=millis,
        )
    )
    producer.init_transactions(session.left)
    producer.begin_transaction()
    outcome = _deliver(session, producer, topic)
    if outcome == DONE:
        producer.commit_transaction(session.left)
    return outcome


def _consumer(session: Session, group: str, **more: Any) -> Consumer:
    config = _config(
        session,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        enable_partition_eof=True,
        **more,
    )
    return Consumer(config)


def _read(session: Session, consumer: Consumer) -> str:
    """Poll until a fetch was answered: by a record, the end of the partition or an error."""
    try:
        while session.left:
            message = consumer.poll(0.05)
            if message is not None:
                error = message.error()
                if error and error.code() != KafkaError._PARTITION_EOF:
                    return _name(error)
                return DONE
        return NOTHING
    finally:
        consumer.close()


def _assign(session: Session, topic: str, group: str) -> str:
    consumer = _consumer(session, group)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    return _read(session, consumer)


def _subscribe(session: Session, topic: str, group: str, **more: Any) -> str:
    consumer = _consumer(session, group, **more)
    consumer.subscribe([topic])
    return _read(session, consumer)


def _subscribe_by_heartbeat(session: Session, topic: str, group: str) -> str:
    return _subscribe(session, topic, group, group_protocol="consumer")


def _commit(session: Session, topic: str, group: str) -> str:
    consumer = _consumer(session, group)
    try:
        committed = consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        return _name(committed[0].error) if committed[0].error else DONE
    finally:
        consumer.close()


def _administer(request: Callable[[AdminClient, str], dict[Any, Any]]) -> Callable[..., str]:
    def attempt(session: Session, name: str) -> str:
        admin = AdminClient(_config(session))
        (future,) = request(admin, name).values()
        future.result(session.left)
        return DONE

    return attempt


ATTEMPTS: dict[str, Callable[..., str]] = {
    "produce": _produce,
    "produce-idempotently": _produce_idempotently,
    "produce-in-transaction": _produce_in_transaction,
    "assign": _assign,
    "subscribe": _subscribe,
    "subscribe-by-heartbeat": _subscribe_by_heartbeat,
    "commit": _commit,
    "create-topic": _administer(lambda admin, topic: admin.create_topics([NewTopic(topic, 1, 1)])),
    "delete-topic": _administer(lambda admin, topic: admin.delete_topics([topic])),
    "describe-broker-config": _administer(
        lambda admin, broker: admin.describe_configs([ConfigResource(ResourceType.BROKER, broker)])
    ),
    "describe-group": _administer(lambda admin, group: admin.describe_consumer_groups([group])),
    "delete-group": _administer(lambda admin, group: admin.delete_consumer_groups([group])),
    "list-offsets-of-group": _administer(
        lambda admin, group: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)]
        )
    ),
}
