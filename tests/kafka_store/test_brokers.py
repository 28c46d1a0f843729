"""Brokers that share a topic of a real Kafka."""

import itertools
import threading

import pytest

from aclbroker.acl.bindings import AclOperation
from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.scram_users import add_user, remove_user
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import allow, deny
from tests.server.test_status import STATUS, figure, page
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client
from tests.support.kafka import READY_WITHIN, STARTS_AGAIN_SOON, Kafka
from tests.support.process import wait_for

_names = (f"shared-{number}" for number in itertools.count())
WITHIN = 20.0


@pytest.fixture
def url(kafka):
    return f"kafka://{kafka.listeners['PLAINTEXT']}/{next(_names)}"


@pytest.fixture
def start(start_broker, tmp_path, url):
    """Start a broker with a node id, which has a directory of its own."""

    def started(node_id, **overrides):
        directory = tmp_path / str(node_id)
        directory.mkdir(exist_ok=True)
        settings = {"aclbroker.store": url, "node.id": str(node_id)}
        return start_broker({**settings, **overrides}, directory)

    return started


def session(broker):
    address = broker.listeners["PLAINTEXT"]
    return open_session(read_addresses(address), ClientSettings())


def acls_of(broker):
    with session(broker) as client:
        return sorted(describe_acls(client))


def come_to(broker, expected):
    """Wait until a broker has these ACLs."""
    wait_for(f"{expected}", lambda: True if acls_of(broker) == sorted(expected) else None, WITHIN)


def test_what_is_written_through_one_broker_holds_at_the_others_and_after_a_restart(start):
    one, two = start(1), start(2)
    with session(one) as client:
        create_acls(client, [allow(), deny("User:bob")])
        assert sorted(describe_acls(client)) == sorted([allow(), deny("User:bob")])
    come_to(two, [allow(), deny("User:bob")])
    with session(two) as client:
        # What is there already is written once more by nobody, and deleted for all.
        create_acls(client, [allow()])
        assert delete_acls(client, [exactly(deny("User:bob"))]) == [deny("User:bob")]
    come_to(one, [allow()])
    two.restart()
    assert acls_of(two) == [allow()]


def test_an_acl_that_another_broker_just_removed_is_created_again(start, every_case):
    one, two = start(1), start(2)
    acl = allow()
    for _ in range(20 if every_case else 2):
        with session(one) as first, session(two) as second:
            create_acls(first, [acl])
            # Neither broker waits until it has heard of it by itself.
            assert delete_acls(second, [exactly(acl)]) == [acl]
            create_acls(first, [acl])
            assert describe_acls(first) == [acl]
            assert delete_acls(first, [exactly(acl)]) == [acl]


def test_a_list_of_the_latest_shows_what_another_broker_has_just_changed(start, every_case):
    one, two = start(1), start(2, **{"aclbroker.store.read": "latest"})
    with session(one) as first, session(two) as second:
        for number in range(20 if every_case else 2):
            acl = allow(name=f"topic-{number}")
            create_acls(first, [acl])
            assert acl in describe_acls(second)
            delete_acls(first, [exactly(acl)])
            assert describe_acls(second) == []


def test_all_brokers_have_the_id_that_the_topic_has(start):
    ids = [
        next(event["cluster_id"] for event in start(node).events() if event["event"] == "ready")
        for node in (1, 2)
    ]
    assert ids[0] == ids[1]


def test_users_that_one_broker_has_may_log_in_at_the_others(start):
    scram = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}
    one, two = start(1, **scram), start(2, **scram)
    with session(one) as client:
        add_user(client, "zoe", "zoe-secret", ScramMechanism.SCRAM_SHA_256, 4096)
    wait_for("login", lambda: logs_in(two, "zoe-secret") or None, WITHIN)
    with session(two) as client:
        remove_user(client, "zoe")
    assert not logs_in(two, "zoe-secret")
    wait_for("no login", lambda: not logs_in(one, "zoe-secret") or None, WITHIN)


@pytest.mark.thorough
def test_a_broker_waits_for_a_kafka_that_is_started_later(tmp_path):
    for name in ("kafka", "broker"):
        (tmp_path / name).mkdir()
    kafka = Kafka(tmp_path / "kafka")
    url = f"kafka://{kafka.listeners['PLAINTEXT']}/acls"
    broker = Broker(tmp_path / "broker", {"aclbroker.store": url})
    starting = threading.Thread(target=broker.start, args=(READY_WITHIN,))
    starting.start()
    try:
        said = "ACL store is out of reach; trying again"
        wait_for(said, lambda: said in broker.log_text() or None, WITHIN)
        kafka.start()
        starting.join()
        with session(broker) as client:
            create_acls(client, [allow()])
    finally:
        broker.kill()
        kafka.kill()


@pytest.mark.thorough
def test_decisions_end_when_the_topic_is_out_of_reach_for_long_if_they_are_to(tmp_path):
    for name in ("kafka", "broker"):
        (tmp_path / name).mkdir()
    kafka = Kafka(tmp_path / "kafka", overrides=STARTS_AGAIN_SOON)
    broker = Broker(
        tmp_path / "broker",
        {
            "aclbroker.store": f"kafka://{kafka.listeners['PLAINTEXT']}/acls",
            "aclbroker.store.max.lag.ms": "1500",
            "aclbroker.store.stale": "deny",
            "aclbroker.catalog.topics": "orders:1",
            "aclbroker.store.read": "latest",
            **STATUS,
        },
    )
    try:
        kafka.start()
        broker.start()
        with session(broker) as client:
            create_acls(client, [allow("User:alice", name="orders")])
        assert sees_orders(broker, "alice")
        wait_for("all read", lambda: store_figure(broker, "unread_messages") == 0 or None, WITHIN)
        assert store_figure(broker, "stale") == 0
        kafka.kill()
        wait_for("denial", lambda: not sees_orders(broker, "alice") or None, WITHIN)
        assert sees_orders(broker, "admin")
        assert store_figure(broker, "stale") == 1
        assert store_figure(broker, "silent_seconds") > 1.5
        with Client(broker.listeners["PLAINTEXT"]) as client:
            refused = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
        assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
        kafka.start_again()
        wait_for("right", lambda: sees_orders(broker, "alice") or None, WITHIN)
        assert broker.told("ACLs may be stale: nothing has been heard of their store")[0] == 1
    finally:
        for each in (broker, kafka):
            if each.process is not None:
                each.kill()


def test_a_broker_whose_user_may_only_read_the_topic_follows_it_and_refuses_changes(
    kafka, start, url, tmp_path
):
    writes = start(1)
    with session(writes) as client:
        create_acls(client, [allow("User:alice", name="orders")])
        add_user(client, "zoe", "zoe-secret", ScramMechanism.SCRAM_SHA_256, 4096)
    topic = url.rpartition("/")[2]
    rights = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    with open_session(read_addresses(kafka.listeners["PLAINTEXT"]), ClientSettings()) as client:
        create_acls(client, [allow("User:bob", each, name=topic) for each in rights])
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="bob" password="{PASSWORDS["bob"]}";\n'
    )
    follows = start(
        2,
        **{
            "aclbroker.store": f"kafka://{kafka.listeners['SASL_PLAINTEXT']}/{topic}",
            "aclbroker.store.client.config": str(config),
            "aclbroker.catalog.topics": "",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            **STATUS,
        },
    )
    come_to(follows, [allow("User:alice", name="orders")])
    assert logs_in(follows, "zoe-secret")
    with session(writes) as client:
        create_acls(client, [deny("User:alice", name="orders")])
    come_to(follows, [allow("User:alice", name="orders"), deny("User:alice", name="orders")])
    assert page(follows, "/readyz")[0] == 200
    with session(follows) as client:
        with pytest.raises(RequestRefused, match="may only read its ACL store"):
            create_acls(client, [allow("User:carol")])
        with pytest.raises(RequestRefused, match="may only read its ACL store"):
            remove_user(client, "zoe")
    [reason] = {each["reason"] for each in follows.events() if each["event"] == "ACLs not changed"}
    assert "it only follows the topic" in reason
    assert logs_in(follows, "zoe-secret")


def store_figure(broker, name):
    store = broker.properties["aclbroker.store"]
    return figure(broker, f"aclbroker_store_{name}", store=store)


def sees_orders(broker, user):
    request = MetadataRequest([MetadataRequestTopic(name="orders")])
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.login(user, PASSWORDS[user])
        [topic] = client.ask(ApiKey.METADATA, 9, request).topics
    return topic.error_code == ErrorCode.NONE


def logs_in(broker, password):
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        return client.login_scram("zoe", password).error_code == ErrorCode.NONE
