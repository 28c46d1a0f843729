"""The topic with the ACLs is hidden from the clients of the brokers that keep their ACLs in it."""

import itertools
import json

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from aclbroker.broker.client.acls import create_acls, describe_acls
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey, fetch
from aclbroker.protocol.messages import delete_records as delete
from aclbroker.protocol.messages import list_offsets as offsets
from aclbroker.protocol.messages import offset_commit as commit
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import WRITE, allow
from tests.http_api.api import MDS, Api, held
from tests.http_api.test_clusters import LISTENERS
from tests.support.broker import Broker
from tests.support.client import Client

_names = (f"hidden-{number}" for number in itertools.count())
WITHIN = 30.0
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MEMORY = {"aclbroker.cluster": "memory", "aclbroker.catalog.topics": "orders:1"}


@pytest.fixture
def topic():
    return next(_names)


@pytest.fixture
def url(kafka, topic):
    return f"kafka://{kafka.listeners['PLAINTEXT']}/{topic}"


def code_of(attempt, *args, **kwargs):
    """Return the code with which something fails, 0 if it does not."""
    with pytest.raises(KafkaException) as failure:
        attempt(*args, **kwargs)
    return failure.value.args[0].code()


def settled(futures):
    [future] = futures.values()
    return future.result(WITHIN)


def produced(address, topic):
    """Return the code that a record for a topic is answered with."""
    codes = []
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": 15_000})
    producer.produce(topic, b"value", on_delivery=lambda error, _: codes.append(error))
    producer.flush(WITHIN)
    [error] = codes
    return 0 if error is None else error.code()


def asked_at_once(address, topic):
    """Yield the codes of requests that name the topic without having seen it."""
    with Client(address) as client:
        partition = fetch.FetchPartition(0)
        wanted = fetch.FetchRequest(topics=[fetch.FetchTopic(topic, partitions=[partition])])
        [fetched] = client.ask(ApiKey.FETCH, 12, wanted).responses
        yield fetched.partitions[0].error_code
        latest = [offsets.ListOffsetsPartition(0, timestamp=-1)]
        ends = offsets.ListOffsetsRequest(-1, topics=[offsets.ListOffsetsTopic(topic, latest)])
        [found] = client.ask(ApiKey.LIST_OFFSETS, 7, ends).topics
        yield found.partitions[0].error_code
        committed = [commit.OffsetCommitRequestPartition(0, 5)]
        topics = [commit.OffsetCommitRequestTopic(topic, partitions=committed)]
        commits = commit.OffsetCommitRequest("g", topics=topics)
        [kept] = client.ask(ApiKey.OFFSET_COMMIT, 8, commits).topics
        yield kept.partitions[0].error_code
        beginning = [delete.DeleteRecordsPartition(0, 5)]
        emptied = delete.DeleteRecordsRequest([delete.DeleteRecordsTopic(topic, beginning)])
        [deleted] = client.ask(ApiKey.DELETE_RECORDS, 2, emptied).topics
        yield deleted.partitions[0].error_code


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"super.users": "User:other", "allow.everyone.if.no.acl.found": "true"},
        {"authorizer.class.name": ""},
    ],
    ids=["super user", "allow everyone", "no authorizer"],
)
def test_real_clients_neither_see_nor_reach_it(start_broker, tmp_path, topic, url, others):
    audit = tmp_path / "audit.jsonl"
    broker = start_broker(
        {"aclbroker.store": url, "aclbroker.audit.file": str(audit), **MEMORY, **others}
    )
    address = broker.listeners["PLAINTEXT"]
    if not others:
        with open_session(read_addresses(address), ClientSettings()) as client:
            # It is a name like others to ACLs, which have no effect.
            named = allow("User:ANONYMOUS", WRITE, topic)
            create_acls(client, [named])
            assert describe_acls(client) == [named]
    admin = AdminClient({"bootstrap.servers": address})
    assert [*admin.list_topics(timeout=WITHIN).topics] == ["orders"]
    asked = admin.list_topics(topic, timeout=WITHIN).topics[topic]
    assert asked.error is not None
    assert asked.error.code() == DENIED
    assert produced(address, "orders") == 0
    assert produced(address, topic) == DENIED
    assert code_of(settled, admin.create_topics([NewTopic(topic, 1, 1)])) == DENIED
    assert code_of(settled, admin.delete_topics([topic])) == DENIED
    assert code_of(settled, admin.create_partitions([NewPartitions(topic, 2)])) == DENIED
    configs = ConfigResource(ConfigResource.Type.TOPIC, topic)
    assert code_of(settled, admin.describe_configs([configs])) == DENIED
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(WITHIN)
        error = None if message is None else message.error()
        assert error is not None
        assert error.code() == DENIED
    finally:
        consumer.close()
    # What these clients do not send to a topic that they cannot find.
    assert set(asked_at_once(address, topic)) == {DENIED}
    broker.terminate()
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    of_topic = [line for line in lines if line.get("resource_name") == topic]
    assert {line["rule"] for line in of_topic} == {"ReservedTopic"}
    assert {"Metadata", "CreateTopics", "DeleteTopics"} <= {line["api_name"] for line in of_topic}
    for line in of_topic:
        assert (line["allowed"], line["acl"]) == (False, None)
        assert not {"acls", "nearest", "smallest_change"} & line.keys()


def test_each_cluster_hides_its_own_and_the_server_all(start_broker, topic, url):
    settings = MDS | held("lkc-A", "lkc-B") | LISTENERS
    settings |= {"aclbroker.clusters.lkc-A.store": url}
    broker = start_broker(settings)

    def asked(listener):
        request = MetadataRequest([MetadataRequestTopic(name=topic)])
        with Client(broker.listeners[listener]) as client:
            client.login("admin", "admin-of-b" if listener == "B" else "admin-secret")
            [answered] = client.ask(ApiKey.METADATA, 9, request).topics
        return answered.error_code

    assert asked("SASL_PLAINTEXT") == asked("A") == DENIED
    assert asked("B") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    api = Api(broker)

    def decided(cluster_id, name):
        action = {
            "scope": {"clusters": {"kafka-cluster": cluster_id}},
            "resourceType": "Topic",
            "resourceName": name,
            "operation": "Read",
        }
        body = {"userPrincipal": "User:admin", "actions": [action]}
        [answer] = api.call("PUT", "/security/1.0/authorize", body).value
        return answer

    assert decided("lkc-A", topic) == "DENIED"
    assert decided("lkc-A", "orders") == decided("lkc-B", topic) == "ALLOWED"


def test_a_catalog_that_names_it_is_refused(tmp_path):
    broker = Broker(
        tmp_path,
        {
            "aclbroker.store": "kafka://127.0.0.1:1/acls",
            "aclbroker.catalog.topics": "orders:1,acls:1",
        },
    )
    with pytest.raises(RuntimeError) as failure:
        broker.start()
    assert (
        "aclbroker.catalog.topics='orders:1,acls:1': topic 'acls' keeps the ACLs of a store, and "
        "no client may see it"
    ) in str(failure.value)
