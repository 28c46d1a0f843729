"""One server that holds the ACLs of several clusters, each with listeners of its own."""

from __future__ import annotations

import json
from pathlib import Path

from aclbroker.broker.credentials.scram_users import upsertion_of
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from aclbroker.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.conftest import StartBroker
from tests.http_api.api import ACLS, MDS, Api, held
from tests.http_api.test_acls import sees
from tests.support.accounts import PASSWORDS, PLAIN_JAAS
from tests.support.broker import Broker
from tests.support.client import Client, topic_read

DESCRIBE_ORDERS = "ALLOW User:alice DESCRIBE TOPIC:LITERAL:orders from *"

LISTENERS = {
    "listeners": (
        "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,A://127.0.0.1:0,B://127.0.0.1:0"
    ),
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,A:SASL_PLAINTEXT,B:SASL_PLAINTEXT"
    ),
    "listener.name.a.plain.sasl.jaas.config": PLAIN_JAAS,
    "listener.name.b.plain.sasl.jaas.config": PLAIN_JAAS.replace("admin-secret", "admin-of-b"),
    "listener.name.b.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "aclbroker.clusters.lkc-A.listeners": "A",
    "aclbroker.clusters.lkc-B.listeners": "B",
}


def stored(directory: Path) -> dict[str, str]:
    """The settings of two clusters with stores in files."""
    files = {
        f"aclbroker.clusters.{each}.store": f"sqlite:///{directory / each}.db"
        for each in ("lkc-A", "lkc-B")
    }
    return MDS | held("lkc-A", "lkc-B") | LISTENERS | files


def test_acls_of_one_cluster_are_not_those_of_another(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker(stored(tmp_path))
    api = Api(broker).login()
    assert api.create(DESCRIBE_ORDERS, "lkc-A").status == 204
    assert api.search("lkc-A") == [DESCRIBE_ORDERS]
    assert api.search("lkc-B") == api.search() == []
    assert [sees(broker, "alice", "orders", name) for name in ("A", "B", "SASL_PLAINTEXT")] == [
        True,
        False,
        False,
    ]
    with Client(broker.listeners["B"]) as client:
        client.login("admin", "admin-of-b")
        assert client.create(topic_read("payments")) == [0]
    assert api.search("lkc-B") == ["ALLOW User:carol READ TOPIC:LITERAL:payments from *"]
    broker.restart()
    api = Api(broker).login()
    assert api.search("lkc-A") == [DESCRIBE_ORDERS]
    assert len(api.search("lkc-B")) == 1


def test_each_listener_tells_the_id_of_its_cluster(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker(stored(tmp_path))
    found = {}
    for name in ("SASL_PLAINTEXT", "A"):
        with Client(broker.listeners[name]) as client:
            client.login("admin", PASSWORDS["admin"])
            answer = client.ask(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest())
            found[name] = answer.cluster_id
    assert found == {"SASL_PLAINTEXT": Api(broker).cluster_id, "A": "lkc-A"}


def test_records_name_the_cluster_and_go_to_one_file(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    file = tmp_path / "audit.log"
    broker = start_broker(stored(tmp_path) | {"aclbroker.audit.file": str(file)})
    api = Api(broker)
    for cluster_id in ("lkc-A", "lkc-B", api.cluster_id):
        assert api.create(DESCRIBE_ORDERS, cluster_id).status == 204
    Api(broker, "alice").call("POST", ACLS + ":search", api.filter("lkc-B"))
    broker.terminate()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    changes = [each["cluster_id"] for each in records if each["event"] == "change"]
    assert sorted(changes) == sorted(["lkc-A", "lkc-B", api.cluster_id])
    [denied] = [each for each in records if each.get("allowed") is False]
    assert (denied["cluster_id"], denied["principal"]) == ("lkc-B", "User:alice")


def test_users_of_a_listener_of_another_cluster_do_not_log_in(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    # Who is admin there is somebody else.
    broker = start_broker(stored(tmp_path))
    api = Api(broker)
    answer = api.call("GET", "/security/1.0/authenticate", header=header("admin", "admin-of-b"))
    assert answer.status == 401


def header(user: str, password: str) -> dict[str, str]:
    """The header of a login."""
    from tests.http_api.api import basic

    return {"Authorization": basic(user, password)}


def test_a_super_user_of_one_cluster_is_none_of_another(start_broker: StartBroker) -> None:
    alice = {"aclbroker.clusters.lkc-B.super.users": "User:alice"}
    broker = start_broker(MDS | held("lkc-A") | held("lkc-B") | alice)
    admin, other = Api(broker), Api(broker, "alice")
    assert admin.create(DESCRIBE_ORDERS, "lkc-A").status == 204
    assert admin.create(DESCRIBE_ORDERS, "lkc-B").status == 403
    assert other.create(DESCRIBE_ORDERS, "lkc-B").status == 204
    assert other.create(DESCRIBE_ORDERS, "lkc-A").status == 403
    assert other.create(DESCRIBE_ORDERS).status == 403


def test_broker_users_may_do_everything_on_their_clusters_listener_and_not_over_http(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    users = {
        "aclbroker.clusters.lkc-A.broker.users": "User:bob",
        "aclbroker.clusters.lkc-A.super.users": "",
        "broker.users": "User:bob",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
    }
    broker = start_broker(stored(tmp_path) | users)
    assert sees(broker, "bob", "orders", "A")
    assert sees(broker, "bob", "orders", "SASL_PLAINTEXT")
    assert not sees(broker, "alice", "orders", "A")
    bob = Api(broker, "bob")
    assert bob.create(DESCRIBE_ORDERS, "lkc-A").status == 403
    assert bob.create(DESCRIBE_ORDERS).status == 403


def test_users_of_scram_are_those_of_their_cluster(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker(stored(tmp_path))
    with Client(broker.listeners["B"]) as client:
        client.login("admin", "admin-of-b")
        change = upsertion_of("dave", "dave-secret", "SCRAM-SHA-256", 4096)
        request = AlterUserScramCredentialsRequest([], [change])
        answer = client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert [each.error_code for each in answer.results] == [0]
    with Client(broker.listeners["B"]) as client:
        assert not client.login_scram("dave", "dave-secret").error_code
    assert (
        Api(broker)
        .call("GET", "/security/1.0/authenticate", header=header("dave", "dave-secret"))
        .status
        == 401
    )


def test_the_limit_of_acls_is_that_of_a_cluster(start_broker: StartBroker) -> None:
    limit = {"aclbroker.clusters.lkc-A.acl.limit": "1"}
    broker = start_broker(MDS | held("lkc-A", "lkc-B") | limit)
    api = Api(broker).login()
    second = DESCRIBE_ORDERS.replace("alice", "bob")
    assert api.create(DESCRIBE_ORDERS, "lkc-A").status == 204
    refused = api.create(second, "lkc-A")
    assert refused.status == 400
    assert "aclbroker.clusters.lkc-A.acl.limit" in refused.value["message"]
    assert api.create(DESCRIBE_ORDERS, "lkc-A").status == 204  # it is there already
    assert [api.create(each, "lkc-B").status for each in (DESCRIBE_ORDERS, second)] == [204, 204]


def test_super_users_of_a_cluster_are_read_again(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | held("lkc-A"))
    alice = Api(broker, "alice")
    assert alice.create(DESCRIBE_ORDERS, "lkc-A").status == 403
    broker.properties["aclbroker.clusters.lkc-A.super.users"] = "User:alice"
    hangup(broker)
    assert alice.create(DESCRIBE_ORDERS, "lkc-A").status == 204
    assert Api(broker).create(DESCRIBE_ORDERS, "lkc-A").status == 403


def hangup(broker: Broker) -> None:
    """Have the broker read its properties again, and wait until it has."""

    from tests.support.accounts import properties_text
    from tests.support.process import wait_for

    (broker.directory / "server.properties").write_text(properties_text(broker.properties))
    broker.hang_up()
    wait_for(
        "reload",
        lambda: True if broker.told("configuration reloaded")[0] else None,
        10,
    )
