"""Two servers that hold one cluster, whose ACLs are in ZooKeeper."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.conftest import StartBroker
from tests.http_api.api import MDS, Api, held
from tests.http_api.test_acls import sees
from tests.http_api.test_clusters import LISTENERS
from tests.support.process import wait_for
from tests.support.zookeeper import running_zookeeper

SHORT = {"zookeeper.session.timeout.ms": "1000", "zookeeper.connection.timeout.ms": "1000"}
ACL = "ALLOW User:alice DESCRIBE TOPIC:LITERAL:orders from *"
PROD = {
    "clusterName": "prod",
    "scope": {"clusters": {"kafka-cluster": "lkc-A"}},
    "hosts": [{"host": "h", "port": 1}],
}
REGISTRY = "/security/1.0/registry/clusters"


def directory(place: Path, name: str) -> Path:
    made = place / name
    made.mkdir()
    return made


def registered(api: Api) -> Any:
    """The clusters that have names, None if there is none."""
    return api.call("GET", REGISTRY).value or None


def test_what_one_server_changes_holds_on_the_other_and_waits_for_the_store_to_be_there(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    with running_zookeeper(directory(tmp_path, "zookeeper")) as zookeeper:
        place = f"zookeeper://{zookeeper.address}"
        settings = MDS | held("lkc-A", "lkc-B") | LISTENERS | SHORT
        settings |= {"aclbroker.clusters.lkc-A.store": f"{place}/a"}
        settings |= {"aclbroker.store": f"{place}/own"}
        first = start_broker(settings, directory(tmp_path, "first"))
        second = start_broker(settings, directory(tmp_path, "second"))
        one, other = Api(first).login(), Api(second).login()
        assert one.cluster_id == other.cluster_id
        assert one.create(ACL, "lkc-A").status == 204
        wait_for("the ACL", lambda: other.search("lkc-A") or None, 10)
        assert sees(first, "alice", "orders", "A")
        assert sees(second, "alice", "orders", "A")
        assert one.search() == other.search() == []
        assert one.call("POST", REGISTRY, [PROD]).status == 204
        for each in (one, other):
            assert wait_for("the name", partial(registered, each), 10) == [PROD]
        zookeeper.kill()
        refused = one.create(ACL.replace("alice", "bob"), "lkc-A")
        assert refused.status == 503, refused
        assert one.search("lkc-A") == [ACL]
        assert sees(first, "alice", "orders", "A")
