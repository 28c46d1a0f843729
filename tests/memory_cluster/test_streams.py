"""Kafka Streams' word count, exactly once, with the rights that docs/applications.md gives it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from aclbroker.testing import AclBroker
from tests.memory_cluster.java_programs import (
    Program,
    assert_just_enough,
    documented,
    java_config,
    properties_file,
    running,
)
from tests.support.packages import streams_example_jars

INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
PARTITIONS: Final = 2
USER: Final = "wordcount"
LINES: Final = ("all streams lead to kafka", "hello kafka streams", "join kafka summit")
WORDS_BY_KEY: Final = f"{USER}-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"
REPEATED: Final = 20
WORDS: Final = Counter(word for line in LINES for word in line.split() * REPEATED)


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    """Three nodes with the topics of the example, which may do what is documented."""
    topics = {INPUT: PARTITIONS, OUTPUT: PARTITIONS}
    with AclBroker(documented("streams.yaml"), topics=topics, nodes=3) as started:
        yield started


def word_count(broker: AclBroker, directory: Path, **more: str) -> Program:
    """The application, with a state of its own."""
    settings = {
        **java_config(broker, USER),
        "application.id": USER,
        "processing.guarantee": "exactly_once_v2",
        "commit.interval.ms": 100,
        "repartition.purge.interval.ms": 100,
        "state.dir": directory / "state",
        **more,
    }
    path = properties_file(directory / "streams.properties", settings)
    main = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
    return Program(directory, main, streams_example_jars(), path)


class Counts:
    """The counts of each word that were committed, in their order."""

    def __init__(self, broker: AclBroker) -> None:
        self.of: dict[str, list[int]] = {}
        # In no group, which would time out as well when the broker's time is moved.
        self._consumer = Consumer(
            broker.client_config("admin") | {"group.id": "none", "log_level": 0}
        )
        self._consumer.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])

    def read(self) -> int:
        """Read what there is; returns how many counts were read so far."""
        for message in self._consumer.consume(1000, timeout=0.1):
            assert message.error() is None, message.error()
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            self.of.setdefault(key.decode(), []).append(int.from_bytes(value, "big"))
        return sum(map(len, self.of.values()))

    def close(self) -> None:
        self._consumer.close()


def written_to(broker: AclBroker, topic: str) -> int:
    """Return how many records were ever written to a topic, committed or not."""
    own = {"group.id": "none", "log_level": 0, "isolation.level": "read_uncommitted"}
    consumer = Consumer(broker.client_config("admin") | own)
    ends = [
        offsets[1]
        for index in range(PARTITIONS)
        if (offsets := consumer.get_watermark_offsets(TopicPartition(topic, index), 10))
    ]
    consumer.close()
    return sum(ends)


def write_lines(broker: AclBroker) -> None:
    producer = Producer(broker.client_config("admin") | {"log_level": 0})
    for _ in range(REPEATED):
        for line in LINES:
            producer.produce(INPUT, line.encode())
    assert producer.flush(10) == 0


def test_words_are_counted_exactly_once_over_a_crash(broker: AclBroker, tmp_path: Path):
    counts = Counts(broker)
    write_lines(broker)
    with running(word_count(broker, tmp_path / "first")) as first:
        first.until(lambda: counts.read() >= WORDS.total() or None)
        first.terminate()
    # As it means to come back soon, it stays in its group until its session times out.
    broker.advance(60)
    # The second never comes to the end of its transaction, in which it writes words to be counted.
    slow = {"commit.interval.ms": "100000", "producer.transaction.timeout.ms": "200000"}
    before = written_to(broker, WORDS_BY_KEY)
    write_lines(broker)
    with running(word_count(broker, tmp_path / "second", **slow)) as second:
        second.until(lambda: written_to(broker, WORDS_BY_KEY) > before or None)
        second.kill()
    # Its session and its transaction time out; the third restores what the first had committed.
    broker.advance(201)
    with running(word_count(broker, tmp_path / "third")) as third:
        third.until(lambda: counts.read() >= 2 * WORDS.total() or None)
        third.until(lambda: deletes_what_it_read(broker) or None)
        third.terminate()
    counts.read()
    assert counts.of == {word: list(range(1, 2 * count + 1)) for word, count in WORDS.items()}
    counts.close()
    assert_just_enough(broker, documented("streams.yaml"))


def deletes_what_it_read(broker: AclBroker) -> bool:
    return any(asked.operation.name == "DELETE" for asked in broker.used())


def test_a_right_that_is_missing_is_named(broker: AclBroker, tmp_path: Path):
    group = [acl for acl in documented("streams.yaml") if acl.resource_name == USER]
    broker.revoke(group)
    with running(word_count(broker, tmp_path)) as program:
        program.until(lambda: broker.denials() or None)
        program.until(lambda: "GroupAuthorizationException" in program.log_text() or None)
    [told] = {str(denial) for denial in broker.denials()}
    assert told == (
        "User:wordcount from 127.0.0.1: FindCoordinator needs DESCRIBE on GROUP wordcount; "
        "to allow it: add ALLOW READ on GROUP LITERAL wordcount to User:wordcount from *, "
        "which also gives DESCRIBE"
    )


def test_groups_of_streams_are_refused_at_once(broker: AclBroker, tmp_path: Path):
    settings = {"group.protocol": "streams"}
    with running(word_count(broker, tmp_path, **settings)) as program:
        program.until(
            lambda: "does not support the STREAMS group protocol" in program.log_text() or None
        )
