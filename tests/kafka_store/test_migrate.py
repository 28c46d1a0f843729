"""ACLs go into a topic of a real Kafka and come out of it."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient

from tests.acl.examples import READ, WRITE, allow, deny
from tests.migrate.running import contents, fill, following, migrate, wait_until_equal
from tests.support.kafka import Kafka, free_ports
from tests.support.random_acls import random_acls

OURS, DENIED = allow("User:alice", READ), deny("User:bob", WRITE)


def test_thousands_of_acls_of_any_name_go_through_a_topic(kafka: Kafka, tmp_path: Path) -> None:
    acls = random_acls(Random(13), 3000, unprintable=True)
    topic = f"kafka://{kafka.listeners['PLAINTEXT']}/moved"
    source = fill(f"file:{tmp_path}/a.json", acls)
    assert migrate(source, topic) == 0
    assert migrate(topic, f"sqlite:///{tmp_path}/b.db") == 0
    assert contents(f"sqlite:///{tmp_path}/b.db") == set(acls)
    few = fill(f"file:{tmp_path}/c.json", acls[:100])
    assert migrate(few, topic, "--prune") == 0
    assert contents(topic) == set(acls[:100])


def test_changes_in_a_topic_are_followed(kafka: Kafka, tmp_path: Path) -> None:
    topic = fill(f"kafka://{kafka.listeners['PLAINTEXT']}/followed", [OURS])
    target = f"file:{tmp_path}/b.json"
    with following(tmp_path / "log", topic, target) as process:
        fill(topic, [DENIED])
        wait_until_equal(target, [OURS, DENIED])
        process.running.send_signal(signal.SIGINT)
        assert process.running.wait(15) == 0


def topics(kafka: Kafka) -> set[str]:
    """The names of all topics of a cluster."""
    admin = AdminClient({"bootstrap.servers": kafka.listeners["PLAINTEXT"]})
    return set(admin.list_topics(timeout=30).topics)


def test_a_dry_run_makes_no_topic(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/a.json", [OURS, DENIED])
    topic = f"kafka://{kafka.listeners['PLAINTEXT']}/only-planned"
    assert migrate(source, topic, "--dry-run") == 0
    assert "to add: 2 ACLs" in capsys.readouterr().out
    assert "only-planned" not in topics(kafka)
    assert migrate(source, topic) == 0
    assert contents(topic) == {OURS, DENIED}


def test_a_topic_that_is_not_there_is_no_source(
    kafka: Kafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = f"kafka://{kafka.listeners['PLAINTEXT']}/none"
    assert migrate(topic, f"file:{tmp_path}/a.json") == 1
    assert f"{topic}: there is no such topic" in capsys.readouterr().err
    assert "none" not in topics(kafka)
    [port] = free_ports(1)
    assert migrate(f"kafka://127.0.0.1:{port}/none", f"file:{tmp_path}/a.json") == 1
    assert f"kafka://127.0.0.1:{port}/none" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()
