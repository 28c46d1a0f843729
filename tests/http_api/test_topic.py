"""Two servers whose stores are topics of a real Kafka: each sees what the other is told."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.conftest import StartBroker
from tests.http_api.api import MDS, Api, basic, held
from tests.http_api.test_acls import sees
from tests.http_api.test_clusters import LISTENERS
from tests.http_api.test_shared import ACL, PROD, REGISTRY, directory, registered
from tests.server.test_scram import SCRAM, alter, upsertion
from tests.support.kafka import Kafka
from tests.support.process import wait_for


def test_servers_share_acls_users_and_registered_clusters(
    kafka: Kafka, start_broker: StartBroker, tmp_path: Path
) -> None:
    place = f"kafka://{kafka.listeners['PLAINTEXT']}"
    settings = MDS | held("lkc-A", "lkc-B") | LISTENERS | SCRAM
    settings |= {
        "aclbroker.store": f"{place}/mds-own",
        "aclbroker.clusters.lkc-A.store": f"{place}/mds-a",
        "aclbroker.clusters.lkc-B.store": f"{place}/mds-b",
    }
    servers = [
        start_broker(settings | {"node.id": str(number)}, directory(tmp_path, str(number)))
        for number in (1, 2)
    ]
    one, other = (Api(each).login() for each in servers)
    assert one.cluster_id == other.cluster_id
    assert one.create(ACL, "lkc-A").status == 204
    wait_for("the ACL", lambda: other.search("lkc-A") == [ACL] or None, 10)
    wait_for("the decision", lambda: sees(servers[1], "alice", "orders", "A") or None, 10)
    assert one.search("lkc-B") == other.search("lkc-B") == other.search() == []
    assert other.delete("lkc-A", name="orders") == [ACL]
    wait_for("the ACL gone", lambda: one.search("lkc-A") == [] or None, 10)

    # Who registers a cluster at one server while somebody else does at the other waits for that.
    answers: list[int] = []

    def register(api: Api, number: int) -> None:
        cluster = PROD | {"clusterName": f"c{number}", "scope": scope(f"lkc-{number}")}
        answers.append(api.call("POST", REGISTRY, [cluster]).status)

    threads = [
        threading.Thread(target=register, args=(api, 10 * at + number))
        for at, api in enumerate((one, other), 1)
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [204] * 6
    names = [f"c{10 * at + number}" for at in (1, 2) for number in range(3)]
    for api in (one, other):
        wait_for("all", lambda api=api: named(api) == names or None, 10)  # type: ignore[misc]
    # A second name of a cluster is a conflict, whoever has registered the first.
    again = PROD | {"scope": scope("lkc-10")}
    assert other.call("POST", REGISTRY, [again]).status == 409
    assert other.call("DELETE", f"{REGISTRY}/c10").status == 204
    wait_for("it gone", lambda: named(one) == names[1:] or None, 10)

    # After a restart all of it is there.
    assert alter(servers[0], upsertion("carol", "carol-secret")) == [0]
    servers[1].restart()
    assert named(Api(servers[1])) == names[1:]
    carol = Api(servers[1], None)
    carol.authorization = basic("carol", "carol-secret")
    assert carol.call("GET", "/security/1.0/authenticate").status == 200


def scope(cluster_id: str) -> dict[str, dict[str, str]]:
    """The scope of a cluster."""
    return {"clusters": {"kafka-cluster": cluster_id}}


def named(api: Api) -> list[str]:
    """The names of the registered clusters, sorted."""
    return sorted(each["clusterName"] for each in registered(api) or [])
