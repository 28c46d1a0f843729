"""ACLs over HTTP: they are the cluster's, hold at once, and are shown to Kafka's clients."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.clients.acl_command import command_config, run_script
from tests.conftest import StartBroker
from tests.http_api.api import ACLS, MDS, SEARCH, Api, binding
from tests.support.accounts import PASSWORDS
from tests.support.broker import COMMAND, Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client, topic_read

READ_ORDERS = "ALLOW User:alice READ TOPIC:LITERAL:orders from *"
DESCRIBE_ORDERS = "ALLOW User:alice DESCRIBE TOPIC:LITERAL:orders from *"
TOPIC_AUTHORIZATION_FAILED = 29
UNKNOWN_TOPIC = 3
INVALID_REQUEST = 42


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), MDS)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture
def broker(running: Broker) -> Broker:
    """One that all tests share, without an ACL."""
    Api(running).delete()
    return running


def sees(broker: Broker, user: str, topic: str, listener: str = "SASL_PLAINTEXT") -> bool:
    """Tell whether a user may describe a topic, which does not exist."""
    with Client(broker.listeners[listener]) as client:
        client.login(user, PASSWORDS[user])
        request = MetadataRequest([MetadataRequestTopic(name=topic)], False)
        [found] = client.ask(ApiKey.METADATA, 9, request).topics
        if found.error_code == ErrorCode.LEADER_NOT_AVAILABLE:
            raise ConnectionError("the broker shuts down, and answers that clients should retry")
        assert found.error_code in (TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC), found
        return bool(found.error_code == UNKNOWN_TOPIC)


def listed(broker: Broker, *arguments: str) -> str:
    """What `aclbroker acls` prints."""
    address = broker.listeners["PLAINTEXT"]
    command = [str(COMMAND), "acls", "--bootstrap-server", address, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_an_acl_that_was_created_over_http_decides_at_once_and_kafkas_clients_list_it(
    broker: Broker,
) -> None:
    api = Api(broker).login()
    assert not sees(broker, "alice", "orders")
    created = api.create(DESCRIBE_ORDERS)
    assert (created.status, created.text) == (204, "")
    assert sees(broker, "alice", "orders")
    assert "principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW" in listed(
        broker, "--list", "--topic", "orders"
    )
    assert api.delete(name="orders") == [DESCRIBE_ORDERS]
    assert not sees(broker, "alice", "orders")
    assert listed(broker, "--list") == ""


def test_an_acl_of_kafkas_clients_is_found_and_deleted_over_http(broker: Broker) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("payments")) == [0]
        api = Api(broker).login()
        found = ["ALLOW User:carol READ TOPIC:LITERAL:payments from *"]
        assert api.search() == found
        assert api.delete(principal="User:carol") == found
        assert client.resource_names() == []


def test_kafkas_own_script_and_the_api_show_the_same_acls(broker: Broker) -> None:
    admin = command_config(broker.directory, "admin")
    address = broker.listeners["SASL_PLAINTEXT"]
    script = ("--bootstrap-server", address, "--command-config", admin)
    api = Api(broker).login()
    prefixed = "DENY User:bob ALL TOPIC:PREFIXED:orders- from 10.1.2.3"
    assert [api.create(each).status for each in (READ_ORDERS, prefixed)] == [204, 204]
    listed = run_script(*script, "--list")
    assert listed.status == 0
    for said in (
        "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)",
        "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)",
        "ResourcePattern(resourceType=TOPIC, name=orders-, patternType=PREFIXED)",
        "(principal=User:bob, host=10.1.2.3, operation=ALL, permissionType=DENY)",
    ):
        assert said in listed.out
    added = ("--add", "--allow-principal", "User:carol", "--operation", "Describe")
    assert run_script(*script, *added, "--group", "g").status == 0
    carol = "ALLOW User:carol DESCRIBE GROUP:LITERAL:g from *"
    assert api.search() == sorted([READ_ORDERS, prefixed, carol])


def test_an_acl_that_is_there_already_is_created_again(broker: Broker) -> None:
    api = Api(broker).login()
    for _ in range(2):
        assert api.create(READ_ORDERS).status == 204
    assert api.search() == [READ_ORDERS]


@pytest.mark.parametrize("write", ["{}", '"{}"'], ids=["bare", "quoted"])
def test_the_id_of_a_cluster_may_be_in_quotes_in_every_scope(broker: Broker, write: str) -> None:
    api = Api(broker).login()
    cluster_id = write.format(api.cluster_id)
    assert api.create(READ_ORDERS, cluster_id).status == 204
    assert api.search(cluster_id) == [READ_ORDERS]
    scope = {"clusters": {"kafka-cluster": cluster_id}}
    action = {"scope": scope, "resourceName": "orders", "resourceType": "Topic",
              "operation": "Read"}  # fmt: skip
    asked = {"userPrincipal": "User:alice", "actions": [action]}
    assert api.call("PUT", "/security/1.0/authorize", asked).value == ["ALLOWED"]
    registered = {"clusterName": "prod", "scope": scope, "hosts": []}
    registry = "/security/1.0/registry/clusters"
    assert api.call("POST", registry, [registered]).status == 204
    [found] = api.call("GET", registry).value
    assert found["scope"]["clusters"] == {"kafka-cluster": api.cluster_id}
    assert api.delete(cluster_id) == [READ_ORDERS]
    empty = api.call("POST", SEARCH, api.filter('""'))
    assert (empty.status, "is empty" in empty.text) == (400, True)


def test_a_filter_selects_by_each_of_its_fields(broker: Broker) -> None:
    api = Api(broker).login()
    prefixed = "DENY User:bob ALL GROUP:PREFIXED:g- from 10.1.2.3"
    anybody = "ALLOW User:* WRITE TOPIC:LITERAL:* from *"
    for acl in (READ_ORDERS, prefixed, anybody):
        assert api.create(acl).status == 204
    by_field = {
        "resourceType": ("GROUP", [prefixed]),
        "name": ("orders", [READ_ORDERS]),
        "patternType": ("PREFIXED", [prefixed]),
        "principal": ("User:*", [anybody]),
        "host": ("10.1.2.3", [prefixed]),
        "operation": ("WRITE", [anybody]),
        "permissionType": ("DENY", [prefixed]),
    }
    for name, (value, expected) in by_field.items():
        assert api.search(**{name: value}) == expected, name
    matching = api.search(resourceType="TOPIC", name="orders", patternType="MATCH")
    assert matching == [anybody, READ_ORDERS]


def test_acls_of_kinds_that_mds_does_not_have_are_shown_by_kafkas_names(broker: Broker) -> None:
    listed(broker, "--add", "--allow-principal", "User:a", "--operation", "CreateTokens",
           "--user-principal", "User:b")  # fmt: skip
    api = Api(broker)
    acl = "ALLOW User:a CREATE_TOKENS USER:LITERAL:User:b from *"
    assert api.search() == [acl]
    refused = api.create(acl)
    assert refused.status == 400
    assert "USER" in refused.value["message"]
    assert api.delete() == [acl]


def test_names_of_any_alphabet_come_back_as_they_were_sent(broker: Broker) -> None:
    api = Api(broker).login()
    name = 'üñ/ "q" \\ \u0001 名 %41+:'
    acl = binding(READ_ORDERS)
    acl["pattern"]["name"] = name
    acl["entry"]["principal"] = "User:CN=Jürgen, O=名"
    scope = {"clusters": {"kafka-cluster": api.cluster_id}}
    assert api.call("POST", ACLS, {"scope": scope, "aclBinding": acl}).status == 204
    assert api.call("POST", SEARCH, api.filter(name=name)).value == [acl]


def changed(value: dict[str, Any], path: str, to: Any) -> dict[str, Any]:
    """A copy with another value at a path; without it if that is None."""
    copy: dict[str, Any] = json.loads(json.dumps(value))
    *places, last = path.split(".")
    inner = copy
    for place in places:
        inner = inner[place]
    if to is None:
        del inner[last]
    else:
        inner[last] = to
    return copy


WRONG: list[tuple[str, Any, str]] = [
    ("aclBinding.entry.operation", "ANY", "aclBinding.entry.operation is 'ANY'; allowed are ALL"),
    ("aclBinding.entry.operation", "UNKNOWN", "allowed are ALL, READ, WRITE"),
    ("aclBinding.entry.operation", "CREATE_TOKENS", "managed by Kafka's own clients"),
    ("aclBinding.entry.operation", "read", "aclBinding.entry.operation is 'read'"),
    ("aclBinding.entry.permissionType", "ANY", "allowed are ALLOW, DENY"),
    ("aclBinding.entry.principal", "noprefix", "Type:name"),
    ("aclBinding.entry.principal", ":x", "Type:name"),
    ("aclBinding.entry.principal", None, "aclBinding.entry.principal is missing"),
    ("aclBinding.entry.host", 7, "aclBinding.entry.host is no text"),
    ("aclBinding.entry.host", "", "aclBinding.entry.host is empty, which no client's address is"),
    ("aclBinding.entry.host", "10.0.0.0/8", "is a subnet, and aclbroker.acl.host.cidr is false"),
    ("aclBinding.entry.host", "2001:db8::/32", "is a subnet, and aclbroker.acl.host.cidr is"),
    ("aclBinding.entry.host", "10.0.0.1-10.0.0.9", "is no host that a client can have"),
    ("aclBinding.entry.host", "broker.example.org", "write an IP address, or * for all"),
    ("aclBinding.entry.host", "10.0.0.0/33", "aclBinding.entry.host '10.0.0.0/33' is no host"),
    ("aclBinding.entry.host", "10.0.0.0/255.0.0.0", "is no host that a client can have"),
    ("aclBinding.entry.host", "[::1]", "is no host that a client can have"),
    ("aclBinding.entry.host", " 10.0.0.1", "is no host that a client can have"),
    ("aclBinding.entry.host", "10.0.0.*", "is no host that a client can have"),
    ("aclBinding.entry.host", "10.0.0.1:9092", "is no host that a client can have"),
    ("aclBinding.entry.host", "/10.0.0.1", "is no host that a client can have"),
    ("aclBinding.entry.hosts", "*", "aclBinding.entry.hosts is unknown"),
    ("aclBinding.pattern.resourceType", "USER", "allowed are TOPIC, GROUP, CLUSTER"),
    ("aclBinding.pattern.resourceType", "ANY", "allowed are TOPIC, GROUP, CLUSTER"),
    ("aclBinding.pattern.patternType", "MATCH", "allowed are LITERAL, PREFIXED"),
    ("aclBinding.pattern.name", "", "must not be empty"),
    ("aclBinding.pattern.name", "x" * 32_768, "longer than 32767 bytes"),
    ("aclBinding.pattern", [], "aclBinding.pattern is no object"),
    ("scope.clusters.kafka-cluster", "lkc-missing", "'lkc-missing' is no cluster of this server"),
    ("scope.clusters.kafka-cluster", "", "is empty"),
    ("scope.clusters.connect-cluster", "c", "scope.clusters.connect-cluster is unknown"),
    ("scope", None, "scope is missing"),
]


def test_a_creation_that_makes_no_sense_is_refused_with_what_is_wrong_and_allowed(
    broker: Broker,
) -> None:
    api = Api(broker).login()
    scope = {"clusters": {"kafka-cluster": api.cluster_id}}
    good = {"scope": scope, "aclBinding": binding(READ_ORDERS)}
    for path, value, said in WRONG:
        answer = api.call("POST", ACLS, changed(good, path, value))
        assert answer.status == 400, (path, value, answer)
        error = answer.value
        assert said in error["message"], (path, value, error)
        assert (error["status_code"], error["type"]) == (400, "INVALID REQUEST DATA")
        assert all(each["message"] for each in error["errors"])
    unknown = api.call("POST", ACLS, changed(good, "scope.clusters.kafka-cluster", "x"))
    assert api.cluster_id in unknown.value["message"]
    assert api.search() == []


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "::1", "0:0:0:0:0:0:0:1", "2001:DB8::1", "::ffff:10.0.0.1", "fe80::1%eth0"]
)
def test_an_address_in_any_form_is_taken_and_comes_back_as_it_was_sent(
    broker: Broker, host: str
) -> None:
    api = Api(broker).login()
    acl = READ_ORDERS.replace("from *", f"from {host}")
    assert api.create(acl).status == 204
    assert api.search(host=host) == [acl]
    assert api.delete(host=host) == [acl]


def test_acls_of_hosts_that_match_nobody_can_be_found_and_deleted(broker: Broker) -> None:
    listed(broker, "--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t",
           "--allow-host", "10.0.0.0/8", "--allow-host", "a.example")  # fmt: skip
    api = Api(broker)
    for host in ("10.0.0.0/8", "a.example"):
        acl = f"ALLOW User:a READ TOPIC:LITERAL:t from {host}"
        assert api.search(host=host) == [acl]
        assert api.delete(host=host) == [acl]
    # No ACL has this text as its host: a filter compares texts, as in Kafka.
    assert api.search(host=" ") == []


def test_subnets_are_taken_where_they_match_and_malformed_ones_are_refused(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS | {"aclbroker.acl.host.cidr": "true"})
    api = Api(broker).login()
    acl = "ALLOW User:alice DESCRIBE TOPIC:LITERAL:orders from 127.0.0.0/8"
    assert api.create(acl).status == 204
    assert sees(broker, "alice", "orders")
    refused = api.create(acl.replace("/8", "/33"))
    assert refused.status == 400
    assert "write an IP address, a subnet such as 10.1.0.0/16, or *" in refused.value["message"]
    hosts = ("10.0.0.0/8", "10.0.0.0/33", "10.0.0.0/", "a/8", "::/129", "10.0.0.0/255.0.0.0", "a")
    creations = [AclCreation(2, "t", 3, "User:a", host, 3, 3) for host in hosts]
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(*creations) == [0, *[INVALID_REQUEST] * 5, 0]
    assert len(api.search(name="t")) == 2


def test_a_filter_with_a_mistake_deletes_nothing(broker: Broker) -> None:
    api = Api(broker).login()
    assert api.create(READ_ORDERS).status == 204
    good = api.filter(principal="User:nobody")
    mistakes = [
        ("aclBindingFilter.entryFilter.pricipal", "User:x"),
        ("aclBindingFilter.entryFilter.operation", None),
        ("aclBindingFilter.entryFilter.operation", "UNKNOWN"),
        ("aclBindingFilter.patternFilter.resourceType", "DELEGATION_TOKEN"),
        ("aclBindingFilter.entryFilter.principal", ["User:x"]),
        ("aclBindingFilter", None),
    ]
    for path, value in mistakes:
        answer = api.call("DELETE", ACLS, changed(good, path, value))
        assert answer.status == 400, (path, value, answer)
    for text in ("", "{", "[]", '"x"', "[" * 100_000, '{"scope":NaN}', '{"a":1,"a":2}', "\ufeff{}"):
        assert api.call("DELETE", ACLS, text).status == 400, text[:20]
    huge = api.call("DELETE", ACLS, f'{{"scope":{"9" * 10_000}}}')
    assert (huge.status, "too many digits" in str(huge.value)) == (400, True)
    surrogate = json.dumps(api.filter(name="x")).replace('"x"', '"\\ud800"')
    assert api.call("DELETE", ACLS, surrogate).status == 400
    assert api.search() == [READ_ORDERS]


def test_who_may_not_alter_or_describe_the_cluster_is_refused_and_that_is_recorded(
    broker: Broker,
) -> None:
    admin, alice = Api(broker).login(), Api(broker, "alice").login()
    before = len(broker.events())
    assert alice.create(READ_ORDERS).status == 403
    refused = alice.call("POST", SEARCH, alice.filter())
    assert refused.status == 403
    assert refused.value["type"] == "FORBIDDEN"
    assert "User:alice is not permitted" in refused.value["message"]
    assert "DESCRIBE on CLUSTER kafka-cluster" in refused.value["message"]
    assert alice.call("DELETE", ACLS, alice.filter()).status == 403
    assert admin.create("ALLOW User:alice DESCRIBE CLUSTER:LITERAL:kafka-cluster from *").status
    assert len(alice.search()) == 1
    assert alice.create(READ_ORDERS).status == 403
    assert admin.create("ALLOW User:alice ALTER CLUSTER:LITERAL:kafka-cluster from *").status
    assert alice.create(READ_ORDERS).status == 204
    told = broker.events()[before:]
    denied = [each for each in told if each.get("allowed") is False]
    assert [(each["api_name"], each["operation"]) for each in denied[:3]] == [
        ("CreateAcls", "ALTER"),
        ("DescribeAcls", "DESCRIBE"),
        ("DeleteAcls", "ALTER"),
    ]
    assert {each["principal"] for each in denied} == {"User:alice"}
    changes = [each for each in told if each.get("event") == "change"]
    assert [each["principal"] for each in changes] == ["User:admin", "User:admin", "User:alice"]
    assert all(each["listener"].startswith("http://127.0.0.1") for each in changes)


def test_the_limit_of_acls_is_told(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | {"aclbroker.acl.limit": "1"})
    api = Api(broker)
    assert api.create(READ_ORDERS).status == 204
    refused = api.create(DESCRIBE_ORDERS)
    assert refused.status == 400
    assert "aclbroker.acl.limit" in refused.value["message"]


def test_acls_outlive_the_broker(start_broker: StartBroker) -> None:
    broker = start_broker(MDS)
    assert Api(broker).create(READ_ORDERS).status == 204
    broker.restart()
    assert Api(broker).search() == [READ_ORDERS]
