"""What a connection may send, and what comes of what it may not."""

from __future__ import annotations

import struct

import pytest

from aclbroker.broker.backends.declared import DECLARED_LISTED
from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.create_acls import CreateAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from aclbroker.protocol.wire import framed
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import ALL_ACLS, Client, request_frame, topic_read
from tests.support.process import wait_for

DESCRIBE = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)


def malformed(broker: Broker) -> list[dict[str, object]]:
    """Return the log lines about malformed requests."""
    return [event for event in broker.events() if event["event"] == "malformed request"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory):
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.terminate()


def test_pipelined_requests_are_answered_in_order_and_each_sees_the_ones_before(
    broker: Broker,
) -> None:
    names = [f"pipelined-{number}" for number in range(50)]
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for number, name in enumerate(names):
            creation = CreateAclsRequest([topic_read(name)])
            client.send(request_frame(ApiKey.CREATE_ACLS, 3, creation, correlation_id=2 * number))
            describe = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, 2 * number + 1)
            client.send(describe)
        for number, name in enumerate(names):
            correlation_id, created = client.response(ApiKey.CREATE_ACLS, 3)
            assert correlation_id == 2 * number
            assert [result.error_code for result in created.results] == [0]
            correlation_id, described = client.response(ApiKey.DESCRIBE_ACLS, 3)
            assert correlation_id == 2 * number + 1
            seen = {resource.resource_name for resource in described.resources}
            assert name in seen
            assert not seen & set(names[number + 1 :])


def test_a_request_may_arrive_byte_by_byte(broker: Broker) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for byte in DESCRIBE:
            client.send(bytes([byte]))
        assert client.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0


def test_a_null_client_id_is_a_client_id(broker: Broker) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.send(request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS, client_id=None))
        assert client.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0


def test_every_version_of_every_key_of_kafka_is_advertised(broker: Broker) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        request = ApiVersionsRequest("test", "1.0")
        response = client.ask(ApiKey.API_VERSIONS, 4, request)
    advertised = {
        api.api_key: range(api.min_version, api.max_version + 1) for api in response.api_keys
    }
    listed = (*ANSWERED_HERE, *(versions.key for versions in DECLARED_LISTED))
    assert advertised == {key: APIS[key].versions for key in listed}


def test_an_unknown_version_of_api_versions_gets_a_version_0_answer_with_the_range(
    broker: Broker,
) -> None:
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\0"
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.send(struct.pack(">i", len(header)) + header)
        correlation_id, response = client.response(ApiKey.API_VERSIONS, 0)
        assert correlation_id == 7
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [(a.api_key, a.min_version, a.max_version) for a in response.api_keys] == [
            (ApiKey.API_VERSIONS, 0, 4)
        ]
        assert client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0


@pytest.mark.parametrize(
    ("name", "version"), [("-bad", "1"), ("good", "1 0"), ("", "1"), ("a" * 10, "1\n")]
)
def test_an_improper_client_software_name_or_version_gets_invalid_request(
    broker: Broker, name: str, version: str
) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        response = client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest(name, version))
    assert response.error_code == ErrorCode.INVALID_REQUEST


def header(key: int, version: int, client_id_length: int = -1) -> bytes:
    """Return a header of version 1 up to the client id's length."""
    return struct.pack(">hhih", key, version, 1, client_id_length)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(struct.pack(">i", -1), id="a negative length"),
        pytest.param(struct.pack(">i", 104857601), id="a length above socket.request.max.bytes"),
        pytest.param(framed(b""), id="a frame without a byte"),
        pytest.param(framed(b"\0\x1d\0"), id="half a header"),
        pytest.param(framed(header(9999, 0)), id="an unknown key"),
        pytest.param(framed(header(29, 4) + b"\0"), id="an unknown version"),
        pytest.param(framed(header(29, -1)), id="a negative version"),
        pytest.param(framed(header(30, 1, 50)), id="a client id beyond the frame"),
        pytest.param(framed(header(30, 1, 2) + b"\xff\xfe"), id="a client id that is not UTF-8"),
        pytest.param(framed(header(30, 1) + b"\x7f\xff\xff\xff"), id="an array beyond the frame"),
        pytest.param(framed(header(30, 1) + b"\xff\xff\xff\xff"), id="a null array"),
        pytest.param(framed(header(30, 2) + b"\0" + b"\xff" * 5), id="a varint beyond 32 bits"),
        pytest.param(framed(header(30, 2) + b"\0\xff"), id="a varint cut off"),
        pytest.param(
            DESCRIBE[:-1].replace(DESCRIBE[:4], struct.pack(">i", len(DESCRIBE) - 5), 1),
            id="a body cut off",
        ),
    ],
)
def test_malformed_bytes_close_their_connection_with_one_log_line_and_no_other(
    broker: Broker, data: bytes
) -> None:
    before = len(malformed(broker))
    with Client(broker.listeners["PLAINTEXT"]) as other:
        with Client(broker.listeners["PLAINTEXT"]) as client:
            client.send(data)
            assert client.is_closed()
        lines = wait_for("a log line", lambda: malformed(broker)[before:] or None, 10)
        assert [bool(line["reason"]) for line in lines] == [True]
        assert other.resource_names() is not None


def test_answers_before_a_malformed_frame_still_arrive(broker: Broker) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.send(DESCRIBE + struct.pack(">i", -5))
        assert client.response(ApiKey.DESCRIBE_ACLS, 3)[1].error_code == 0
        assert client.is_closed()


def test_metadata_names_this_broker_and_no_topics(broker: Broker) -> None:
    host, _, port = broker.listeners["PLAINTEXT"].rpartition(":")
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for version in APIS[ApiKey.METADATA].versions:
            request = MetadataRequest([MetadataRequestTopic(name="orders")])
            response = client.ask(ApiKey.METADATA, version, request)
            [node] = response.brokers
            assert (node.host, node.port) == (host, int(port))
            [topic] = response.topics
            assert (topic.name, topic.error_code) == (
                "orders",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )


def test_sasl_on_a_plaintext_listener_is_out_of_place_but_answered(broker: Broker) -> None:
    with Client(broker.listeners["PLAINTEXT"]) as client:
        response = client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
        assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.resource_names() is not None


def test_without_an_authorizer_the_acl_apis_answer_security_disabled(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"authorizer.class.name": ""})
    with Client(broker.listeners["PLAINTEXT"]) as client:
        described = client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
        assert described.error_code == ErrorCode.SECURITY_DISABLED
        assert client.create(topic_read("a"), topic_read("b")) == [54, 54]
        request = MetadataRequest([MetadataRequestTopic(name="orders")])
        [topic] = client.ask(ApiKey.METADATA, 9, request).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_request_above_the_configured_size_is_refused(start_broker: StartBroker) -> None:
    broker = start_broker({"socket.request.max.bytes": "4096"})
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("a" * 2000)) == [0]
        with pytest.raises(ConnectionClosed):
            client.create(topic_read("a" * 5000))
    [line] = wait_for("a log line", lambda: malformed(broker) or None, 10)
    assert "4096" in str(line["reason"])


def test_produce_is_refused_with_the_code_that_each_topic_has_earned(broker: Broker) -> None:
    partitions = [PartitionProduceData(0, None), PartitionProduceData(1, None)]
    request = ProduceRequest(
        acks=1, topic_data=[TopicProduceData("orders", partition_data=partitions)]
    )
    for user, code in (("admin", 3), ("alice", 29)):
        with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
            client.login(user, PASSWORDS[user])
            [topic] = client.ask(ApiKey.PRODUCE, 12, request).responses
            codes = [(entry.index, entry.error_code) for entry in topic.partition_responses]
            assert codes == [(0, code), (1, code)]


def test_produce_without_acknowledgement_closes_the_connection(broker: Broker) -> None:
    topic = TopicProduceData("orders", partition_data=[PartitionProduceData(0, None)])
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.send(request_frame(ApiKey.PRODUCE, 12, ProduceRequest(acks=0, topic_data=[topic])))
        assert client.is_closed()
