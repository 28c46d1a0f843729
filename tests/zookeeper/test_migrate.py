"""ACLs go into a ZooKeeper and come out of it; what it cannot hold is told."""

from __future__ import annotations

import signal
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from kazoo.client import KazooClient

from aclbroker.acl.bindings import AclFilter, AclOperation
from aclbroker.broker.client.acls import delete_acls
from aclbroker.cli.migrate.places import open_place
from tests.acl.examples import READ, WRITE, allow, deny
from tests.conftest import StartBroker
from tests.http_api.api import MDS, held
from tests.http_api.test_migrate import config, url_of
from tests.migrate.running import (
    contents,
    described,
    fill,
    following,
    migrate,
    session_with,
    wait_until_equal,
)
from tests.stores.test_zookeeper_layout import entry, node
from tests.support.kafka import Kafka, free_ports
from tests.support.process import wait_for
from tests.support.random_acls import random_acls
from tests.support.zookeeper import Zookeeper

LISTENER_OF_A = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,A://127.0.0.1:0",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,A:PLAINTEXT"
    ),
    "aclbroker.clusters.lkc-A.listeners": "A",
    "aclbroker.clusters.lkc-A.super.users": "User:admin;User:ANONYMOUS",
}
OURS, DENIED = allow("User:alice", READ), deny("User:bob", WRITE)


@pytest.mark.thorough
def test_thousands_of_acls_go_through_a_zookeeper(connect: str, tmp_path: Path) -> None:
    acls = [
        acl
        for acl in random_acls(Random(11), 2000, awkward=False)
        if acl.operation is not AclOperation.TWO_PHASE_COMMIT
    ]
    source = fill(f"file:{tmp_path}/a.json", acls)
    assert migrate(source, f"zookeeper://{connect}") == 0
    assert migrate(f"zookeeper://{connect}", f"file:{tmp_path}/b.json") == 0
    assert contents(f"file:{tmp_path}/b.json") == set(acls)
    assert migrate(fill(f"file:{tmp_path}/c.json", acls[:10]), f"zookeeper://{connect}") == 0
    assert migrate(f"file:{tmp_path}/c.json", f"zookeeper://{connect}", "--prune") == 0
    assert contents(f"zookeeper://{connect}") == set(acls[:10])


def test_what_a_zookeeper_cannot_hold_is_listed(
    connect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"zookeeper://{connect}"
    lost = deny("User:a", READ, "a/b")
    source = fill(f"file:{tmp_path}/a.json", [OURS, lost])
    assert migrate(source, target) == 1
    told = capsys.readouterr().err
    assert "DENY READ on TOPIC LITERAL a/b to User:a from *: ACLs are kept in ZooKeeper" in told
    assert "Nothing was changed" in told
    assert migrate(source, target, "--accept-lost-denies") == 1
    assert contents(target) == {OURS}


def test_a_dry_run_makes_no_node(
    shared_zookeeper: Zookeeper, connect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = allow("User:a", READ, "a/b")
    source = fill(f"file:{tmp_path}/a.json", [OURS, lost])
    target = f"zookeeper://{connect}"
    assert migrate(source, target, "--dry-run") == 1
    assert "to add: 1 ACL" in capsys.readouterr().out
    assert migrate(target, f"file:{tmp_path}/b.json") == 1
    assert f"{target}: there are no nodes of a store" in capsys.readouterr().err
    client = KazooClient(shared_zookeeper.address)
    client.start()
    assert client.exists("/" + connect.partition("/")[2]) is None
    client.stop()
    client.close()
    assert migrate(source, target) == 1
    assert contents(target) == {OURS}


def test_what_kafka_keeps_there_is_read_without_a_node_of_ours(
    connect: str, zk: KazooClient, tmp_path: Path
) -> None:
    zk.create("/kafka-acl/Topic/payments", node(entry()), makepath=True)
    assert migrate(f"zookeeper://{connect}", f"file:{tmp_path}/a.json") == 0
    assert contents(f"file:{tmp_path}/a.json") == {allow("User:a", name="payments")}
    assert zk.get_children("/") == ["kafka-acl"]


def test_a_node_that_cannot_be_read_is_no_source(
    connect: str, zk: KazooClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = fill(f"zookeeper://{connect}", [OURS, DENIED])
    zk.create("/kafka-acl/Topic/hidden", b"{", makepath=True)
    assert migrate(url, f"file:{tmp_path}/a.json") == 1
    assert "cannot be read may deny anything: TOPIC hidden" in capsys.readouterr().err
    assert not (tmp_path / "a.json").exists()


def test_changes_in_a_zookeeper_are_followed(connect: str, tmp_path: Path) -> None:
    source = fill(f"zookeeper://{connect}", [OURS])
    target = f"sqlite:///{tmp_path}/b.db"
    with following(tmp_path / "log", source, target) as process:
        fill(source, [DENIED])
        wait_until_equal(target, [OURS, DENIED])
        process.running.send_signal(signal.SIGINT)
        assert process.running.wait(15) == 0


@pytest.mark.thorough
def test_who_follows_and_slept_misses_nothing_that_is_told_no_more(
    connect: str, zk: KazooClient, tmp_path: Path
) -> None:
    source = fill(f"zookeeper://{connect}", [OURS])
    others = [allow(f"User:{number}", READ, f"t{number}") for number in range(4)]
    with open_place(source, is_target=True) as place:
        for acl in (DENIED, *others[:2]):
            place.write([acl], [])
        target = f"sqlite:///{tmp_path}/b.db"
        with following(tmp_path / "log", source, target) as process:
            process.running.send_signal(signal.SIGSTOP)
            place.write([], [others[0]])
            for each in zk.get_children("/kafka-acl-changes"):
                zk.delete(f"/kafka-acl-changes/{each}")
            process.running.send_signal(signal.SIGCONT)
            wait_until_equal(target, [OURS, DENIED, others[1]])
            # A recreated directory numbers its nodes from 0 again, and then passes the old number.
            process.running.send_signal(signal.SIGSTOP)
            place.write([], [others[1]])
            zk.delete("/kafka-acl-changes", recursive=True)
            zk.create("/kafka-acl-changes")
            for _ in range(3):
                for acl in others[2:]:
                    place.write([], [acl])
                    place.write([acl], [])
            process.running.send_signal(signal.SIGCONT)
            wait_until_equal(target, [OURS, DENIED, *others[2:]])
            assert process.terminate() == 0


def test_a_zookeeper_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aclbroker.cli.migrate.places.stores.StorePlace.opened_within_s", 0.5)
    [port] = free_ports(1)
    url = f"zookeeper://127.0.0.1:{port}/nothing"
    assert migrate(url, f"file:{tmp_path}/a.json") == 1
    assert f"{url}: it did not answer within 0.5 s" in capsys.readouterr().err


@pytest.mark.thorough
def test_thousands_of_acls_go_through_all_kinds_of_places_and_back(
    connect: str, kafka: Kafka, start_broker: StartBroker, tmp_path: Path, every_case: bool
) -> None:
    count = 10_000 if every_case else 2_000
    zookeeper, bootstrap = f"zookeeper://{connect}", kafka.listeners["PLAINTEXT"]
    central = start_broker({**MDS, **held("lkc-A"), **LISTENER_OF_A})
    with open_place(zookeeper, is_target=True) as place:
        place.read(may_be_new=True)
        drawn = random_acls(Random(17), 2 * count)
        acls = [acl for acl in drawn if place.refusal(acl) is None][:count]
    assert len(acls) == count
    with session_with(bootstrap) as session:
        delete_acls(session, [AclFilter()])
        wait_for("no ACLs", lambda: not described(bootstrap) or None, 30)
        places = [
            fill(f"file:{tmp_path}/first.yaml", acls),
            zookeeper,
            f"sqlite:///{tmp_path}/a.db",
            # Into the centralised server by Kafka's protocol, and out of it by the HTTP API.
            f"kafka+acls://{central.listeners['A']}",
            f"{url_of(central)}",
            f"kafka+acls://{bootstrap}",
            # The log is of the cluster that was filled before.
            f"kraft:///{kafka.directory}/data",
            f"kafka://{bootstrap}/moved-through-all-places",
            f"file:{tmp_path}/b.csv",
            zookeeper + "-again",
            f"sqlite:///{tmp_path}/b.db",
            f"file:{tmp_path}/last.yaml",
        ]
        for source, target in pairwise(places):
            if not target.startswith(("kraft:", "mds+http:")):
                login = ["--from-config", config(tmp_path)] if source.startswith("mds") else []
                assert migrate(source, target, *login) == 0
        delete_acls(session, [AclFilter()])
    first, last = tmp_path / "first.yaml", tmp_path / "last.yaml"
    assert first.read_bytes() == last.read_bytes()
