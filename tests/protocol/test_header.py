"""Headers of requests and responses, the forms of which the API and its version decide."""

from __future__ import annotations

import pytest
from kio.schema.request_header.v1.header import RequestHeader as KioHeader1
from kio.schema.request_header.v2.header import RequestHeader as KioHeader2
from kio.schema.response_header.v0.header import ResponseHeader as KioResponseHeader0
from kio.schema.response_header.v1.header import ResponseHeader as KioResponseHeader1
from kio.static.primitive import i32

from aclbroker.protocol.header import (
    RequestHeader,
    api_of,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    request_header_version,
    response_header_version,
)
from aclbroker.protocol.messages import APIS, Api, ApiKey
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.wire import response_frame
from tests.protocol.oracles import kio_bytes, kio_class
from tests.support.messages import MESSAGES, Message
from tests.support.tables import check_each

CREATE_ACLS = APIS[ApiKey.CREATE_ACLS]
"""Flexible from version 2 on."""

HEADER_VERSION = {"request": request_header_version, "response": response_header_version}


def test_every_message_has_the_header_that_kio_says() -> None:
    def check(message: Message) -> None:
        header_version = HEADER_VERSION[message.direction](APIS[message.key], message.version)
        assert header_version == kio_class(message).__header_schema__.__version__

    check_each([message for message in MESSAGES if kio_class(message)], check)


def test_controlled_shutdown_version_0_alone_has_no_client_id() -> None:
    without = [
        (api.key, version)
        for api in APIS.values()
        for version in api.versions
        if request_header_version(api, version) == 0
    ]
    assert without == [(ApiKey.CONTROLLED_SHUTDOWN, 0)]


def test_header_version_0_ends_behind_the_correlation_id() -> None:
    frame = b"\0\x07\0\0\0\0\0\x2abody"
    header = decode_request_header(APIS[ApiKey.CONTROLLED_SHUTDOWN], frame)
    assert header == RequestHeader(7, 0, 42, None, (), 8)
    assert encode_request_header(APIS[ApiKey.CONTROLLED_SHUTDOWN], header) == frame[:8]


@pytest.mark.parametrize("client_id", ["", "a client", "клиент", "c" * 32_767, None])
@pytest.mark.parametrize(("version", "kio"), [(1, KioHeader1), (2, KioHeader2)])
def test_kio_writes_the_same_header_and_it_is_read(
    version: int, kio: type, client_id: str | None
) -> None:
    data = kio_bytes(
        kio(request_api_key=30, request_api_version=version, correlation_id=-7, client_id=client_id)
    )
    header = RequestHeader(30, version, -7, client_id, (), len(data))
    assert encode_request_header(CREATE_ACLS, header) == data
    assert decode_request_header(CREATE_ACLS, data + b"body") == header


def test_any_negative_length_is_a_client_id_of_null() -> None:
    frame = b"\0\x1e\0\x01\0\0\0\x01\xff\xfe"
    assert decode_request_header(CREATE_ACLS, frame).client_id is None


def test_unknown_tagged_fields_of_a_header_are_kept() -> None:
    header = RequestHeader(30, 2, 1, "a", ((0, b"zero"), (300, b"")), 0)
    frame = encode_request_header(CREATE_ACLS, header)
    assert frame.endswith(b"\0\x01a\x02\0\x04zero\xac\x02\0")
    assert decode_request_header(CREATE_ACLS, frame) == header._replace(body=len(frame))


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_cut_short_anywhere_is_refused(version: int) -> None:
    tags = ((7, b"tag"),) if version == 2 else ()
    frame = encode_request_header(CREATE_ACLS, RequestHeader(30, version, 1, "client", tags, 0))
    for size in range(len(frame)):
        with pytest.raises(ProtocolError):
            decode_request_header(CREATE_ACLS, frame[:size])


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"\x7f\xff" + b"c" * 9, id="client id longer than the request"),
        pytest.param(b"\0\x02\xc3\x28\0", id="client id that is no UTF-8"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff\x1f", id="number of tags beyond 32 bits"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff\x0f", id="more tags than bytes"),
        pytest.param(b"\xff\xff\x01\x07\x09abc", id="tagged field longer than the request"),
    ],
)
def test_a_malformed_header_is_refused(rest: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_request_header(CREATE_ACLS, b"\0\x1e\0\x02\0\0\0\x01" + rest)


def test_key_and_version_are_read_of_requests_that_nobody_knows() -> None:
    assert api_of(b"\x7f\xff\xff\xff\0\0\0\x01") == (32_767, -1)


@pytest.mark.parametrize("size", range(8))
def test_a_frame_shorter_than_any_header_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"a request of {size} bytes"):
        api_of(bytes(size))


def response_header(api: Api, version: int, correlation_id: int) -> bytes:
    """The header of a response whose message has no bytes."""
    return response_frame(api, version, correlation_id, b"")[4:]


def test_a_response_header_is_the_correlation_id_and_where_it_may_have_tags_none() -> None:
    assert response_header(CREATE_ACLS, 1, -2) == b"\xff\xff\xff\xfe"
    assert response_header(CREATE_ACLS, 2, 7) == b"\0\0\0\x07\0"
    for version, kio in ((1, KioResponseHeader0), (2, KioResponseHeader1)):
        written = response_header(CREATE_ACLS, version, 0x7FFF_FFFF)
        assert kio_bytes(kio(correlation_id=i32(0x7FFF_FFFF))) == written
        header = (0x7FFF_FFFF, len(written))
        assert decode_response_header(CREATE_ACLS, version, written + b"body") == header


def test_tagged_fields_of_a_response_header_are_skipped() -> None:
    frame = b"\0\0\0\x07" + b"\x01\x05\x03tag" + b"body"
    assert decode_response_header(CREATE_ACLS, 2, frame) == (7, 10)
    for size in range(10):
        with pytest.raises(ProtocolError):
            decode_response_header(CREATE_ACLS, 2, frame[:size])


@pytest.mark.parametrize("version", [*APIS[ApiKey.API_VERSIONS].versions, 99])
def test_api_versions_is_answered_with_header_version_0_that_any_client_reads(
    version: int,
) -> None:
    assert response_header(APIS[ApiKey.API_VERSIONS], version, 7) == b"\0\0\0\x07"
