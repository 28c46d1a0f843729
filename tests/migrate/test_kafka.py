"""ACLs into a real Kafka 4.3.0 and out of it, by requests and by the files of its controller."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.broker.client.acls import create_acls, delete_acls, exactly
from tests.acl.examples import CLUSTER, DESCRIBE, READ, WRITE, allow, deny
from tests.migrate.running import (
    contents,
    described,
    fill,
    following,
    migrate,
    session_with,
    wait_until_equal,
)
from tests.support.accounts import PASSWORDS
from tests.support.kafka import Kafka
from tests.support.process import wait_for
from tests.support.random_acls import random_acls

ACLS = random_acls(Random(43), 4000, unprintable=True)


@pytest.fixture
def address(kafka: Kafka) -> Iterator[str]:
    """A listener of a Kafka that has no ACLs, and has none afterwards."""
    found = kafka.listeners["PLAINTEXT"]
    with session_with(found) as session:
        delete_acls(session, [AclFilter()])
        wait_until_described(found, set())
        yield found
        delete_acls(session, [AclFilter()])


def wait_until_described(address: str, acls: set[AclBinding]) -> None:
    """Wait until the broker tells of these ACLs: it follows its controller, maybe a bit behind."""
    wait_for(f"{len(acls)} ACLs", lambda: described(address) == acls or None, 30)


def test_acls_go_into_a_kafka_and_come_out_of_it_and_of_its_files_as_they_were(
    kafka: Kafka, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/acls.yaml", ACLS)
    cluster = f"kafka+acls://{address}"
    assert migrate(source, cluster) == 0
    assert described(address) == set(ACLS)
    assert "Verified: the target has all 4,000 ACLs of the source." in capsys.readouterr().out

    for origin in (cluster, f"kraft:///{kafka.directory}/data"):
        for end in ("db", "json"):
            scheme = "sqlite:///" if end == "db" else "file:"
            target = f"{scheme}{tmp_path}/{origin[:5]}.{end}"
            assert migrate(origin, target) == 0
            assert contents(target) == set(ACLS)
    capsys.readouterr()
    assert migrate(source, cluster, "--prune") == 0
    assert "to add: 0 ACLs; there already: 4,000" in capsys.readouterr().out


def test_what_the_source_has_not_is_removed_from_a_kafka_when_told_so(
    address: str, tmp_path: Path
) -> None:
    cluster = f"kafka+acls://{address}"
    with session_with(address) as session:
        create_acls(session, ACLS[:1500])
    wait_until_described(address, set(ACLS[:1500]))
    source = fill(f"file:{tmp_path}/acls.csv", ACLS[1000:2000])
    assert migrate(source, cluster) == 0
    assert described(address) == set(ACLS[:2000])
    assert migrate(source, cluster, "--prune") == 0
    assert described(address) == set(ACLS[1000:2000])


@pytest.mark.parametrize("way", ["requests", "files"])
def test_changes_of_a_kafka_are_followed(
    kafka: Kafka, address: str, tmp_path: Path, way: str
) -> None:
    source = f"kafka+acls://{address}"
    if way == "files":
        source = f"kraft:///{kafka.directory}/data"
    target = f"file:{tmp_path}/acls.json"
    there: set[AclBinding] = set(ACLS[:100])
    with session_with(address) as session:
        create_acls(session, ACLS[:100])
        wait_until_described(address, there)
        with following(tmp_path, source, target) as process:
            assert contents(target) == there
            for first in (100, 300, 500):
                create_acls(session, ACLS[first : first + 200])
                delete_acls(session, [exactly(acl) for acl in ACLS[first - 50 : first]])
                there.update(ACLS[first : first + 200])
                there.difference_update(ACLS[first - 50 : first])
                wait_until_equal(target, there)
            process.running.send_signal(signal.SIGINT)
            assert process.running.wait(15) == 0


def test_changes_of_a_file_are_brought_to_a_kafka(address: str, tmp_path: Path) -> None:
    source = fill(f"file:{tmp_path}/acls.yaml", ACLS[:10])
    with following(tmp_path, source, f"kafka+acls://{address}") as process:
        fill(source, ACLS[10:20])
        wait_until_equal(f"kafka+acls://{address}", ACLS[:20])
        (tmp_path / "acls.yaml").unlink()
        fill(source, [*ACLS[5:15], allow("User:new", READ)])
        wait_until_equal(f"kafka+acls://{address}", [*ACLS[5:15], allow("User:new", READ)])
        assert process.terminate() == 0


def test_who_may_not_see_or_change_the_acls_of_a_kafka_is_told(
    kafka: Kafka, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listener = f"kafka+acls://{kafka.listeners['SASL_PLAINTEXT']}"
    config = tmp_path / "bob.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="bob" password="{PASSWORDS["bob"]}";\n'
    )
    file = fill(f"file:{tmp_path}/acls.yaml", [allow("User:a", READ), deny("User:a", WRITE)])
    assert migrate(listener, file, "--from-config", str(config)) == 1
    assert "needs DESCRIBE on the cluster" in capsys.readouterr().err

    can_describe = allow("User:bob", DESCRIBE, "kafka-cluster", resource_type=CLUSTER)
    with session_with(address) as session:
        create_acls(session, [can_describe])
    wait_until_described(address, {can_describe})
    assert migrate(file, listener, "--command-config", str(config)) == 1
    told = capsys.readouterr().err
    assert "cannot be created: CLUSTER_AUTHORIZATION_FAILED" in told
    assert "needs ALTER on the cluster" in told
    assert PASSWORDS["bob"] not in told
    assert described(address) == {can_describe}
