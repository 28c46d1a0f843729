"""KRAFT_ACL: the ACLs of a real Kafka 4.3.0 decide beside the centralised ones."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from tests.acl.examples import CLUSTER, DESCRIBE, allow, deny
from tests.conftest import StartBroker
from tests.http_api.test_acls import sees
from tests.providers.test_migration import CONFLUENT_AUTHORIZER, MIGRATES, PROVIDERS
from tests.server.test_status import STATUS, page
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.kafka import STARTS_AGAIN_SOON, Kafka, running_kafka
from tests.support.process import wait_for

WITHIN = 20.0
QUICK = {"aclbroker.provider.kraft.interval.ms": "50"}


def session(address: str) -> Session:
    return open_session(read_addresses(address), ClientSettings())


def acls_of(address: str) -> set[AclBinding]:
    with session(address) as client:
        return set(describe_acls(client))


@pytest.fixture
def address(kafka: Kafka) -> Iterator[str]:
    """A listener of a Kafka that has no ACLs, and has none afterwards."""
    found = kafka.listeners["PLAINTEXT"]
    with session(found) as client:
        delete_acls(client, [AclFilter()])
        yield found
        delete_acls(client, [AclFilter()])


def settings(address: str, tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "authorizer.class.name": CONFLUENT_AUTHORIZER,
        PROVIDERS: "CONFLUENT, KRAFT_ACL",
        "aclbroker.provider.kraft.store": f"kafka+acls://{address}",
        "aclbroker.store": f"sqlite:///{tmp_path}/acl.db",
        **QUICK,
        **more,
    }


def directory(tmp_path: Path) -> Path:
    made = tmp_path / "another"
    made.mkdir()
    return made


def decides(broker: Broker, user: str, topic: str, *, allowed: bool) -> None:
    wait_for(f"{user} {topic}", lambda: sees(broker, user, topic) is allowed or None, WITHIN)


def test_what_kafka_has_decides_and_what_requests_change_is_kafkas(
    address: str, start_broker: StartBroker, tmp_path: Path
) -> None:
    orders = allow(operation=DESCRIBE)
    with session(address) as kafka:
        create_acls(kafka, [orders])
        broker = start_broker(settings(address, tmp_path))
        decides(broker, "alice", "orders", allowed=True)
        create_acls(kafka, [deny(operation=DESCRIBE)])
        decides(broker, "alice", "orders", allowed=False)
        delete_acls(kafka, [exactly(deny(operation=DESCRIBE))])
        decides(broker, "alice", "orders", allowed=True)
    own = broker.listeners["PLAINTEXT"]
    # A change is there for who made it, in Kafka and in decisions, when it is answered.
    for number in range(5):
        made = allow("User:bob", DESCRIBE, f"t{number}")
        with session(own) as client:
            create_acls(client, [made])
            assert sees(broker, "bob", f"t{number}")
            assert acls_of(address) == {orders, made} == acls_of(own)
            assert delete_acls(client, [exactly(made)]) == [made]
            assert not sees(broker, "bob", f"t{number}")
            assert acls_of(address) == {orders} == acls_of(own)


def test_they_are_copied_to_a_file_and_decide_alone_afterwards(
    address: str, start_broker: StartBroker, tmp_path: Path
) -> None:
    orders, gone = allow(operation=DESCRIBE), allow(operation=DESCRIBE, name="gone")
    with session(address) as kafka:
        create_acls(kafka, [orders, gone])
        audit = tmp_path / "audit.jsonl"
        told = {MIGRATES: "true", "aclbroker.audit.file": str(audit)}
        broker = start_broker(settings(address, tmp_path, **told))
        events = broker.events
        wait_for(
            "the copy", lambda: any("migrated" in each["event"] for each in events()) or None, 20
        )
        delete_acls(kafka, [exactly(gone)])
        decides(broker, "alice", "gone", allowed=False)
        broker.properties |= {PROVIDERS: "CONFLUENT", MIGRATES: "false"}
        broker.restart()
        create_acls(kafka, [allow("User:bob", DESCRIBE)])
    assert acls_of(broker.listeners["PLAINTEXT"]) == {orders}
    assert sees(broker, "alice", "orders")
    assert not sees(broker, "bob", "orders")
    lines = [each for each in audit.read_text().splitlines() if MIGRATES in each]
    assert [("CREATE_ACL" in each, "DELETE_ACL" in each) for each in lines] == [
        (True, False),
        (True, False),
        (False, True),
    ]


def test_a_login_that_may_not_describe_is_told_and_one_that_may_not_alter_changes_nothing(
    kafka: Kafka, address: str, start_broker: StartBroker, tmp_path: Path
) -> None:
    client = tmp_path / "alice.properties"
    client.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="alice" password="{PASSWORDS["alice"]}";\n'
    )
    given = settings(
        kafka.listeners["SASL_PLAINTEXT"],
        tmp_path,
        **{"aclbroker.provider.kraft.client.config": str(client)},
    )
    with pytest.raises(RuntimeError, match="CLUSTER_AUTHORIZATION_FAILED"):
        start_broker(given)
    may_describe = allow(operation=DESCRIBE, resource_type=CLUSTER, name="kafka-cluster")
    with session(address) as admin:
        create_acls(admin, [may_describe])
    wait_for("the ACL", lambda: acls_of(address) == {may_describe} or None, WITHIN)
    broker = start_broker(given, directory(tmp_path))
    with session(broker.listeners["PLAINTEXT"]) as admin:
        with pytest.raises(RequestRefused, match="could not save the change"):
            create_acls(admin, [allow()])
        with pytest.raises(RequestRefused, match="could not save the change"):
            delete_acls(admin, [AclFilter()])
    assert acls_of(broker.listeners["PLAINTEXT"]) == {may_describe} == acls_of(address)


@pytest.mark.broker_process
def test_a_broker_that_was_stopped_allows_nothing_that_was_revoked_meanwhile(
    address: str, start_broker: StartBroker, tmp_path: Path
) -> None:
    revoked, kept = allow(operation=DESCRIBE), allow("User:bob", DESCRIBE)
    stale = {"aclbroker.store.stale": "deny", "aclbroker.store.max.lag.ms": "500"}
    slow = {"aclbroker.provider.kraft.interval.ms": "20000"}
    with session(address) as kafka:
        create_acls(kafka, [revoked, kept])
        broker = start_broker(settings(address, tmp_path, **STATUS, **stale, **slow))
        decides(broker, "alice", "orders", allowed=True)
        broker.running.send_signal(signal.SIGSTOP)
        delete_acls(kafka, [exactly(revoked)])
        # The broker is stopped for longer than aclbroker.store.max.lag.ms.
        time.sleep(1.5)
        broker.running.send_signal(signal.SIGCONT)
        assert not sees(broker, "alice", "orders")
        decides(broker, "bob", "orders", allowed=True)
        assert not sees(broker, "alice", "orders")


@pytest.mark.thorough
def test_a_kafka_out_of_reach_is_not_ready_and_changes_fail_until_it_is_back(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    directory = tmp_path / "kafka"
    directory.mkdir()
    with running_kafka(directory, STARTS_AGAIN_SOON) as kafka:
        address = kafka.listeners["PLAINTEXT"]
        with session(address) as client:
            create_acls(client, [allow(operation=DESCRIBE)])
        stale = {"aclbroker.store.stale": "deny", "aclbroker.store.max.lag.ms": "1000"}
        broker = start_broker(settings(address, tmp_path, **STATUS, **stale))
        decides(broker, "alice", "orders", allowed=True)
        kafka.kill()
        # Nothing was heard of it for longer than a second: all is denied.
        decides(broker, "alice", "orders", allowed=False)
        wait_for("not ready", lambda: page(broker, "/readyz")[0] == 503 or None, WITHIN)
        assert address in page(broker, "/readyz")[1]
        with (
            session(broker.listeners["PLAINTEXT"]) as client,
            pytest.raises(RequestRefused, match="cannot be reached now"),
        ):
            create_acls(client, [allow("User:bob")])
        kafka.start_again()
        decides(broker, "alice", "orders", allowed=True)
        wait_for("ready", lambda: page(broker, "/readyz")[0] == 200 or None, WITHIN)
