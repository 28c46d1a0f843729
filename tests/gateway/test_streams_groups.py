"""Kafka Streams' word count through a gateway before a real Kafka, with both group protocols."""

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest
from tests.memory_cluster import raw
from tests.memory_cluster.commands import client_properties
from tests.memory_cluster.java_programs import Program, running
from tests.support.broker import Broker
from tests.support.kafka import Kafka
from tests.support.packages import streams_example_jars

INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
LINES = ("all streams lead to kafka", "hello kafka streams", "join kafka summit")
WORDS = Counter(word for line in LINES for word in line.split())
TOPIC, GROUP, TXN_ID = 2, 3, 5
LITERAL, PREFIXED = 3, 4
ALLOW = 3
MAIN = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"


def allow(gateway: Broker, kind: int, name: str, pattern: int, *operations: int) -> None:
    made = [
        AclCreation(kind, name, pattern, "User:alice", "*", operation, ALLOW)
        for operation in operations
    ]
    assert not any(raw.admin(gateway).create(*made))


@pytest.fixture
def gateway(before_kafka: Broker) -> Broker:
    """The gateway, with the topics of the example."""
    admin = raw.admin(before_kafka)
    topics = [CreatableTopic(name, 1, 1) for name in (INPUT, OUTPUT)]
    answer = admin.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 10_000))
    assert {topic.error_code for topic in answer.topics} <= {0, 36}
    allow(before_kafka, TOPIC, INPUT, LITERAL, raw.READ)
    allow(before_kafka, TOPIC, OUTPUT, LITERAL, raw.WRITE)
    return before_kafka


def word_count(
    server: Broker | Kafka, login: str, directory: Path, application: str, protocol: str
) -> Program:
    """Return the application; its login is given as lines of a properties file."""
    path = directory / "streams.properties"
    path.write_text(
        f"{login}bootstrap.servers={server.listeners['SASL_PLAINTEXT']}\n"
        f"application.id={application}\nprocessing.guarantee=exactly_once_v2\n"
        f"commit.interval.ms=100\nstate.dir={directory / 'state'}\ngroup.protocol={protocol}\n"
    )
    return Program(directory / "program", MAIN, streams_example_jars(), path)


def alice(directory: Path) -> str:
    """Return the login of alice."""
    return client_properties(directory, "alice").read_text()


class Counts:
    """The counts of each word that were committed since now."""

    def __init__(self, server: Broker | Kafka) -> None:
        self.of: dict[str, int] = {}
        settings: dict[str, Any] = {
            "bootstrap.servers": server.listeners["PLAINTEXT"],
            "group.id": "none",
            "isolation.level": "read_committed",
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(OUTPUT, 0, self.end_of(OUTPUT))])

    def end_of(self, topic: str) -> int:
        """Return how many records a topic has."""
        _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), 20)
        return int(end)

    def read(self) -> dict[str, int]:
        for message in self._consumer.consume(1000, timeout=0.1):
            assert message.error() is None, message.error()
            key, value = message.key() or b"", message.value() or b""
            self.of[str(key, "utf-8")] = int.from_bytes(value, "big")
        return self.of


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_words_are_counted_with_no_more_rights_than_needed(
    gateway: Broker, tmp_path: Path, protocol: str
):
    application = f"count-{uuid.uuid4().hex}"
    allow(gateway, GROUP, application, LITERAL, raw.READ)
    allow(gateway, TXN_ID, f"{application}-", PREFIXED, raw.WRITE)
    allow(gateway, TOPIC, f"{application}-", PREFIXED, raw.READ, raw.WRITE, raw.DELETE)
    allow(gateway, TOPIC, f"{application}-", PREFIXED, raw.CREATE)
    counts = Counts(gateway)
    with running(word_count(gateway, alice(tmp_path), tmp_path, application, protocol)) as program:
        producer = Producer({"bootstrap.servers": gateway.listeners["PLAINTEXT"]})
        for line in LINES:
            producer.produce(INPUT, line.encode())
        assert producer.flush(20) == 0
        # The application begins with the lines of the tests before.
        times = counts.end_of(INPUT) // len(LINES)
        expected = {word: count * times for word, count in WORDS.items()}
        program.until(lambda: counts.read() == expected or None)
        program.terminate()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_without_create_the_internal_topics_are_not_made(
    gateway: Broker, tmp_path: Path, protocol: str
):
    application = f"refused-{uuid.uuid4().hex}"
    allow(gateway, GROUP, application, LITERAL, raw.READ)
    allow(gateway, TXN_ID, f"{application}-", PREFIXED, raw.WRITE)
    allow(gateway, TOPIC, f"{application}-", PREFIXED, raw.READ, raw.WRITE, raw.DELETE)
    with running(word_count(gateway, alice(tmp_path), tmp_path, application, protocol)) as program:
        program.until(lambda: "TopicAuthorizationException" in program.log_text() or None)
    topics = raw.admin(gateway).ask(ApiKey.METADATA, 12, MetadataRequest(None)).topics
    assert not [topic.name for topic in topics if topic.name.startswith(application)]
