"""Client metrics: nothing is wanted of a client, and what it pushes is checked and dropped."""

from __future__ import annotations

import uuid

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from aclbroker.protocol.messages.push_telemetry import PushTelemetryRequest
from aclbroker.protocol.primitives import ZERO_UUID
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.kafka import Kafka

CLIENT = bytes(range(0xF0, 0x100))
KEYS = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
PUSHES = {
    "no id": PushTelemetryRequest(ZERO_UUID),
    "a reserved id": PushTelemetryRequest(bytes(15) + b"\1"),
    "another subscription": PushTelemetryRequest(CLIENT, 1),
    "an unknown compression": PushTelemetryRequest(CLIENT, 0, False, 5, b"metrics"),
    "too much": PushTelemetryRequest(CLIENT, 0, False, 0, bytes((1 << 20) + 1)),
    "as much as is allowed": PushTelemetryRequest(CLIENT, 0, True, 0, bytes(1 << 20)),
}
EXPECTED = {
    "no id": ErrorCode.INVALID_REQUEST,
    "a reserved id": ErrorCode.INVALID_REQUEST,
    "another subscription": ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    "an unknown compression": ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    "too much": ErrorCode.TELEMETRY_TOO_LARGE,
    "as much as is allowed": ErrorCode.NONE,
}


def subscription(address: str, client_id: bytes = CLIENT):
    with Client(address) as client:
        request = GetTelemetrySubscriptionsRequest(client_id)
        return client.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request)


def pushed(address: str, request: PushTelemetryRequest) -> int:
    """The code that a push gets after its subscription was fetched, `CLIENT` being a new client.

    Kafka remembers a client for a while, and refuses a second push so soon.
    """
    new = uuid.uuid4().bytes
    with Client(address) as client:
        ask = GetTelemetrySubscriptionsRequest(new)
        known = client.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, ask)
        sent = PushTelemetryRequest(
            new if request.client_instance_id == CLIENT else request.client_instance_id,
            request.subscription_id or known.subscription_id,
            request.terminating,
            request.compression_type,
            request.metrics,
        )
        return int(client.ask(ApiKey.PUSH_TELEMETRY, 0, sent).error_code)


@pytest.mark.parametrize("label", PUSHES)
def test_a_push_gets_the_code_of_kafka(broker: Broker, label: str):
    assert pushed(broker.listeners["PLAINTEXT"], PUSHES[label]) == EXPECTED[label]


def test_no_metrics_are_wanted_of_a_client(broker: Broker):
    answer = subscription(broker.listeners["PLAINTEXT"])
    assert (answer.error_code, answer.client_instance_id) == (0, CLIENT)
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)


def test_a_client_without_an_id_gets_one_of_its_own(broker: Broker):
    address = broker.listeners["PLAINTEXT"]
    ids = {subscription(address, ZERO_UUID).client_instance_id for _ in range(2)}
    assert len(ids - {ZERO_UUID}) == 2


def test_the_keys_are_answered_but_not_advertised(broker: Broker):
    with Client(broker.listeners["PLAINTEXT"]) as client:
        offered = client.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1")).api_keys
    assert not {each.api_key for each in offered} & set(KEYS)


def test_kafka_without_a_receiver_answers_the_same(kafka: Kafka, broker: Broker):
    theirs, ours = kafka.listeners["PLAINTEXT"], broker.listeners["PLAINTEXT"]
    assert subscription(ours) == subscription(theirs)
    for label, request in PUSHES.items():
        assert pushed(theirs, request) == EXPECTED[label], label
    with Client(theirs) as client:
        offered = client.ask(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1")).api_keys
    assert not {each.api_key for each in offered} & set(KEYS)
