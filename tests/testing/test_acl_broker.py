"""A broker within the process of the tests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest
import structlog
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient, NewTopic

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_cluster import DescribeClusterRequest
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.testing import AclBroker
from tests.support.client import Client

WITHIN = 10


@pytest.fixture
def broker() -> Iterator[AclBroker]:
    with AclBroker(topics={"orders": 3}) as running:
        yield running


def asked_for(broker: AclBroker, topic: str, user: str = "alice") -> str | None:
    """Return the name of the error that a user gets who asks for a topic's metadata."""
    client = AdminClient(broker.client_config(user) | {"log_level": 0})
    error = client.list_topics(topic, timeout=WITHIN).topics[topic].error
    return None if error is None else str(error.name())


def test_what_is_granted_is_allowed_until_it_is_revoked(broker):
    assert asked_for(broker, "orders") == "TOPIC_AUTHORIZATION_FAILED"
    acls = broker.grant("alice", "DESCRIBE", topic="orders")
    assert asked_for(broker, "orders") is None
    broker.revoke(acls)
    assert asked_for(broker, "orders") == "TOPIC_AUTHORIZATION_FAILED"


def test_a_denial_says_who_asked_for_what_and_what_would_allow_it(broker):
    asked_for(broker, "orders")
    denial = broker.denials()[0]
    assert denial.test.endswith("test_a_denial_says_who_asked_for_what_and_what_would_allow_it")
    assert str(denial) == (
        "User:alice from 127.0.0.1: Metadata needs DESCRIBE on TOPIC orders; to allow it: "
        "add ALLOW WRITE on TOPIC LITERAL orders to User:alice from * to produce, or READ to "
        "consume; each also gives DESCRIBE, which alone is enough to look at the topic"
    )
    broker.forget_denials()
    assert broker.denials() == []


def ask_for_topics(admin: Client, *names: str) -> None:
    topics = [MetadataRequestTopic(name=name) for name in names]
    admin.ask(ApiKey.METADATA, 9, MetadataRequest(topics))


def test_what_is_denied_again_is_told_once_and_counted(broker):
    with Client(broker.bootstrap_servers) as client:
        client.login("alice", broker.password("alice"))
        for names in (["orders"], ["orders"], ["orders", "payments"]):
            ask_for_topics(client, *names)
        denials = broker.denials()
        assert [(each.question.name, each.times) for each in denials] == [
            ("orders", 3),
            ("payments", 1),
        ]
        # Another rule needs another remedy.
        broker.grant("alice", "DESCRIBE", topic="orders", deny=True)
        ask_for_topics(client, "orders")
        assert "remove DENY DESCRIBE on TOPIC LITERAL orders" in str(broker.denials()[2])


def test_of_more_denials_than_are_kept_the_number_is_told(broker):
    with Client(broker.bootstrap_servers) as client:
        client.login("alice", broker.password("alice"))
        ask_for_topics(client, *(f"topic-{number}" for number in range(10_003)))
        # What is known already needs no room.
        ask_for_topics(client, "topic-0")
    assert (len(broker.denials()), broker.denials_left_out) == (10_000, 3)
    assert broker.denials()[0].times == 2
    broker.forget_denials()
    assert (broker.denials(), broker.denials_left_out) == ([], 0)


@pytest.mark.parametrize(("client_id", "advice"), [
    ("producer-1", "WRITE on TOPIC LITERAL orders to User:alice from *, which also gives"),
    ("consumer-g-1", "READ on TOPIC LITERAL orders to User:alice from *, which also gives"),
    ("adminclient-1", "DESCRIBE on TOPIC LITERAL orders to User:alice from *, or READ, "),
])  # fmt: skip
def test_the_advice_begins_with_the_operation_that_the_client_needs_next(broker, client_id, advice):
    with Client(broker.bootstrap_servers, client_id=client_id) as client:
        client.login("alice", broker.password("alice"))
        ask_for_topics(client, "orders")
    [denial] = broker.denials()
    assert denial.fix.startswith(f"add ALLOW {advice}")


def test_advice_for_a_coordinator_is_the_right_to_use_it(broker):
    with Client(broker.bootstrap_servers) as client:
        client.login("alice", broker.password("alice"))
        for kind, key in ((0, "billing"), (1, "billing-tx")):
            client.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest("", kind, [key]))
    assert [denial.fix for denial in broker.denials()] == [
        "add ALLOW READ on GROUP LITERAL billing to User:alice from *, which also gives DESCRIBE",
        "add ALLOW WRITE on TRANSACTIONAL_ID LITERAL billing-tx to User:alice from *, "
        "which also gives DESCRIBE",
    ]
    broker.grant("alice", "READ", group="billing")
    broker.grant("alice", "WRITE", transactional_id="billing-tx")
    broker.forget_denials()
    with Client(broker.bootstrap_servers) as client:
        client.login("alice", broker.password("alice"))
        for kind, key in ((0, "billing"), (1, "billing-tx")):
            client.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest("", kind, [key]))
    assert broker.denials() == []


def test_logins_are_counted_with_the_reasons_why_they_failed(broker):
    assert (broker.logins(), broker.failed_logins()) == (0, {})
    with Client(broker.bootstrap_servers) as client:
        client.login("alice", broker.password("alice"))
    with Client(broker.bootstrap_servers) as client:
        assert client.login("alice", "wrong").error_code
    assert broker.logins() == 1
    assert broker.failed_logins() == {"PLAIN: wrong password of user 'alice'": 1}


@pytest.mark.parametrize(("name", "value"), [
    ("listeners", "PLAINTEXT://127.0.0.1:0"),
    ("sasl.enabled.mechanisms", "SCRAM-SHA-512"),
    ("listener.name.sasl_plaintext.sasl.enabled.mechanisms", "SCRAM-SHA-512"),
    ("aclbroker.cluster", "none"),
    ("listener.security.protocol.map", "SASL_PLAINTEXT:SASL_SSL"),
])  # fmt: skip
def test_a_setting_by_which_clients_could_not_log_in_is_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name} cannot be set here"):
        AclBroker(properties={name: value})


def test_an_idempotent_producer_is_told_what_would_do(broker):
    with Client(broker.bootstrap_servers) as client:
        client.login("alice", broker.password("alice"))
        client.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000))
    assert [str(denial) for denial in broker.denials()] == [
        "User:alice from 127.0.0.1: InitProducerId needs WRITE on any TOPIC; to allow it: "
        "add WRITE on any one topic, or IDEMPOTENT_WRITE on the cluster, to User:alice"
    ]


def test_a_deny_is_named_as_what_must_go(broker):
    broker.grant("alice", "READ", topic="ord", prefixed=True)
    broker.grant("alice", "DESCRIBE", topic="orders", deny=True)
    asked_for(broker, "orders")
    assert "remove DENY DESCRIBE on TOPIC LITERAL orders" in str(broker.denials()[0])


def test_a_policy_may_be_given_as_text_and_as_a_file(tmp_path):
    text = (
        "version: 1\nacls:\n- principal: User:alice\n  rules:\n  - topic: orders\n    allow: READ\n"
    )
    path, users = tmp_path / "policy.yaml", tmp_path / "users.yaml"
    path.write_text(text)
    rule = "{resource: {type: topic, name: orders}, operations: [Read]}"
    users.write_text(
        "apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {name: alice}\n"
        f"spec: {{authorization: {{type: simple, acls: [{rule}]}}}}\n"
    )
    for policy in (text, str(path), path, users):
        with AclBroker(policy, topics={"orders": 1}) as broker:
            assert asked_for(broker, "orders") is None


async def test_each_client_library_logs_in_with_the_settings_that_are_made_for_it(broker):
    broker.grant("alice", "DESCRIBE", topic="orders")
    admin = AIOKafkaAdminClient(**broker.client_config("alice", "aiokafka"))
    await admin.start()
    try:
        assert [each["topic"] for each in await admin.describe_topics(["orders"])] == ["orders"]
    finally:
        await admin.close()
    assert broker.client_config("alice", "kafka-python")["sasl_plain_username"] == "alice"
    java = broker.client_config("alice", "java")
    assert java["bootstrap.servers"] == broker.bootstrap_servers
    assert broker.password("alice") in java["sasl.jaas.config"]
    with pytest.raises(ValueError, match=r"'go' is not known; it must be one of confluent"):
        broker.client_config("alice", "go")


def test_three_nodes_lead_partitions_in_turn():
    with AclBroker(topics={"orders": 3}, nodes=3) as broker:
        assert len(set(broker.bootstrap_servers.split(","))) == 3
        client = AdminClient(broker.client_config("admin"))
        found = client.list_topics("orders", timeout=WITHIN)
        leaders = [each.leader for each in found.topics["orders"].partitions.values()]
        assert sorted(leaders) == sorted(found.brokers)


def test_who_records_is_allowed_everything_and_what_it_used_is_known():
    with AclBroker(topics={"orders": 1}, records=True) as broker:
        assert asked_for(broker, "orders") is None
        assert [(each.operation.name, each.name) for each in broker.used()] == [
            ("DESCRIBE", "orders")
        ]
        assert broker.denials() == []


def test_a_right_on_the_cluster_is_used_if_it_stands_in_for_one_on_a_topic_and_not_to_filter(
    broker,
):
    broker.grant("alice", "CREATE", "DESCRIBE", cluster=True)
    client = AdminClient(broker.client_config("alice"))
    assert client.list_consumer_groups().result(WITHIN).errors == []
    assert broker.used() == []
    client.create_topics([NewTopic("new", 1)])["new"].result(WITHIN)
    assert [(each.operation.name, each.name) for each in broker.used()] == [
        ("CREATE", "kafka-cluster")
    ]


@pytest.fixture
def admin(broker: AclBroker) -> Iterator[Client]:
    """A connection on which the super user has logged in."""
    with Client(broker.bootstrap_servers) as client:
        client.login("admin", broker.password("admin"))
        yield client


def described(admin: Client) -> int:
    return int(admin.ask(ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest()).error_code)


def test_a_fault_concerns_as_many_requests_as_were_asked_for(broker, admin):
    broker.fail("describecluster", "NOT_CONTROLLER", count=2)
    assert [described(admin) for _ in range(3)] == [41, 41, 0]
    broker.fail("DescribeCluster", "NOT_CONTROLLER")
    broker.forget_faults()
    assert described(admin) == 0


def test_a_fault_may_be_a_wait_or_the_end_of_the_connection(broker, admin):
    broker.fail("DescribeCluster", delay=0.3)
    broker.fail("DescribeCluster", closes=True)
    began = time.monotonic()
    assert described(admin) == 0
    # The event loop's timers are a millisecond wide.
    assert time.monotonic() - began > 0.2
    with pytest.raises(ConnectionError):
        described(admin)


@pytest.mark.parametrize(("arguments", "told"), [
    ({"request": "Metdata"}, r"'Metdata' is not known; did you mean Metadata"),
    ({"request": "Produce", "error": "NOT_LEADER"}, r"did you mean NOT_LEADER_OR_FOLLOWER"),
    ({"request": "Produce", "count": 0}, r"count of at least 1"),
])  # fmt: skip
def test_a_fault_that_cannot_be_is_refused(broker, arguments, told):
    with pytest.raises(ValueError, match=told):
        broker.fail(**arguments)


@pytest.mark.parametrize(("operation", "resource", "told"), [
    ("REED", {"topic": "orders"}, r"'REED' is not known; did you mean READ"),
    ("ANY", {"topic": "orders"}, r"cannot be granted|not be granted"),
    ("READ", {}, r"one resource is needed: one of topic, group"),
    ("READ", {"topic": "a", "group": "b"}, r"one resource is needed"),
    ("READ", {"topic": ""}, r"refused"),
])  # fmt: skip
def test_what_no_acl_can_say_is_not_granted(broker, operation, resource, told):
    with pytest.raises(ValueError, match=told):
        broker.grant("alice", operation, **resource)


@pytest.mark.parametrize(("name", "partitions"), [("a/b", 1), ("orders", 1), ("new", 0)])
def test_a_topic_that_cannot_be_is_not_created(broker, name, partitions):
    with pytest.raises(ValueError, match=name):
        broker.create_topic(name, partitions)


def test_time_can_be_moved(broker):
    broker.advance(3600)  # nothing waits for it, and nothing breaks
    assert asked_for(broker, "orders", "admin") is None


def test_a_broker_changes_nothing_of_the_process_around_it():
    before = structlog.get_config(), logging.getLogger().handlers[:], threading.active_count()
    with AclBroker():
        pass
    assert before == (
        structlog.get_config(),
        logging.getLogger().handlers[:],
        threading.active_count(),
    )


def test_a_broker_that_cannot_start_says_why():
    from aclbroker.broker.config import ConfigError

    with pytest.raises(ConfigError, match=r"aclbroker\.nodes"):
        AclBroker(nodes=0).start()
    for use in (lambda each: each.create_topic("orders"), lambda each: each.client_config("shop")):
        with pytest.raises(RuntimeError, match="not running"):
            use(AclBroker())


NAMELESS = AclBinding(
    ResourceType.TOPIC, "", PatternType.LITERAL, "User:shop", "*", AclOperation.READ,
    AclPermission.ALLOW,
)  # fmt: skip


@pytest.mark.parametrize("wrong", [{"topics": {"a/b": 1}}, {"policy": [NAMELESS]}])
def test_of_a_start_that_fails_nothing_is_left(wrong):
    before = threading.enumerate()
    broker = AclBroker(**wrong)
    with pytest.raises(ValueError, match=r"a/b|refused"):
        broker.start()
    assert threading.enumerate() == before
    broker.stop()  # does nothing


def test_a_broker_that_runs_may_be_entered_and_is_stopped_at_the_end():
    before = threading.enumerate()
    running = AclBroker(topics={"orders": 1}).start()
    where = running.bootstrap_servers
    with running as broker:
        assert (broker, broker.bootstrap_servers) == (running, where)
        assert asked_for(broker, "orders", "admin") is None
    assert threading.enumerate() == before
    running.stop()  # does nothing


def test_a_broker_that_has_ended_does_not_start_again():
    broker = AclBroker(topics={"orders": 1})
    with broker:
        asked_for(broker, "orders")
    with pytest.raises(RuntimeError, match="started before; make another one"):
        broker.start()
    broker.stop()  # does nothing
    assert broker.denials()


def test_what_a_call_from_a_test_has_logged_is_in_the_brokers_log(broker, capfd):
    broker.grant("alice", "READ", topic="orders", host="not a host")
    assert "not a host" in broker.log()
    assert capfd.readouterr() == ("", "")


def test_brokers_do_not_know_of_each_other():
    with AclBroker(topics={"orders": 1}) as first, AclBroker(topics={"orders": 1}) as second:
        first.grant("alice", "DESCRIBE", topic="orders")
        assert asked_for(first, "orders") is None
        assert asked_for(second, "orders") == "TOPIC_AUTHORIZATION_FAILED"
        assert first.denials() == []
