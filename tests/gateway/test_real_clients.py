"""Kafka's console tools and librdkafka through a gateway, before a real Kafka 4.3.0."""

import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.acl_command import Commands
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.memory_cluster.test_java_tools import User
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.process import wait_for

WITHIN = 30.0
TOPIC, GROUP = 2, 3
LITERAL = ALLOW = 3


def login(gateway: Broker, user: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": gateway.listeners["SASL_PLAINTEXT"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
        **more,
    }


def allow(gateway: Broker, user: str, topic: str, *operations: int) -> None:
    codes = raw.admin(gateway).create(*(raw.acl(user, each, topic) for each in operations))
    assert not any(codes)


def create(gateway: Broker, topic: str) -> None:
    """Create a topic of one partition, and wait until it has a leader."""
    admin = raw.admin(gateway)
    created = CreateTopicsRequest([CreatableTopic(topic, 1, 1)], 10_000)
    assert admin.ask(ApiKey.CREATE_TOPICS, 7, created).topics[0].error_code == 0

    def is_led() -> bool | None:
        asked = MetadataRequest([MetadataRequestTopic(name=topic)], False)
        [found] = admin.ask(ApiKey.METADATA, 12, asked).topics
        return True if not found.error_code and not found.partitions[0].error_code else None

    wait_for("a leader", is_led, WITHIN)


def values(consumer: Consumer, count: int) -> list[str]:
    """Return the values of the next messages, or the name of the first error alone."""
    read: list[str] = []
    until = time.monotonic() + WITHIN
    while len(read) < count and time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if (error := message.error()) is not None:
            return [error.name()]
        read.append((message.value() or b"").decode())
    return read


def test_the_console_tools_write_and_read_what_the_acls_allow(
    before_kafka: Broker, tmp_path: Path, commands: Commands
):
    alice, topic = User(before_kafka, tmp_path, commands), f"console-{uuid.uuid4().hex}"
    create = ("--create", "--topic", topic, "--partitions", 2)
    assert "AuthorizationException" in alice.fails("topics", *create)
    alice.may(topic, raw.CREATE, raw.DESCRIBE)
    assert f"Created topic {topic}." in alice.runs("topics", *create)
    produce = ("--topic", topic)
    began = time.monotonic()
    refused = alice.fails("console-producer", *produce, given="one\n")
    assert "ClusterAuthorizationException" in refused
    alice.may(topic, raw.WRITE)
    alice.runs("console-producer", *produce, given="one\ntwo\n")
    consume = ("--topic", topic, "--group", topic, "--from-beginning", "--max-messages", 2)
    assert "GroupAuthorizationException" in alice.fails("console-consumer", *consume)
    alice.may(topic, raw.READ)
    alice.may_on_group(topic, raw.READ)
    assert sorted(alice.runs("console-consumer", *consume).split()) == ["one", "two"]
    assert time.monotonic() - began < WITHIN
    assert topic in alice.runs("topics", "--list")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_writes_and_a_group_of_it_reads(before_kafka: Broker, protocol: str):
    topic = f"rdkafka-{uuid.uuid4().hex}"
    allow(before_kafka, "alice", topic, raw.WRITE, raw.CREATE)
    producer = Producer(login(before_kafka, "alice", **{"enable.idempotence": True}))
    written = [str(number).encode() for number in range(500)]
    for value in written:
        producer.produce(topic, value)
    assert producer.flush(WITHIN) == 0
    group = {
        "group.id": topic,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(login(before_kafka, "bob", **group))
    try:
        consumer.subscribe([topic])
        assert values(consumer, 1) == ["GROUP_AUTHORIZATION_FAILED"]
    finally:
        consumer.close()
    allow(before_kafka, "bob", topic, raw.READ)
    assert raw.admin(before_kafka).create(
        AclCreation(GROUP, topic, LITERAL, "User:bob", "*", raw.READ, ALLOW)
    ) == [0]
    consumer = Consumer(login(before_kafka, "bob", **group))
    try:
        consumer.subscribe([topic])
        assert sorted(values(consumer, 500), key=int) == [value.decode() for value in written]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def test_a_producer_without_write_is_refused_within_a_second(before_kafka: Broker):
    topic = f"refused-{uuid.uuid4().hex}"
    create(before_kafka, topic)
    allow(before_kafka, "alice", topic, raw.DESCRIBE)
    errors: list[str] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        errors.append(error.name() if error is not None else "none")

    producer = Producer(login(before_kafka, "alice", acks=1))
    assert producer.list_topics(topic, WITHIN).topics[topic].error is None
    producer.produce(topic, b"one", on_delivery=delivered)
    assert producer.flush(1) == 0
    assert errors == ["TOPIC_AUTHORIZATION_FAILED"]


def test_a_right_that_is_revoked_while_a_fetch_waits_holds_for_its_answer(before_kafka: Broker):
    topic = f"revoked-{uuid.uuid4().hex}"
    admin = raw.admin(before_kafka)
    create(before_kafka, topic)
    allow(before_kafka, "bob", topic, raw.READ)
    bob = raw.logged_in(before_kafka, "bob")
    asked = raw.request({topic: [raw.partition(0)]}, max_wait_ms=20_000)
    bob.request(ApiKey.FETCH, 12, asked)
    ours = DeleteAclsFilter(TOPIC, topic, LITERAL, "User:bob", None, 1, 1)
    admin.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([ours]))
    # Only now there is a record for which the Fetch waits.
    assert raw.write(admin, topic, batch(b"secret")).error_code == 0
    _, answer = bob.response(ApiKey.FETCH, 12)
    assert raw.told(answer) == [(topic, 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
