"""The generated code does what the Schema that it was generated from does, and trusts no length."""

from __future__ import annotations

import tracemalloc
from collections.abc import Awaitable
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.broker.turns import Turns
from aclbroker.protocol.compile import ProtocolError, decode, decoder, encode, encoder
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from aclbroker.protocol.messages.metadata import MetadataRequest
from aclbroker.protocol.schema import Struct, UnsupportedVersion, struct_of
from tests.protocol.strategies import full, mutated, ours
from tests.support.messages import KEYS, Message, messages_of
from tests.support.tables import check_each

# HYPOTHESIS_PROFILE=nightly draws 1,000 examples of each message, and Fetch alone has 38 messages.
pytestmark = pytest.mark.timeout(3600)

HUGE = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff")
"""The greatest lengths: of an array or bytes, of their compact form, of a string."""

# Far less than any of those lengths, far more than a decoder needs.
ALLOCATED_AT_MOST = 256 * 1024


def by_reference(struct: Struct, data: bytes) -> Any:
    """What the Schema reads, and up to where; None if it refuses the bytes."""
    stream = BytesIO(data)
    try:
        return repr(struct.decode(stream)), stream.tell()
    except ValueError:
        return None


def by_generated_code(message: Message, data: bytes) -> Any:
    """What the generated code reads, and up to where; None if it refuses the bytes."""
    try:
        item, end = decoder(message.cls, message.version)(data, 0)
    except ProtocolError:
        return None
    return repr(item), end


@pytest.mark.parametrize("key", KEYS)
def test_generated_code_agrees_with_the_schema(key: int, every_case: bool) -> None:
    check_each(messages_of(key, every=every_case), check_against_schema)


@given(data=st.data())
def check_against_schema(message: Message, data: st.DataObject) -> None:
    struct = struct_of(message.cls, message.version)
    read, write = decoder(message.cls, message.version), partial(encode, version=message.version)
    item = data.draw(ours(struct))

    written = write(item)

    assert written == struct.encode(item)
    assert by_generated_code(message, written) == by_reference(struct, written)
    again, end = read(b"before" + written + b"behind", len(b"before"))
    assert end == len(b"before") + len(written)
    assert write(again) == written

    broken = data.draw(mutated(written))
    assert by_generated_code(message, broken) == by_reference(struct, broken)


@pytest.mark.parametrize("key", KEYS)
def test_message_cut_short_anywhere_is_refused(key: int, every_case: bool) -> None:
    check_each(messages_of(key, every=every_case), check_cut_short)


def check_cut_short(message: Message) -> None:
    read, write = decoder(message.cls, message.version), partial(encode, version=message.version)
    written = write(full(struct_of(message.cls, message.version)))

    for size in range(len(written)):
        with pytest.raises(ProtocolError):
            read(written[:size], 0)


@pytest.mark.parametrize("key", KEYS)
def test_claimed_length_costs_no_memory(key: int, every_case: bool) -> None:
    check_each(messages_of(key, every=every_case), check_memory)


def check_memory(message: Message) -> None:
    decoder(message.cls, message.version)  # so that it is not compiled while memory is measured
    written = encode(full(struct_of(message.cls, message.version)), message.version)
    claims = [written[:at] + claim + written[at:] for at in range(len(written)) for claim in HUGE]
    tracemalloc.start()
    try:
        for claim in claims:
            by_generated_code(message, claim)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < ALLOCATED_AT_MOST


EVERYTHING = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


def test_message_keeps_its_values() -> None:
    creation = AclCreation(2, "тема", 3, "User:a", "*", 3, 3)
    request = CreateAclsRequest([creation, creation])

    for version in APIS[30].versions[1:]:
        assert decode(CreateAclsRequest, version, encode(request, version)) == request


def test_field_that_a_version_lacks_has_its_default() -> None:
    request = DescribeAclsRequest(2, "a", 4, None, None, 1, 1)

    understood = decode(DescribeAclsRequest, 0, encode(request, 0))

    assert understood.pattern_type_filter == 3


def test_tagged_field_with_its_default_is_not_written() -> None:
    assert encode(ApiVersionsResponse(supported_features=[]), 3).endswith(b"\0")
    assert encode(ApiVersionsResponse(), 3) == encode(ApiVersionsResponse(supported_features=[]), 3)


def test_unknown_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="DescribeAclsRequest has no version 4"):
        decoder(DescribeAclsRequest, 4)
    with pytest.raises(UnsupportedVersion):
        encode(EVERYTHING, -1)


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        pytest.param(CreateAclsRequest, 1, b"\0\0\0\x02", id="count beyond the message"),
        pytest.param(CreateAclsRequest, 1, b"\x7f\xff\xff\xff" + bytes(64), id="greatest count"),
        pytest.param(CreateAclsRequest, 1, b"\xff\xff\xff\xff", id="null array"),
        pytest.param(CreateAclsRequest, 1, b"\xff\xff\xff\xfe", id="negative count"),
        pytest.param(CreateAclsRequest, 2, b"\0\0", id="null compact array"),
        pytest.param(CreateAclsRequest, 2, b"\x03\0", id="compact count beyond the message"),
        pytest.param(MetadataRequest, 0, b"\0\0\0\x01\xff\xff", id="null string"),
        pytest.param(MetadataRequest, 9, b"\x02\0\0\0\0\0", id="null compact string"),
        pytest.param(MetadataRequest, 0, b"\0\0\0\x01\x80\0", id="negative length"),
        pytest.param(MetadataRequest, 0, b"\0\0\0\x01\0\x09ab", id="string beyond the message"),
        pytest.param(DescribeAclsRequest, 1, b"\x01\0\x02\xff\xfe\x01", id="no UTF-8"),
        pytest.param(DescribeAclsRequest, 1, b"\x01\0\x03\xed\xa0\x80", id="a surrogate"),
        pytest.param(ApiVersionsRequest, 3, b"\xff" * 5 + b"\x01", id="varint of six bytes"),
        pytest.param(
            ApiVersionsRequest, 3, b"\x01\x01\x01\xff\xff\xff\xff\x7f\0", id="tag beyond 32 bits"
        ),
        pytest.param(ApiVersionsRequest, 3, b"\xff\xff\xff", id="varint cut short"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\x01\x00\x05ab", id="tag cut short"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\xff\xff\xff\xff\x0f", id="tags beyond"),
        pytest.param(ApiVersionsRequest, 3, b"\x81\x80\x02" + b"a" * 32768, id="long string"),
    ],
)
def test_malformed_message_is_refused(cls: type, version: int, data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(cls, version, data)


@pytest.mark.parametrize(
    "tagged",
    [
        pytest.param(b"\x01\x09" + bytes(9), id="longer than its value"),
        pytest.param(b"\x01\x07" + bytes(7), id="shorter than its value"),
        pytest.param(b"\x01\x09" + bytes(8), id="longer than the message"),
    ],
)
def test_known_tagged_field_of_another_size_than_its_value_is_refused(tagged: bytes) -> None:
    before = encode(ApiVersionsResponse(), 3)[:-1]
    fits = decode(ApiVersionsResponse, 3, before + b"\x01\x01\x08" + bytes(8))
    assert fits.finalized_features_epoch == 0

    with pytest.raises(ProtocolError):
        decode(ApiVersionsResponse, 3, before + b"\x01" + tagged)


def test_text_of_32767_bytes_is_the_longest() -> None:
    longest = DescribeAclsRequest(2, "n" * 32767, 3, None, None, 1, 1)
    longer = DescribeAclsRequest(2, "n" * 32768, 3, None, None, 1, 1)

    assert decode(DescribeAclsRequest, 2, encode(longest, 2)) == longest
    with pytest.raises(ProtocolError):
        decode(DescribeAclsRequest, 2, encode(longer, 2))


def test_bytes_behind_a_message_are_ignored() -> None:
    assert decode(DescribeAclsRequest, 2, encode(EVERYTHING, 2) + b"behind") == EVERYTHING


def test_error_names_the_message_and_its_version() -> None:
    with pytest.raises(ProtocolError, match="DescribeAclsResponse"):
        decode(DescribeAclsResponse, 1, b"\0\0\0\0\0\0\0\0\0\0\0\x01")


def test_a_null_that_the_protocol_does_not_allow_is_not_written() -> None:
    with pytest.raises(ValueError, match="null where the protocol allows none"):
        encode(CreateAclsRequest(None), 3)  # type: ignore[arg-type]


class Always(Turns):
    """Turns that are over whenever that is asked."""

    def is_over(self) -> bool:
        return True


async def test_others_have_their_turn_while_a_message_is_read_or_written_for_the_first_time() -> (
    None
):
    turns = Always()
    data = encode(EVERYTHING, 3)
    for made, function, args in (
        (decoder, decode, (DescribeAclsRequest, 3, data)),
        (encoder, encode, (EVERYTHING, 3)),
    ):
        made.cache_clear()
        first = turns.run("alice", function, *args)
        assert isinstance(first, Awaitable)
        assert await first == turns.run("alice", function, *args)
