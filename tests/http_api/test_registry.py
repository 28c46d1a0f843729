"""The registry of clusters, and what else is told: the description, nodes, roles that are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import StartBroker
from tests.http_api.api import ACLS, MDS, SEARCH, Api
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker

REGISTRY = "/security/1.0/registry/clusters"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), MDS)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture
def api(broker: Broker) -> Api:
    """The API, with an empty registry."""
    found = Api(broker).login()
    for each in found.call("GET", REGISTRY).value:
        assert found.call("DELETE", f"{REGISTRY}/{each['clusterName']}").status == 204
    return found


def cluster(name: str, kafka_cluster: str, **components: str) -> dict[str, Any]:
    return {
        "clusterName": name,
        "scope": {"clusters": {"kafka-cluster": kafka_cluster} | components},
        "hosts": [{"host": "10.0.0.1", "port": 9092}],
        "protocol": "SASL_SSL",
    }


def names(api: Api, query: str = "") -> list[str]:
    return sorted(each["clusterName"] for each in api.call("GET", REGISTRY + query).value)


def test_clusters_are_listed_by_their_type_and_outlive_the_broker(broker: Broker, api: Api) -> None:
    connect = cluster("connect", "k1", **{"connect-cluster": "c1"})
    assert api.call("POST", REGISTRY, [cluster("prod", "k1"), connect]).status == 204
    assert names(api) == ["connect", "prod"]
    assert names(api, "?clusterType=kafka-cluster") == ["prod"]
    assert names(api, "?clusterType=connect-cluster") == ["connect"]
    assert api.call("GET", f"{REGISTRY}?clusterType=x").status == 400
    broker.restart()
    api = Api(broker)
    assert api.call("GET", f"{REGISTRY}/connect").value == connect


def test_a_name_keeps_its_cluster_and_a_cluster_its_name(api: Api) -> None:
    assert api.call("POST", REGISTRY, [cluster("prod", "k1")]).status == 204
    moved = cluster("prod", "k1") | {"hosts": []}
    assert api.call("POST", REGISTRY, [moved]).status == 204
    assert api.call("GET", f"{REGISTRY}/prod").value["hosts"] == []
    assert api.call("POST", REGISTRY, [cluster("prod", "k2")]).status == 409
    assert api.call("POST", REGISTRY, [cluster("other", "k3"), cluster("test", "k1")]).status == 409
    assert names(api) == ["prod"]
    missing = api.call("GET", f"{REGISTRY}/test")
    assert missing.status == 404
    assert "'test'" in missing.value["message"]
    assert api.call("DELETE", f"{REGISTRY}/test").status == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        [{}],
        ["prod"],
        [cluster("", "k1")],
        [cluster("with blank", "k1")],
        [cluster("two", "k1", **{"connect-cluster": "c", "cmf": "d"})],
        [cluster("unknown", "k1", **{"other": "c"})],
        [cluster("port", "k1") | {"hosts": [{"host": "h", "port": 65536}]}],
        [cluster("port", "k1") | {"hosts": [{"host": "h", "port": True}]}],
        [cluster("protocol", "k1") | {"protocol": "FTP"}],
    ],
)
def test_a_cluster_that_makes_no_sense_is_not_registered(api: Api, wrong: Any) -> None:
    answer = api.call("POST", REGISTRY, wrong)
    assert answer.status == 400, answer
    assert names(api) == []


@pytest.mark.parametrize("name", ["{x}", "a/b", "a?b", "100%"])
def test_a_name_may_have_any_printable_character(api: Api, name: str) -> None:
    assert api.call("POST", REGISTRY, [cluster(name, "k1")]).status == 204
    place = f"{REGISTRY}/{quote(name, safe='')}"
    assert api.call("GET", place).value == cluster(name, "k1")
    assert api.call("DELETE", place).status == 204
    assert names(api) == []


def test_to_give_and_take_names_takes_alter_on_the_servers_cluster(
    broker: Broker, api: Api
) -> None:
    bob = Api(broker, "bob")
    assert bob.call("POST", REGISTRY, [cluster("prod", "k1")]).status == 403
    assert bob.call("GET", REGISTRY).status == 403
    assert api.call("POST", REGISTRY, [cluster("prod", "k1")]).status == 204
    assert bob.call("DELETE", f"{REGISTRY}/prod").status == 403
    changes = [each for each in broker.events() if each.get("action") == "REGISTER_CLUSTER"]
    assert changes[-1]["cluster"] == {"name": "prod", "kafka-cluster": "k1"}
    assert changes[-1]["principal"] == "User:admin"


def test_who_asks_about_others_needs_describe_on_the_cluster(broker: Broker, api: Api) -> None:
    def asked(who: Api, principal: str, operation: str = "Read") -> Any:
        action = {
            "scope": {"clusters": {"kafka-cluster": who.cluster_id}},
            "resourceType": "TransactionalId",
            "resourceName": "tx",
            "operation": operation,
        }
        body = {"userPrincipal": principal, "actions": [action]}
        return who.call("PUT", "/security/1.0/authorize", body)

    bob = Api(broker, "bob")
    assert asked(bob, "User:bob").value == ["DENIED"]
    assert asked(bob, "User:admin").status == 403
    assert asked(api, "User:admin").value == ["ALLOWED"]
    acl = "ALLOW User:bob DESCRIBE TRANSACTIONAL_ID:LITERAL:tx from *"
    assert api.create(acl).status == 204
    assert asked(api, "User:bob", "describe").value == ["ALLOWED"]
    assert asked(api, "User:bob", "IDEMPOTENT-WRITE").value == ["DENIED"]
    assert asked(api, "User:bob", "All").status == 400
    assert asked(api, "bob").status == 400
    assert api.delete() == [acl]


def test_the_description_has_all_calls_and_refers_to_nothing_that_is_not_there(
    broker: Broker,
) -> None:
    nobody = Api(broker, user=None)
    told = nobody.call("GET", "/openapi.json").value
    schemas = told["components"]["schemas"]

    def refers(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from [inner] if key == "$ref" else refers(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from refers(inner)

    assert {each.rpartition("/")[2] for each in refers(told)} <= schemas.keys()
    for path, calls in told["paths"].items():
        place = path.replace("{protocol}", "http").replace("{clusterName}", "x")
        for method in calls.keys() - {"parameters"}:
            answer = nobody.call(method.upper(), place, {} if method != "get" else None)
            # What needs a login is there, and says so; what is not there has no other status.
            assert answer.status == (200 if calls[method]["security"] == [] else 401), place


def test_what_is_not_there_is_told_in_the_same_form(broker: Broker, api: Api) -> None:
    assert api.call("GET", "/security/1.0/nothing").status == 404
    wrong_method = api.call("PATCH", "/security/1.0/acls")
    assert (wrong_method.status, wrong_method.header["Allow"]) == (405, "DELETE, POST")
    for path in ("roles", "roleNames", "principals/User:a/roles/R", "lookup/rolebindings"):
        answer = api.call("GET", f"/security/1.0/{path}")
        assert answer.status == 501, path
        assert "ACLs" in answer.value["message"]
    assert api.call("GET", "/security/1.0/activenodes/ftp").status == 400
    assert api.call("GET", "/security/1.0/activenodes/https").value == []
    told = api.call("GET", "/security/1.0/metadataClusterId")
    assert told.text == api.cluster_id
    assert told.header["Content-Type"].startswith("application/json")
    text = {"Content-Type": "text/plain"}
    assert api.call("POST", "/security/1.0/acls", {}, text).status == 415
    for path in ("metadataClusterId", "nothing"):
        unmet = api.call("GET", f"/security/1.0/{path}", header={"Expect": "a-miracle"})
        assert (unmet.status, unmet.value["status_code"]) == (417, 417)
        assert unmet.header["Content-Type"].startswith("application/json")


def test_without_an_authorizer_there_are_no_acls_and_no_registry(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | {"authorizer.class.name": ""})
    api = Api(broker).login()
    acl = "ALLOW User:a READ TOPIC:LITERAL:t from *"
    refused = [
        api.create(acl),
        api.call("POST", SEARCH, api.filter()),
        api.call("DELETE", ACLS, api.filter()),
    ]
    for answer in refused:
        assert answer.status == 400
        assert "No authorizer is configured" in answer.value["message"]
    assert api.call("POST", REGISTRY, [cluster("prod", "k1")]).status == 501
