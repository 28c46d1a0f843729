"""From a request's frame to its response's: what a handler may return."""

from __future__ import annotations

import io
from typing import Any

import pytest

from aclbroker.broker.acl.authorizer import Session
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.handlers import HANDLERS
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
)
from tests.gate.rights import everything, names_that_begin_with, nothing, services
from tests.support.client import ALL_ACLS, request_frame

SESSION = Session(("User:alice",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")
ANSWER = DescribeAclsResponse(
    resources=[DescribeAclsResource(2, "orders", 3, [AclDescription("User:a", "*", 3, 3)])]
)


def parts(rights: Any) -> Services:
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    return services(rights, Catalog("cluster"), audit)


def frame_of(key: int, version: int, request: Any) -> bytes:
    return request_frame(key, version, request, 7)[4:]


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_ACLS].versions)
async def test_an_answer_may_be_encoded_already(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frame_of(ApiKey.DESCRIBE_ACLS, version, ALL_ACLS)

    async def later(*_: Any) -> bytes:
        return encode(ANSWER, version)

    monkeypatch.setitem(HANDLERS, ApiKey.DESCRIBE_ACLS, lambda *_: ANSWER)
    expected = dispatch(parts(everything), SESSION, frame)
    monkeypatch.setitem(HANDLERS, ApiKey.DESCRIBE_ACLS, lambda *_: encode(ANSWER, version))
    assert dispatch(parts(everything), SESSION, frame) == expected
    monkeypatch.setitem(HANDLERS, ApiKey.DESCRIBE_ACLS, later)
    assert await dispatch(parts(everything), SESSION, frame) == expected


def test_an_encoded_answer_is_not_asked_for_without_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = frame_of(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)
    refused = dispatch(parts(nothing), SESSION, frame)
    monkeypatch.setitem(HANDLERS, ApiKey.DESCRIBE_ACLS, lambda *_: encode(ANSWER, 3))
    assert dispatch(parts(nothing), SESSION, frame) == refused


def test_an_encoded_answer_cannot_stand_for_a_part_of_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = MetadataRequest([MetadataRequestTopic(name="may"), MetadataRequestTopic(name="not")])
    frame = frame_of(ApiKey.METADATA, 12, asked)
    monkeypatch.setitem(HANDLERS, ApiKey.METADATA, lambda *_: encode(MetadataResponse(), 12))
    with pytest.raises(AttributeError):
        dispatch(parts(names_that_begin_with("may")), SESSION, frame)
