"""A real ZooKeeper and a real Kafka lose their data while a broker copies their ACLs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.acls import refusals
from aclbroker.broker.config.access_rules import ACCEPTED_LOSS
from aclbroker.broker.stores.reading import read_acls
from aclbroker.broker.stores.store import new_cluster_id
from tests.acl.examples import DESCRIBE, allow, deny
from tests.conftest import StartBroker
from tests.http_api.test_acls import sees
from tests.migrate.running import contents, following
from tests.providers.test_kraft import QUICK, acls_of, session
from tests.providers.test_migration import CONFLUENT_AUTHORIZER, MIGRATES, PROVIDERS
from tests.server.test_status import STATUS, page
from tests.support.broker import Broker
from tests.support.kafka import Kafka, running_kafka
from tests.support.process import LoggedProcess, wait_for
from tests.support.zookeeper import Zookeeper, running_zookeeper

WITHIN = 60.0
DENIED = deny("User:alice", DESCRIBE, "orders")
ALLOWED = allow("User:*", DESCRIBE, "orders")
ACLS = {DENIED, ALLOWED, *(allow("User:bob", DESCRIBE, f"t{number}") for number in range(98))}
LATE = allow("User:bob", DESCRIBE, "late")


class Migration:
    """Two brokers: one copies a cluster's ACLs to a file, and one decides by that file alone."""

    def __init__(self, start: StartBroker, directory: Path, **own: str) -> None:
        self.file = directory / "central.db"
        both = {
            "authorizer.class.name": CONFLUENT_AUTHORIZER,
            "aclbroker.provider.confluent.store": f"sqlite:///{self.file}",
            "aclbroker.store": f"sqlite:///{self.file}",
            **STATUS,
        }
        copier = {PROVIDERS: "CONFLUENT, " + own.pop("provider"), MIGRATES: "true", **own}
        places = [directory / name for name in ("copier", "central")]
        for place in places:
            place.mkdir()
        self.copier: Broker = start(both | copier, places[0])
        self.central: Broker = start(both | {PROVIDERS: "CONFLUENT"}, places[1])

    @property
    def acls(self) -> set[AclBinding]:
        """The centralised ACLs."""
        return set(read_acls(self.file)[0])

    def has_copied(self, acls: set[AclBinding]) -> None:
        """Wait until the centralised ACLs equal ``acls``, and the copying broker is ready."""
        wait_for(f"{len(acls)} ACLs", lambda: self.acls == acls or None, WITHIN)
        wait_for("ready", lambda: page(self.copier, "/readyz")[0] == 200 or None, WITHIN)

    def stops(self, reason: str) -> str:
        """Wait until the broker is not ready because of a loss of ACLs. Return the loss's token.

        Assert that all copied ACLs stay in force.
        """

        def told() -> str | None:
            status, text = page(self.copier, "/readyz")
            return text if status == 503 and re.search(reason, text) else None

        text = wait_for(reason, told, WITHIN)
        self.keeps_all()
        [token] = set(re.findall(rf"set {ACCEPTED_LOSS}=(\w+) and restart", text))
        return str(token)

    def keeps_all(self) -> None:
        """Assert that no copied ACL is gone, and that the DENY is in force."""
        assert self.acls == ACLS
        assert not sees(self.central, "alice", "orders")
        assert sees(self.central, "bob", "orders")

    def confirm(self, token: str) -> None:
        """Restart the copying broker with the token of a loss."""
        self.copier.properties[ACCEPTED_LOSS] = token
        self.copier.restart()


def fill(address: str, *acls: AclBinding) -> None:
    """Create ACLs in a cluster, the DENY first.

    A broker whose ZooKeeper session a busy machine has let expire refuses them for a moment.
    """
    in_order = sorted(acls, key=lambda acl: acl is not DENIED)

    def created() -> bool | None:
        with session(address) as client:
            return all(each is None for each in refusals(client, in_order)) or None

    wait_for("the ACLs to be created", created, WITHIN)


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[Zookeeper]:
    directory = tmp_path / "zk"
    directory.mkdir()
    with running_zookeeper(directory) as running:
        yield running


class Copy:
    """A command that follows a source, and the file that it writes."""

    def __init__(self, process: LoggedProcess, url: str) -> None:
        self._process = process
        self._url = url

    def stops(self, reason: str) -> None:
        """Wait until the command reports a loss. Assert that the file keeps all ACLs.

        The command must end with status 1.
        """
        told = self._process.log_text
        wait_for(reason, lambda: re.search(reason, told()), WITHIN)
        assert contents(self._url) == ACLS
        assert self._process.terminate() == 1


@contextmanager
def copying(directory: Path, source: str, *options: str) -> Iterator[Copy]:
    """Run the command that follows a source for the time of the block."""
    target = f"file:{directory}/copy.json"
    with following(directory / "log", source, target, *options) as process:
        assert contents(target) == ACLS
        yield Copy(process, target)


@contextmanager
def client_of(zookeeper: Zookeeper) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper.address)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def test_a_zookeeper_that_is_wiped_takes_no_centralised_acl_along(
    zookeeper: Zookeeper, start_broker: StartBroker, tmp_path: Path
) -> None:
    moving = Migration(
        start_broker,
        tmp_path,
        provider="ZK_ACL",
        **{"zookeeper.connect": zookeeper.address, "zookeeper.session.timeout.ms": "1000"},
    )
    fill(moving.copier.listeners["PLAINTEXT"], *ACLS)
    moving.has_copied(ACLS)
    with client_of(zookeeper) as client:
        name = client.get("/cluster/id")[0]
    settings = tmp_path / "zookeeper.properties"
    settings.write_text("zookeeper.session.timeout.ms=1000\n")
    with copying(tmp_path, f"zookeeper://{zookeeper.address}", f"--from-config={settings}") as copy:
        zookeeper.kill()
        shutil.rmtree(zookeeper.directory / "zookeeper")
        zookeeper.start()
        # The new ZooKeeper gets the same cluster id, and later one ACL, as from a setup script.
        with client_of(zookeeper) as client:
            client.create("/cluster/id", name, makepath=True)
        moving.stops("may have lost its data")
        fill(moving.copier.listeners["PLAINTEXT"], LATE)
        copy.stops("its (zxid went back|node /kafka-acl was)")
    moving.confirm("0123456789")
    token = moving.stops("its (zxid went back|node /kafka-acl was)")
    moving.confirm(token)
    moving.has_copied({LATE})


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    directory = tmp_path / "kafka"
    directory.mkdir()
    with running_kafka(directory) as running:
        yield running


@pytest.mark.thorough
def test_a_kafka_that_is_formatted_anew_takes_no_centralised_acl_along(
    own_kafka: Kafka, start_broker: StartBroker, tmp_path: Path
) -> None:
    address = own_kafka.listeners["PLAINTEXT"]
    fill(address, *ACLS)
    store = {"aclbroker.provider.kraft.store": f"kafka+acls://{address}", **QUICK}
    moving = Migration(start_broker, tmp_path, provider="KRAFT_ACL", **store)
    moving.has_copied(ACLS)
    properties = (own_kafka.directory / "data" / "meta.properties").read_text()
    [name] = re.findall(r"cluster\.id=(\S+)", properties)
    with copying(tmp_path, f"kafka+acls://{address}") as copy:
        own_kafka.kill()
        shutil.rmtree(own_kafka.directory / "data")
        # The new cluster gets the same id, and all of its ACLs but the DENY.
        own_kafka.format(name)
        own_kafka.start_again()
        fill(address, *(ACLS - {DENIED}))
        moving.stops("its metadata offset went back|still lacks 1 of its 100")
        copy.stops("its metadata offset went back|still lacks 1 of its 100")
    assert acls_of(address) == ACLS - {DENIED}
    own_kafka.kill()
    shutil.rmtree(own_kafka.directory / "data")
    own_kafka.format(new_cluster_id())
    own_kafka.start_again()
    fill(address, LATE)
    token = moving.stops(f"its cluster id was {name} and is")
    # A confirmed other cluster is copied, and removes no ACL.
    moving.confirm(token)
    moving.has_copied(ACLS | {LATE})
