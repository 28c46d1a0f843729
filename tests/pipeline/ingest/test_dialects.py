"""Lines of the authorizers of Kafka 3.9, as these classes themselves make them, are read."""

import subprocess
from pathlib import Path

import pytest

from aclbroker.pipeline.ingest.kafka_line import KafkaReason, parse
from aclbroker.pipeline.ingest.record import Record
from tests.support.packages import SLF4J, jars, java_command

KAFKA_3_9 = ("org.apache.kafka:kafka_2.13:3.9.1", SLF4J)
FLAGS = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=trace",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    "-Dorg.slf4j.simpleLogger.showLogName=false",
)
PROGRAM = Path(__file__).parents[1] / "java" / "OldLines.java"


def logged() -> list[Record | KafkaReason]:
    """What the lines say that the program logs, in the form of Kafka's own pattern."""
    command = java_command(str(PROGRAM), jars("kafka-3.9.1", KAFKA_3_9), flags=FLAGS)
    done = subprocess.run(command, capture_output=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        level, _, message = line.partition(b" ")
        text = b"[2026-11-21 07:48:42,328] %s %s (kafka.authorizer.logger)" % (level, message)
        said = parse(text, "old")
        assert said is not None
        found.append(said if isinstance(said, KafkaReason) else said[1])
    return found


@pytest.mark.thorough
def test_lines_of_both_authorizers_of_kafka_3_9() -> None:
    alice, admin = "User:alice, of the team", "User:admin"
    expected = [
        (alice, "allowed", True, "MatchingAcl", "kafka-3.3"),
        (alice, "allowed", True, None, "kafka-zookeeper"),
        (alice, "denied", False, "MatchingAcl", "kafka-3.3"),
        (alice, "denied", False, None, "kafka-zookeeper"),
        (alice, "unknown topic", False, "DefaultDeny", "kafka-3.3"),
        (alice, "unknown topic", False, None, "kafka-zookeeper"),
        *(
            (admin, name, True, rule, source)
            for name in ("allowed", "denied", "unknown topic")
            for rule, source in (("SuperUser", "kafka-3.3"), (None, "kafka-zookeeper"))
        ),
    ]
    assert logged() == [
        Record(
            cluster="old",
            listener=None,
            principal=principal,
            other_principals=None,
            host="::1",
            operation="DESCRIBE_CONFIGS",
            resource_type="TOPIC",
            resource_name=name,
            api="DescribeConfigs",
            allowed=allowed,
            rule=rule,
            quiet=False,
            reference_count=2,
            client_id=None,
            source=source,
        )
        for principal, name, allowed, rule, source in expected
    ]
