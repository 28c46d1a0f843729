"""The stream of a connection: frames cut out of bytes, requests out of frames, and answers."""

from __future__ import annotations

import struct
import tracemalloc
from random import Random

import pytest

from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from aclbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from aclbroker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from aclbroker.protocol.primitives import LONGEST_BYTES, ProtocolError, TooMany
from aclbroker.protocol.wire import (
    FrameReader,
    decode_request,
    decode_response,
    framed,
    response_frame,
)
from tests.support.client import request_frame

DESCRIBE = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


def frames_of(reader: FrameReader) -> list[bytes]:
    """Return all frames that are whole."""
    return [bytes(frame) for frame in iter(reader.next_frame, None)]


def reader_of(data: bytes, limit: int = 100) -> FrameReader:
    """Return a reader that has been fed."""
    reader = FrameReader(limit)
    reader.feed(data)
    return reader


def test_a_frame_may_arrive_byte_by_byte() -> None:
    reader = FrameReader(100)
    data = framed(b"frame")
    for byte in data[:-1]:
        reader.feed(bytes([byte]))
        assert reader.next_frame() is None
    reader.feed(data[-1:])
    assert reader.next_frame() == b"frame"
    assert reader.next_frame() is None


def test_frames_come_out_as_they_went_in_however_they_are_cut() -> None:
    chance = Random(9)
    frames = [chance.randbytes(chance.randrange(100)) for _ in range(300)]
    data = b"".join(map(framed, frames))
    reader = FrameReader(100)
    found = []
    while data:
        size = chance.randrange(1, 400)
        reader.feed(data[:size])
        data = data[size:]
        found += frames_of(reader)
    assert found == frames
    assert reader.buffered == 0


def test_an_empty_frame_is_a_frame() -> None:
    assert frames_of(reader_of(framed(b"") + framed(b"a"))) == [b"", b"a"]


def test_bytes_that_wait_are_counted() -> None:
    reader = reader_of(framed(b"one") + framed(b"two")[:-1])
    assert reader.buffered == 13
    assert reader.next_frame() == b"one"
    assert reader.buffered == 6


@pytest.mark.parametrize("length", [-1, -0x8000_0000, 101, 0x7FFF_FFFF])
def test_a_length_out_of_bounds_is_refused_before_its_frame_arrives(length: int) -> None:
    reader = reader_of(framed(b"whole") + struct.pack(">i", length))
    assert reader.next_frame() == b"whole"
    with pytest.raises(ProtocolError, match=f"a frame of {length} bytes; 0 to 100 are allowed"):
        reader.next_frame()


def test_the_limit_itself_is_allowed() -> None:
    assert frames_of(reader_of(framed(bytes(100)))) == [bytes(100)]


def test_a_new_limit_holds_from_the_next_frame_on() -> None:
    reader = reader_of(framed(b"first") + framed(bytes(200)))
    assert reader.next_frame() == b"first"
    reader.limit = 200
    assert reader.next_frame() == bytes(200)


def test_a_length_that_is_claimed_takes_no_memory() -> None:
    reader = FrameReader(0x7FFF_FFFF)
    tracemalloc.start()
    try:
        reader.feed(struct.pack(">i", 0x7FFF_FFFF) + b"the first bytes")
        assert reader.next_frame() is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000


def test_frames_that_were_taken_take_no_memory() -> None:
    reader = FrameReader(100_000)
    frame = framed(bytes(100_000))
    tracemalloc.start()
    try:
        for _ in range(100):
            reader.feed(frame)
            assert reader.next_frame() is not None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_ACLS].versions)
def test_a_request_is_its_api_its_header_and_its_message(version: int) -> None:
    frame = request_frame(ApiKey.DESCRIBE_ACLS, version, DESCRIBE, 77, "a client")[4:]
    request = decode_request(frame)
    assert request.api is APIS[ApiKey.DESCRIBE_ACLS]
    assert request.header[:4] == (29, version, 77, "a client")
    # Version 0 has no pattern type: it means LITERAL.
    assert request.message.pattern_type_filter == (1 if version else 3)
    assert request.message.resource_type_filter == 1


def test_bytes_behind_a_request_are_ignored_as_kafka_ignores_them() -> None:
    frame = request_frame(ApiKey.DESCRIBE_ACLS, 3, DESCRIBE)[4:]
    assert decode_request(frame + b"behind").message == DESCRIBE


@pytest.mark.parametrize("key", [-1, 53, 999, 0x7FFF])
def test_an_unknown_key_is_refused(key: int) -> None:
    with pytest.raises(ProtocolError, match=f"API key {key} is unknown"):
        decode_request(struct.pack(">hhih", key, 0, 1, -1))


@pytest.mark.parametrize("version", [-1, 4, 0x7FFF])
def test_an_unknown_version_is_refused_with_the_range_that_is_known(version: int) -> None:
    frame = struct.pack(">hhih", ApiKey.DESCRIBE_ACLS, version, 1, -1) + bytes(20)
    reason = f"DescribeAcls version {version} is unknown; 0 to 3 are answered"
    with pytest.raises(ProtocolError, match=reason):
        decode_request(frame)


@pytest.mark.parametrize(("version", "tags"), [(-1, b""), (5, b"\0"), (0x7FFF, b"\0")])
def test_api_versions_of_an_unknown_version_is_a_request_without_a_message(
    version: int, tags: bytes
) -> None:
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + tags
    request = decode_request(header + b"what no version of ours has")
    assert request.message is None
    assert request.header.correlation_id == 7


def test_api_versions_of_a_known_version_has_its_message() -> None:
    asked = ApiVersionsRequest("software", "1.0")
    frame = request_frame(ApiKey.API_VERSIONS, 4, asked)[4:]
    assert decode_request(frame).message == asked


def test_a_message_cut_short_is_refused() -> None:
    frame = request_frame(ApiKey.DESCRIBE_ACLS, 1, DESCRIBE)[4:]
    for size in range(len(frame)):
        with pytest.raises(ProtocolError):
            decode_request(frame[:size])


def test_an_answer_is_length_header_and_message() -> None:
    api = APIS[ApiKey.DESCRIBE_ACLS]
    answer = DescribeAclsResponse(0, 31, "no")
    plain = b"\0\0\0\x2a" + b"\0\0\0\0" + b"\0\x1f" + b"\0\x02no" + b"\0\0\0\0"
    assert response_frame(api, 1, 42, answer) == framed(plain)
    compact = b"\0\0\0\x2a\0" + b"\0\0\0\0" + b"\0\x1f" + b"\x03no" + b"\x01" + b"\0"
    assert response_frame(api, 2, 42, answer) == framed(compact)


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_ACLS].versions)
def test_an_answer_is_read_as_it_was_written(version: int) -> None:
    api = APIS[ApiKey.DESCRIBE_ACLS]
    answer = DescribeAclsResponse(0, 31, "no", [])
    frame = response_frame(api, version, 42, answer)[4:]
    assert decode_response(api, version, frame) == (42, answer)
    with pytest.raises(ProtocolError):
        decode_response(api, version, frame[:-1])


def test_an_answer_to_api_versions_has_a_compact_message_behind_the_oldest_header() -> None:
    answer = ApiVersionsResponse(error_code=42)
    expected = framed(b"\0\0\0\x07" + b"\0\x2a" + b"\x01" + b"\0\0\0\0" + b"\0")
    assert response_frame(APIS[ApiKey.API_VERSIONS], 3, 7, answer) == expected


def test_the_size_of_a_frame_is_known_as_soon_as_its_length_has_arrived() -> None:
    reader = FrameReader(100)
    reader.feed(b"\0\0\0")
    assert reader.announced == 0
    reader.feed(b"\x03ab")
    assert reader.next_frame() is None
    assert reader.announced == 3
    reader.feed(b"c\0\0\0\x65")
    assert reader.next_frame() == b"abc"
    assert reader.announced == 0  # it is too long, and will be refused


LARGE = 8 << 20


@pytest.mark.parametrize("behind", [b"", b"\0\0\0\3abc"])
def test_a_large_frame_is_not_copied(behind: bytes) -> None:
    payload = Random(7).randbytes(LARGE)
    data = framed(b"before") + framed(payload) + behind
    reader = FrameReader(LARGE)
    for first in range(0, len(data), 65_536):
        reader.feed(data[first : first + 65_536])
        if not first:
            assert reader.next_frame() == b"before"
        if first + 65_536 < len(data):
            assert reader.next_frame() is None
    tracemalloc.start()
    try:
        frame = reader.next_frame()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert frame == payload
    assert peak < 65_536
    assert reader.next_frame() == (b"abc" if behind else None)
    assert reader.buffered == 0


def test_records_of_a_large_request_are_not_copied_and_other_bytes_are_bounded() -> None:
    produced = TopicProduceData("t", partition_data=[PartitionProduceData(0, bytes(LARGE))])
    renewed = RenewDelegationTokenRequest(bytes(LONGEST_BYTES))
    for key, version, request in (
        (ApiKey.PRODUCE, 9, ProduceRequest(topic_data=[produced])),
        (ApiKey.RENEW_DELEGATION_TOKEN, 2, renewed),
    ):
        frame = bytearray(request_frame(key, version, request)[4:])
        decode_request(frame)  # so that it is compiled before memory is measured
        tracemalloc.start()
        try:
            found = decode_request(frame)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert found.message == request
        assert peak < (65_536 if key == ApiKey.PRODUCE else LONGEST_BYTES + 65_536)
    longer = RenewDelegationTokenRequest(bytes(LONGEST_BYTES + 1))
    frame = bytearray(request_frame(ApiKey.RENEW_DELEGATION_TOKEN, 2, longer)[4:])
    with pytest.raises(TooMany, match="hmac has more than 16777216 bytes"):
        decode_request(frame)
