"""Requests with more entries or tagged fields than are read: they get an error, the log a line."""

from __future__ import annotations

from typing import Any

import pytest

from aclbroker.broker.server.errors import unread
from aclbroker.protocol.compile import encode
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.header import RequestHeader, encode_request_header
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aclbroker.protocol.messages.produce import ProduceRequest, TopicProduceData
from aclbroker.protocol.primitives import MOST_ENTRIES, MOST_TAGS, TooMany
from aclbroker.protocol.wire import decode_response, framed
from tests.conftest import StartBroker
from tests.gate.requests import codes
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import ALL_ACLS, Client, request_frame
from tests.support.tables import check_each

MORE = MOST_ENTRIES + 1

CASES = [
    (key, version) for key, api in APIS.items() if key != ApiKey.PRODUCE for version in api.versions
]


def has_no_code(key: int, version: int) -> bool:
    """Whether an answer cannot say that all is refused; to clients an empty list says it."""
    return key == ApiKey.DESCRIBE_LOG_DIRS and version < 3


def check_answer(case: tuple[int, int]) -> None:
    key, version = case
    frame = request_frame(key, version, APIS[key].request(), correlation_id=7)[4:]
    refusal = unread(frame, TooMany("it has too many"))
    correlation_id, answer = decode_response(APIS[key], version, refusal.answer[4:])
    assert correlation_id == 7
    found = codes(answer) - {0}
    assert found == (set() if has_no_code(key, version) else {ErrorCode.INVALID_REQUEST})


def test_every_answer_has_a_place_for_the_error() -> None:
    check_each(CASES, check_answer)


def with_many_tags(key: int) -> bytes:
    """Return a request of a key's last version that has one tagged field too many."""
    message: Any = APIS[key].request()
    message.unknown_tags = tuple((1000 + number, b"") for number in range(MOST_TAGS + 1))
    return request_frame(key, APIS[key].versions[-1], message)


def test_too_many_tagged_fields_are_answered_with_an_error_and_one_log_line_each(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    keys = [key for key, api in APIS.items() if api.flexible in api.versions]
    keys.remove(ApiKey.PRODUCE)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for key in keys:
            client.send(with_many_tags(key))
            answer = client.response(key, APIS[key].versions[-1])[1]
            assert codes(answer) - {0} == {ErrorCode.INVALID_REQUEST}, APIS[key].name
    assert broker.terminate() == 0
    assert broker.told("request refused")[1] == len(keys)
    assert broker.told("malformed request") == (0, 0)


LONG = [
    pytest.param(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([""] * MORE), id="names"),
    pytest.param(
        ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic("t")] * MORE), id="structs"
    ),
    pytest.param(
        ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name="t")] * MORE), id="topics"
    ),
    pytest.param(
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        DescribeProducersRequest([TopicRequest("t", range(MORE))]),
        id="numbers",
    ),
    pytest.param(
        ApiKey.OFFSET_FETCH,
        8,
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t")] * (MORE // 2))
            ]
            * 2
        ),
        id="entries of entries",
    ),
]


@pytest.mark.parametrize(("key", "version", "request_"), LONG)
def test_too_many_entries_are_answered_with_an_error_and_the_next_request_as_ever(
    broker: Broker, key: int, version: int, request_: Any
) -> None:
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.login("alice", PASSWORDS["alice"])
        answer = client.ask(key, version, request_)
        assert codes(answer) - {0} == {ErrorCode.INVALID_REQUEST}
        has_message = key not in (ApiKey.METADATA, ApiKey.OFFSET_FETCH)
        assert has_message == (f"more than {MOST_ENTRIES} entries" in str(answer))
        assert client.ask(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS).error_code == 31
    [line] = [event for event in broker.events() if event["event"] == "request refused"]
    assert line["principal"] == "User:alice"
    assert line["reason"].endswith(f"more than {MOST_ENTRIES} entries")


def test_a_produce_with_too_many_entries_closes_its_connection(broker: Broker) -> None:
    """Whether it wants an answer is not known before it is read."""
    request = ProduceRequest(None, 0, topic_data=[TopicProduceData("t")] * MORE)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.send(request_frame(ApiKey.PRODUCE, 9, request))
        assert client.is_closed()
    [line] = [event for event in broker.events() if event["event"] == "malformed request"]
    assert "entries" in line["reason"]


def test_too_many_tagged_fields_in_a_header_close_the_connection(broker: Broker) -> None:
    tags = tuple((number, b"") for number in range(MOST_TAGS + 1))
    api = APIS[ApiKey.DESCRIBE_ACLS]
    header = encode_request_header(api, RequestHeader(api.key, 3, 1, "test", tags, 0))
    with Client(broker.listeners["PLAINTEXT"]) as client:
        client.send(framed(header + encode(ALL_ACLS, 3)))
        assert client.is_closed()
