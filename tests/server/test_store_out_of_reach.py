"""A broker whose shared store is out of reach when it starts, and clients that have begun by then.

Kafka and ZooKeeper are real ones that were stopped, and are started again.
"""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from aclbroker.broker.auth.sasl.scram_credentials import ScramMechanism
from aclbroker.broker.client.scram_users import add_user
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.messages.list_offsets import ListOffsetsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.logins.clients import kafka_acls
from tests.server.test_status import STATUS, figure, page
from tests.support.accounts import PASSWORDS, properties_text
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.kafka import READY_WITHIN, STARTS_AGAIN_SOON, Kafka
from tests.support.process import wait_for
from tests.support.zookeeper import Zookeeper

WAITS = "the ACLs are not there yet: only ApiVersions and logins that need no store are answered"
WITHIN = 60.0
SASL = "SASL_PLAINTEXT"
SETTINGS = {
    **STATUS,
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "super.users": "User:admin;User:zoe;User:ANONYMOUS",
    "aclbroker.cluster": "memory",
    "aclbroker.catalog.topics": "orders:1",
}


@contextlib.contextmanager
def kafka_store(directory):
    kafka = Kafka(directory, overrides=STARTS_AGAIN_SOON)
    yield f"kafka://{kafka.listeners['PLAINTEXT']}/acls", kafka.start, kafka.start_again, kafka


@contextlib.contextmanager
def zookeeper_store(directory):
    zookeeper = Zookeeper(directory)
    yield f"zookeeper://{zookeeper.address}/acls", zookeeper.start, zookeeper.start, zookeeper


@pytest.fixture(
    scope="module", params=[pytest.param(kafka_store, marks=pytest.mark.thorough), zookeeper_store]
)
def stopped(request, tmp_path_factory):
    """A store that is stopped and has a user of SCRAM: its URL, what starts it, and its server."""
    directory = tmp_path_factory.mktemp("store")
    with request.param(directory) as (url, start, start_again, server):
        broker = Broker(tmp_path_factory.mktemp("first"), {**SETTINGS, "aclbroker.store": url})
        try:
            start()
            broker.start(WITHIN)
            with open_session(
                read_addresses(broker.listeners["PLAINTEXT"]), ClientSettings()
            ) as admin:
                add_user(admin, "zoe", "zoe-secret", ScramMechanism.SCRAM_SHA_256, 4096)
            assert broker.terminate() == 0
            server.kill()
            yield url, start_again, server
        finally:
            for each in (broker, server):
                if each.process is not None:
                    each.kill()


@pytest.fixture
def away(stopped, tmp_path):
    """A broker that waits for its store, and what starts that again."""
    url, start_again, server = stopped
    broker = Broker(tmp_path, {**SETTINGS, "aclbroker.store": url})
    broker._properties_file.write_text(properties_text(broker.properties))
    broker.spawn()
    try:
        broker.listeners = broker.wait_until_ready(lambda: waiting(broker), WITHIN)["listeners"]
        yield broker, start_again
    finally:
        for each in (broker, server):
            if each.process is not None:
                each.kill()


def waiting(broker):
    """What the broker says when it listens and has no store yet; None before."""
    return next((each for each in broker.events() if each["event"] == WAITS), None)


@pytest.mark.thorough
def test_it_ends_when_it_is_told_to_while_it_waits(away):
    broker, _ = away
    began = threading.Event()

    def hold():
        with Client(broker.listeners[SASL]) as client:
            client.login("alice", PASSWORDS["alice"])
            began.set()
            while not client.is_closed():
                time.sleep(0.05)

    holding = threading.Thread(target=hold)
    holding.start()
    assert began.wait(WITHIN)
    assert broker.terminate() == 0
    holding.join(WITHIN)
    assert not holding.is_alive()
    assert any(each["event"] == "stopped" for each in broker.events())


def test_it_answers_logins_and_refuses_the_rest_until_its_store_is_there(away):
    broker, start_again = away
    address = broker.listeners[SASL]
    with Client(address) as client:
        assert client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1")).error_code == 0
        client.login("alice", PASSWORDS["alice"])
        assert client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1")).error_code == 0
        orders = MetadataRequest([MetadataRequestTopic(name="orders")])
        metadata = client.ask(ApiKey.METADATA, 12, orders)
        assert (list(metadata.brokers), metadata.cluster_id) == ([], None)
        assert [each.error_code for each in metadata.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
        assert client.create(topic_read("orders")) == [ErrorCode.REQUEST_TIMED_OUT]
        for key, version, request in (
            (ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="group")),
            (ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000)),
        ):
            answer = client.ask(key, version, request)
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert client.ask(ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(topics=[])).topics == []
    with Client(address) as client:
        refused = client.login_scram("zoe", "zoe-secret")
        assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert refused.error_message == "The users of SCRAM are not known yet. Try again."
    with Client(address) as client:
        assert client.login("alice", "wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    status, text = page(broker, "/readyz")
    assert status == 503
    assert text.startswith("the ACLs are not loaded yet: ")
    assert page(broker, "/healthz")[0] == 200
    start_again()
    broker.wait_until_ready(broker._ready_event, READY_WITHIN)
    [ready] = [each for each in broker.events() if each["event"] == "ready"]
    assert ready["listeners"] == broker.listeners
    with Client(address) as client:
        assert client.login_scram("zoe", "zoe-secret").error_code == 0
        assert client.create(topic_read("orders")) == [0]
    assert page(broker, "/readyz") == (200, "ready\n")
    assert broker.terminate() == 0


def test_clients_that_have_begun_succeed_when_the_store_is_there(away, tmp_path):
    broker, start_again = away
    address = broker.listeners[SASL]
    failed = figures(broker, "failed", "SCRAM-SHA-256"), figures(broker, "succeeded", "PLAIN")
    assert failed == (0, 0)
    with ThreadPoolExecutor() as pool:
        listing = [
            pool.submit(kafka_acls, address, made, java_login(*how))
            for made, how in (
                (directory(tmp_path, "plain"), ("PLAIN", "admin", PASSWORDS["admin"])),
                (directory(tmp_path, "scram"), ("SCRAM-SHA-256", "zoe", "zoe-secret")),
            )
        ]
        created = pool.submit(create_by_librdkafka, broker.listeners["PLAINTEXT"])
        produced = pool.submit(produce, broker.listeners["PLAINTEXT"])
        wait_for(
            "both have tried",
            lambda: (
                (
                    figures(broker, "failed", "SCRAM-SHA-256") > 1
                    and figures(broker, "succeeded", "PLAIN") > 0
                )
                or None
            ),
            WITHIN,
        )
        start_again()
        assert [each.result(WITHIN) for each in listing] == ["", ""]
        created.result(WITHIN)
        assert produced.result(WITHIN) is None
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert "invoices" in client.resource_names()


def directory(parent, name):
    made = parent / name
    made.mkdir()
    return made


def figures(broker, outcome, mechanism):
    labels = {"listener": SASL, "mechanism": mechanism, "outcome": outcome}
    try:
        return figure(broker, "aclbroker_authentications_total", **labels)
    except ValueError:
        return 0


def java_login(mechanism, user, password):
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return {
        "security.protocol": SASL,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        f'username="{user}" password="{password}";',
    }


def create_by_librdkafka(address):
    admin = AdminClient({"bootstrap.servers": address})
    acl = AclBinding(
        *(ResourceType.TOPIC, "invoices", ResourcePatternType.LITERAL, "User:carol", "*"),
        *(AclOperation.READ, AclPermissionType.ALLOW),
    )
    [made] = admin.create_acls([acl], request_timeout=WITHIN).values()
    made.result(WITHIN)


def produce(address):
    """What came of a record of an idempotent producer: None, or an error."""
    errors = []
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    producer.produce("orders", b"record", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WITHIN) == 0
    return errors[0]
