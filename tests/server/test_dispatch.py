"""From a request's frame to its response's: what a handler may return."""

from __future__ import annotations

import io
from collections.abc import Awaitable
from typing import Any

import pytest

from aclbroker.acl.authorizer import Session
from aclbroker.broker.backends.declared import DECLARED_HANDLERS
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.gate.topic_resolver import wanted
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server.dispatch import dispatch
from aclbroker.protocol.compile import encode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from aclbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from aclbroker.protocol.wire import decode_response
from tests.gate.rights import everything, names_that_begin_with, nothing, services
from tests.support.client import ALL_ACLS, request_frame

SESSION = Session(("User:alice",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")
ANSWER = DescribeAclsResponse(
    resources=[DescribeAclsResource(2, "orders", 3, [AclDescription("User:a", "*", 3, 3)])]
)


def parts(rights: Any) -> Services:
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    return services(rights, Catalog(), audit)


def frame_of(key: int, version: int, request: Any) -> bytes:
    return request_frame(key, version, request, 7)[4:]


async def answer_to(frame: bytes) -> Any:
    """Return the answer, also if the first turn is over before it is there, on a slow machine."""
    answer = dispatch(parts(everything), SESSION, frame)
    return await answer if isinstance(answer, Awaitable) else answer


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_ACLS].versions)
async def test_an_answer_may_be_encoded_already(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frame_of(ApiKey.DESCRIBE_ACLS, version, ALL_ACLS)

    async def later(*_: Any) -> bytes:
        return encode(ANSWER, version)

    monkeypatch.setitem(ANSWERED_HERE, ApiKey.DESCRIBE_ACLS, lambda *_: ANSWER)
    expected = await answer_to(frame)
    monkeypatch.setitem(ANSWERED_HERE, ApiKey.DESCRIBE_ACLS, lambda *_: encode(ANSWER, version))
    assert await answer_to(frame) == expected
    monkeypatch.setitem(ANSWERED_HERE, ApiKey.DESCRIBE_ACLS, later)
    answer = dispatch(parts(everything), SESSION, frame)
    assert isinstance(answer, Awaitable)
    assert await answer == expected


def test_an_encoded_answer_is_not_asked_for_without_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = frame_of(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    refused = dispatch(parts(nothing), SESSION, frame)
    monkeypatch.setitem(ANSWERED_HERE, ApiKey.DESCRIBE_ACLS, lambda *_: encode(ANSWER, 3))
    assert dispatch(parts(nothing), SESSION, frame) == refused


def test_an_encoded_answer_cannot_stand_for_a_part_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = MetadataRequest([MetadataRequestTopic(name="may"), MetadataRequestTopic(name="not")])
    frame = frame_of(ApiKey.METADATA, 12, asked)
    monkeypatch.setitem(
        DECLARED_HANDLERS, ApiKey.METADATA, lambda *_: encode(MetadataResponse(), 12)
    )
    with pytest.raises(AttributeError):
        dispatch(parts(names_that_begin_with("may")), SESSION, frame)


async def encoded(answering: Awaitable[Any]) -> Any:
    return await answering


def read_response(key: int, version: int, frame: bytes) -> Any:
    return decode_response(APIS[key], version, frame[4:])[1]


class AskedElsewhere(Catalog):
    """Knows of topics only once another broker has answered."""

    knows_at_once = False

    def __init__(self, *names: str) -> None:
        super().__init__(dict.fromkeys(names, 1))
        self.asked: list[Any] = []

    def known(self, row: Any, request: Any) -> Any:
        return self._answered(row, request)

    async def _answered(self, row: Any, request: Any) -> Catalog:
        self.asked.append(wanted(row, request))
        return self


async def test_a_request_with_topic_ids_waits_for_who_knows_their_names() -> None:
    elsewhere = AskedElsewhere("may", "not")
    ids = [elsewhere.id_of("may"), elsewhere.id_of("not"), bytes(15) + b"?"]
    request = MetadataRequest([MetadataRequestTopic(each, None) for each in ids])
    frame = frame_of(ApiKey.METADATA, 12, request)
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))

    answering = dispatch(services(names_that_begin_with("may"), elsewhere, audit), SESSION, frame)
    assert isinstance(answering, Awaitable)
    answer = read_response(ApiKey.METADATA, 12, bytes(await encoded(answering)))

    assert elsewhere.asked == [(set(ids), set())]
    assert [(topic.topic_id, topic.error_code) for topic in answer.topics] == [
        (ids[0], 0),
        (ids[1], 29),
        (ids[2], 100),
    ]


async def test_a_handler_that_waits_may_follow_a_resolver_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def later(*_: Any) -> MetadataResponse:
        return MetadataResponse()

    monkeypatch.setitem(DECLARED_HANDLERS, ApiKey.METADATA, later)
    elsewhere = AskedElsewhere("orders")
    asked = MetadataRequest([MetadataRequestTopic(name="orders"), MetadataRequestTopic(name="x")])
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    answering = dispatch(
        services(everything, elsewhere, audit), SESSION, frame_of(ApiKey.METADATA, 12, asked)
    )
    assert isinstance(answering, Awaitable)
    frame: Any = await answering
    assert read_response(ApiKey.METADATA, 12, bytes(frame)).topics == []
    assert elsewhere.asked == [(set(), {"orders", "x"})]


async def test_a_list_that_an_answer_shares_with_somebody_else_is_not_emptied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [MetadataResponseBroker(number, "localhost", 9092) for number in range(2_000)]
    own: list[Any] = []

    async def later(*_: Any) -> MetadataResponse:
        response = MetadataResponse(brokers=nodes, topics=[MetadataResponseTopic(0, "t")] * 2_000)
        own.append(response)
        return response

    monkeypatch.setitem(DECLARED_HANDLERS, ApiKey.METADATA, later)
    asked = MetadataRequest([MetadataRequestTopic(name=f"topic-{n}") for n in range(2_000)])
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    answering = dispatch(
        services(everything, Catalog(), audit), SESSION, frame_of(ApiKey.METADATA, 9, asked)
    )
    assert isinstance(answering, Awaitable)
    answer = read_response(ApiKey.METADATA, 9, bytes(await encoded(answering)))
    assert (len(answer.brokers), len(answer.topics)) == (2_000, 2_000)
    assert len(nodes) == 2_000
    assert own[0].topics == []  # what only the message has is freed, piece by piece


async def test_a_repeated_request_is_the_same_after_a_large_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def large(_services: Any, _rights: Any, request: MetadataRequest) -> MetadataResponse:
        nodes = [MetadataResponseBroker(number, "localhost", 9092) for number in range(2_000)]
        topics = [MetadataResponseTopic(0, topic.name) for topic in request.topics or ()]
        return MetadataResponse(brokers=nodes, topics=topics)

    monkeypatch.setitem(DECLARED_HANDLERS, ApiKey.METADATA, large)
    names = ["orders", "payments"]
    asked = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
    frame = frame_of(ApiKey.METADATA, 12, asked)
    for _ in range(2):
        answer = bytes(await answer_to(frame))
        _, response = decode_response(APIS[ApiKey.METADATA], 12, answer[4:])
        assert [topic.name for topic in response.topics] == names


async def test_what_is_asked_again_is_answered_by_the_rights_and_topics_of_then() -> None:
    catalog = Catalog({"orders": 1}, (), 1, auto_creates=False, topic_ids=None)
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    frame = frame_of(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name="orders")]))

    async def code(rights: Any, version: int = 12) -> int:
        asked = frame[:2] + version.to_bytes(2, "big") + frame[4:]
        answer: Any = dispatch(services(rights, catalog, audit), SESSION, asked)
        answer = await answer if isinstance(answer, Awaitable) else answer
        _, response = decode_response(APIS[ApiKey.METADATA], version, bytes(answer)[4:])
        (topic,) = response.topics
        return int(topic.error_code)

    assert [await code(each) for each in (everything, nothing, everything)] == [0, 29, 0]
    assert await code(everything, 13) == 0
