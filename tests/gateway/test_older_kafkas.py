"""A gateway before older Kafkas: it offers the versions and features that both sides know."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.gateway.test_real_clients import values
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.gateway import gateway_before
from tests.support.kafka import QUICK_TO_START, Kafka
from tests.support.packages import SLF4J, jars

pytestmark = pytest.mark.thorough

VERSIONS = ("3.9.1", "4.0.1")


@pytest.fixture(scope="module", params=VERSIONS)
def old_kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kafka]:
    coordinates = (f"org.apache.kafka:kafka_2.13:{request.param}", SLF4J)
    kafka = Kafka(
        tmp_path_factory.mktemp("kafka"),
        flags=tuple(flag for flag in QUICK_TO_START if "Shared" not in flag),
        class_path=(jars(f"kafka-{request.param}", coordinates),),
    )
    try:
        kafka.start()
        yield kafka
    finally:
        if kafka.process is not None:
            kafka.kill()


@pytest.fixture(scope="module")
def gateway(old_kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    address = old_kafka.listeners["PLAINTEXT"]
    gateway = gateway_before(address, tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.terminate()


def versions(address: str) -> ApiVersionsResponse:
    with Client(address) as client:
        answer: ApiVersionsResponse = client.ask(
            ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1")
        )
    return answer


def test_versions_are_those_that_both_sides_know(old_kafka: Kafka, gateway: Broker):
    theirs = versions(old_kafka.listeners["PLAINTEXT"])
    ours = versions(gateway.listeners["PLAINTEXT"])
    offered = {
        each.api_key: range(each.min_version, each.max_version + 1) for each in theirs.api_keys
    }
    for listed in ours.api_keys:
        known = APIS[listed.api_key].versions
        both = known
        if listed.api_key not in ANSWERED_HERE:
            both = range(
                max(known[0], offered[listed.api_key][0]),
                min(known[-1], offered[listed.api_key][-1]) + 1,
            )
        assert range(listed.min_version, listed.max_version + 1) == both, listed
    for features in ("supported_features", "finalized_features"):
        assert sorted(map(repr, getattr(ours, features))) == sorted(
            map(repr, getattr(theirs, features))
        )


def test_a_group_reads_what_a_producer_wrote(gateway: Broker):
    config = {"bootstrap.servers": gateway.listeners["PLAINTEXT"]}
    producer = Producer(config | {"enable.idempotence": True})
    written = [str(number) for number in range(100)]
    for value in written:
        producer.produce("numbers", value.encode())
    assert producer.flush(30) == 0
    consumer = Consumer(config | {"group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["numbers"])
    assert sorted(values(consumer, 100), key=int) == written
    consumer.close()
