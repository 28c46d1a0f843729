"""Kafka's own tools for share groups (KIP-932), with no more rights than they need."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.clients.acl_command import Commands
from tests.memory_cluster import raw
from tests.memory_cluster.test_java_tools import User
from tests.support.broker import Broker

CREATE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, READ, WRITE, DELETE = (
    raw.CREATE,
    raw.DESCRIBE,
    raw.DESCRIBE_CONFIGS,
    raw.ALTER_CONFIGS,
    raw.READ,
    raw.WRITE,
    raw.DELETE,
)


@pytest.fixture
def name() -> str:
    return f"share-{uuid.uuid4().hex}"


def written(alice: User, topic: str, *values: str) -> None:
    """Make a topic of two partitions, and write records to it."""
    alice.may(topic, CREATE, WRITE)
    alice.runs("topics", "--create", "--topic", topic, "--partitions", 2)
    alice.runs("console-producer", "--topic", topic, given="".join(f"{each}\n" for each in values))


def from_the_beginning(alice: User, group: str) -> None:
    """Let a share group begin where the logs do."""
    alice.may_on_group(group, ALTER_CONFIGS)
    alter = ("--alter", "--entity-type", "groups", "--entity-name", group)
    alice.runs("configs", *alter, "--add-config", "share.auto.offset.reset=earliest")


def test_a_share_consumer_reads_each_record_once(
    broker: Broker, name: str, tmp_path: Path, commands: Commands
):
    alice = User(broker, tmp_path, commands)
    written(alice, name, "one", "two", "three")
    from_the_beginning(alice, name)
    consume = ("--topic", name, "--group", name, "--timeout-ms", 8000)
    assert "GroupAuthorizationException" in alice.fails("console-share-consumer", *consume)
    alice.may_on_group(name, READ)
    alice.may(name, DESCRIBE)
    assert "TopicAuthorizationException" in alice.fails("console-share-consumer", *consume)
    alice.may(name, READ)
    output = alice.runs("console-share-consumer", *consume, "--max-messages", 3)
    assert sorted(output.split()) == ["one", "three", "two"]
    alice.runs("console-producer", "--topic", name, given="four\n")
    output = alice.runs("console-share-consumer", *consume, "--max-messages", 1)
    assert output.split() == ["four"]


def test_share_groups_are_listed_described_reset_and_deleted(
    node: Broker, name: str, tmp_path: Path, commands: Commands
):
    alice = User(node, tmp_path, commands)
    written(alice, name, "one", "two", "three")
    from_the_beginning(alice, name)
    alice.may_on_group(name, READ)
    alice.may(name, READ)
    consume = ("--topic", name, "--group", name, "--timeout-ms", 8000, "--max-messages", 3)
    alice.runs("console-share-consumer", *consume)
    assert name in alice.runs("share-groups", "--list").split()
    of_group = ("--group", name)
    offsets = alice.runs("share-groups", "--describe", "--offsets", *of_group)
    # As by Kafka the start is told that was before the last acknowledgement, and the lag of now.
    [line] = [each for each in offsets.splitlines() if each.split()[-1:] == ["0"]]
    assert line.split()[:2] == [name, name]
    state = alice.runs("share-groups", "--describe", "--state", *of_group)
    assert "Empty" in state
    of_topic = (*of_group, "--topic", name)
    reset = ("--reset-offsets", "--to-earliest", "--execute")
    alice.runs("share-groups", *reset, *of_topic)
    output = alice.runs("console-share-consumer", *consume)
    assert sorted(output.split()) == ["one", "three", "two"]
    _, output, _ = alice.run("share-groups", "--delete-offsets", *of_topic)
    assert f"Not authorized: DELETE on GROUP {name} is needed." in output
    alice.may_on_group(name, DELETE)
    assert "Successful" in alice.runs("share-groups", "--delete-offsets", *of_topic)
    assert "was successful" in alice.runs("share-groups", "--delete", *of_group)
    assert name not in alice.runs("share-groups", "--list").split()


def test_the_verifiable_share_consumer_acknowledges_all_records(
    nodes: Broker, name: str, tmp_path: Path, commands: Commands
):
    alice = User(nodes, tmp_path, commands)
    alice.may(name, CREATE, WRITE)
    alice.runs("topics", "--create", "--topic", name)
    alice.runs("verifiable-producer", "--topic", name, "--max-messages", 100)
    from_the_beginning(alice, name)
    alice.may(name, READ)
    alice.may_on_group(name, READ)
    consume = ("--topic", name, "--group-id", name, "--max-messages", 100)
    output = alice.runs("verifiable-share-consumer", *consume)
    assert '"name":"records_consumed"' in output
    assert '"name":"offsets_acknowledged"' in output
