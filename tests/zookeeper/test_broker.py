"""A broker whose store is in ZooKeeper: its start, its settings, and its ways without ZooKeeper."""

import signal
import time
from pathlib import Path

import pytest

from aclbroker.broker.server.readiness import PROBE_SECONDS
from aclbroker.cli.migrate.places import open_place
from tests.acl.examples import DESCRIBE, allow
from tests.http_api.test_acls import sees
from tests.server.test_scram import SCRAM, alter, described, upsertion
from tests.server.test_status import STATUS, page
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.process import wait_for
from tests.support.zookeeper import ACL_AUTHORIZER, Zookeeper, running_zookeeper

REQUEST_TIMED_OUT = 7
SHORT = {"zookeeper.session.timeout.ms": "1000", "zookeeper.connection.timeout.ms": "1000"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where ZooKeeper has its files."""
    made = tmp_path / "zookeeper"
    made.mkdir()
    return made


def named(broker: Broker, event: str) -> bool | None:
    return any(each["event"] == event for each in broker.events()) or None


def test_it_waits_for_zookeeper_says_so_is_not_ready_and_can_be_stopped(tmp_path, directory):
    zookeeper = Zookeeper(directory)
    store = f"zookeeper://{zookeeper.address}/acls"
    broker = Broker(tmp_path, {"aclbroker.store": store, **STATUS, **SHORT})
    for comes in (False, True):
        broker._properties_file.write_text(
            "".join(f"{name}={value}\n" for name, value in broker.properties.items())
        )
        broker.spawn()
        broker.wait_until_ready(
            lambda: named(broker, "ZooKeeper is not there for ACLs; trying again"), 30
        )
        assert page(broker, "/healthz")[0] == 200
        status, text = page(broker, "/readyz")
        assert (status, text.startswith("the ACLs are not loaded yet")) == (503, True)
        if comes:
            try:
                zookeeper.start()
                broker.wait_until_ready(broker._ready_event, 30)
                assert page(broker, "/readyz") == (200, "ready\n")
            finally:
                zookeeper.kill()
        assert broker.terminate() == 0
        assert named(broker, "stopped")


def test_without_zookeeper_acls_decide_and_changes_are_to_be_tried_again(
    start_broker, directory, tmp_path
):
    with running_zookeeper(directory) as zookeeper:
        broker = start_broker(
            {"aclbroker.store": f"zookeeper://{zookeeper.address}", **STATUS, **SHORT}
        )
        with Client(broker.listeners["PLAINTEXT"]) as client:
            assert client.create(topic_read("before")) == [0]
            assert page(broker, "/readyz") == (200, "ready\n")
            zookeeper.kill()

            def refused() -> bool | None:
                return client.create(topic_read("nobody")) == [REQUEST_TIMED_OUT] or None

            wait_for("a refusal", refused, 30)
            assert "before" in client.resource_names()
            with Client(broker.listeners["SASL_PLAINTEXT"]) as other:
                assert other.login("admin", PASSWORDS["admin"]).error_code == 0
            wait_for(
                "not ready",
                lambda: page(broker, "/readyz")[0] == 503 or None,
                3 * PROBE_SECONDS,
            )
            zookeeper.start()

            def created() -> bool | None:
                return client.create(topic_read("after")) == [0] or None

            wait_for("a change", created, 30)
            assert {"before", "after"} <= set(client.resource_names())
        broker.restart()
        with Client(broker.listeners["PLAINTEXT"]) as client:
            assert {"before", "after"} <= set(client.resource_names())
        assert broker.terminate() == 0


def test_a_broker_that_was_stopped_is_ready_and_allows_again_once_it_has_read_anew(
    tmp_path, connect, zk
):
    stale = {"aclbroker.store.stale": "deny", "aclbroker.store.max.lag.ms": "500"}
    store = f"zookeeper://{connect}"
    revoked, kept = (allow(f"User:{name}", DESCRIBE, "orders") for name in ("alice", "bob"))
    with open_place(store, is_target=True) as place:
        place.write([revoked, kept], [])
        broker = Broker(tmp_path, {"aclbroker.store": store, **STATUS, **SHORT, **stale})
        broker.start()
        try:
            assert sees(broker, "alice", "orders")
            broker.running.send_signal(signal.SIGSTOP)
            place.write([], [revoked])
            for each in zk.get_children("/kafka-acl-changes"):
                zk.delete(f"/kafka-acl-changes/{each}")
            # The broker is stopped for longer than its ZooKeeper session lasts.
            time.sleep(2)
            broker.running.send_signal(signal.SIGCONT)
            assert not sees(broker, "alice", "orders")
            wait_for("the ACLs", lambda: named(broker, "ACLs are up to date again"), 30)
            assert sees(broker, "bob", "orders")
            assert not sees(broker, "alice", "orders")
            assert page(broker, "/readyz")[0] == 200
        finally:
            broker.terminate()


def test_users_of_scram_are_there_after_a_restart_and_at_another_broker(
    start_broker, connect, tmp_path
):
    scram = SCRAM | {"aclbroker.store": f"zookeeper://{connect}"}
    (tmp_path / "other").mkdir()
    broker, other = start_broker(scram), start_broker(scram, directory=tmp_path / "other")
    assert alter(broker, upsertion("carol", "carol-secret")) == [0]
    wait_for("carol", lambda: "carol" in described(other) or None, 20)
    broker.restart()
    for each in (broker, other):
        with Client(each.listeners["SASL_PLAINTEXT"]) as client:
            assert client.login_scram("carol", "carol-secret").error_code == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"authorizer.class.name": ACL_AUTHORIZER, "zookeeper.connect": "{}"},
        {
            "authorizer.class.name": ACL_AUTHORIZER,
            "zookeeper.connect": "127.0.0.1:1",
            "authorizer.zookeeper.url": "{}",
        },
    ],
    ids=["connect", "the authorizer's own"],
)
def test_the_settings_of_a_kafka_with_zookeeper_choose_it(connect, tmp_path, zk, properties):
    broker = Broker(tmp_path, {name: each.format(connect) for name, each in properties.items()})
    del broker.properties["aclbroker.store"]
    broker.start()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("orders")) == [0]
    assert zk.exists("/kafka-acl/Topic/orders")
    assert broker.terminate() == 0
    assert "zookeeper" not in "".join(
        str(each) for each in broker.events() if "no effect" in str(each)
    )


def test_a_store_that_is_named_comes_before_the_settings_of_zookeeper(start_broker):
    broker = start_broker(
        {"authorizer.class.name": ACL_AUTHORIZER, "zookeeper.connect": "127.0.0.1:1"}
    )
    assert "acl.db" in broker._ready_event()["store"]
