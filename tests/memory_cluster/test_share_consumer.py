"""Java's KafkaShareConsumer (KIP-932): each kind of acknowledgement, no more rights than needed."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from confluent_kafka import Producer

from aclbroker.testing import AclBroker
from tests.memory_cluster.java_programs import java_config, properties_file
from tests.memory_cluster.rights import grant, rights, was_enough
from tests.support.packages import compiled_java, java_command, kafka_clients_jars

GROUP, TOPIC, USER = "workers", "work", "worker"
JAVA = Path(__file__).parent / "java"
WITHIN = 90


@pytest.fixture(params=[pytest.param(1, marks=pytest.mark.thorough), 3])
def broker(request: pytest.FixtureRequest) -> Iterator[AclBroker]:
    with AclBroker(topics={TOPIC: 3}, nodes=request.param) as started:
        yield started


def written(broker: AclBroker, *values: str) -> None:
    """Write records, each to the next partition."""
    producer = Producer(broker.client_config("admin"))
    for number, value in enumerate(values):
        producer.produce(TOPIC, value, partition=number % 3)
    assert producer.flush(20) == 0


def sharer(properties: Path, topic: str, group: str, count: int) -> CompletedProcess[str]:
    """Run a share consumer until it is done with so many records."""
    jars = kafka_clients_jars("4.3.0")
    classes = compiled_java("share-consumer", jars, "Sharer.java", root=JAVA)
    return subprocess.run(
        [*java_command("Sharer", jars, classes), properties, topic, group, str(count)],
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )


def shared(broker: AclBroker, directory: Path, count: int) -> list[str]:
    """What the consumer tells until it is done with so many records."""
    properties = properties_file(directory / "java.properties", java_config(broker, USER))
    done = sharer(properties, TOPIC, GROUP, count)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


NEEDED = [*rights("topic", TOPIC, "READ"), *rights("group", GROUP, "READ", "ALTER_CONFIGS")]


def test_each_record_comes_as_often_as_it_is_not_done_with(broker: AclBroker, tmp_path: Path):
    written(broker, "ACCEPT", "RELEASE", "REJECT")
    grant(broker, USER, NEEDED)
    told = shared(broker, tmp_path, 3)
    assert sorted(told) == [
        "ACCEPT 1 ACCEPT",
        "REJECT 1 REJECT",
        "RELEASE 1 RELEASE",
        "RELEASE 2 ACCEPT",
    ]
    was_enough(broker, NEEDED)


def test_a_record_whose_time_is_renewed_is_not_delivered_anew(tmp_path: Path):
    # By itself: with other records beside it, this client can come to wait for ever.
    with AclBroker(topics={TOPIC: 3}) as broker:
        written(broker, "RENEW")
        grant(broker, USER, NEEDED)
        assert shared(broker, tmp_path, 1) == ["RENEW 1 RENEW", "RENEW 1 ACCEPT"]


def test_a_consumer_without_a_right_is_told_so(tmp_path: Path):
    with AclBroker(topics={TOPIC: 3}) as broker:
        written(broker, "ACCEPT")
        grant(broker, USER, [each for each in NEEDED if each.kind != "topic"])
        broker.grant(USER, "DESCRIBE", topic=TOPIC)
        assert shared(broker, tmp_path, 1) == ["TopicAuthorizationException"]
        broker.grant(USER, "READ", topic=TOPIC)
        assert shared(broker, tmp_path, 1) == ["ACCEPT 1 ACCEPT"]
