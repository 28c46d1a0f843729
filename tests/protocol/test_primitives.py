"""Where aiokafka 0.14 is wrong on the wire, and what ours do there."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

import aiokafka.protocol.types as aiokafka
import pytest

from aclbroker.protocol.primitives import (
    FIXED,
    LONGEST_STRING,
    ZERO_UUID,
    Array,
    Bytes,
    Nullable,
    ProtocolError,
    String,
    TaggedFields,
    UInt16,
    UnsignedVarint,
    Uuid,
    read,
)

NUMBERS = aiokafka.Int16


def of(wire_type: type, **form: bool) -> Any:
    """Return a wire type, for an array one of 16-bit numbers."""
    return Array(NUMBERS, **form) if wire_type is Array else wire_type(**form)


NULLS = [
    (String, aiokafka.String(), {"compact": False}, b"\xff\xff"),
    (String, aiokafka.CompactString(), {"compact": True}, b"\0"),
    (Bytes, aiokafka.Bytes, {"compact": False}, b"\xff\xff\xff\xff"),
    (Bytes, aiokafka.CompactBytes, {"compact": True}, b"\0"),
    (Array, aiokafka.Array(NUMBERS), {"compact": False}, b"\xff\xff\xff\xff"),
    (Array, aiokafka.CompactArray(NUMBERS), {"compact": True}, b"\0"),
]


@pytest.mark.parametrize(("wire_type", "theirs", "form", "null"), NULLS)
def test_null_is_read_and_written_only_where_the_protocol_has_one(
    wire_type: type, theirs: Any, form: dict[str, bool], null: bytes
) -> None:
    assert theirs.decode(BytesIO(null)) is None  # wherever it stands
    assert theirs.encode(None) == null

    nullable, never_null = (
        of(wire_type, nullable=True, **form),
        of(wire_type, nullable=False, **form),
    )
    assert nullable.decode(BytesIO(null)) is None
    assert nullable.encode(None) == null
    with pytest.raises(ProtocolError, match="null"):
        never_null.decode(BytesIO(null))
    with pytest.raises(ValueError, match="null"):
        never_null.encode(None)


def test_a_negative_count_is_no_empty_array() -> None:
    minus_two = b"\xff\xff\xff\xfe"
    assert aiokafka.Array(NUMBERS).decode(BytesIO(minus_two)) == []

    with pytest.raises(ProtocolError, match="null"):
        Array(NUMBERS, compact=False, nullable=False).decode(BytesIO(minus_two))
    # Kafka takes any negative length for null, where there may be one.
    assert Array(NUMBERS, compact=False, nullable=True).decode(BytesIO(minus_two)) is None


class Nothing:
    """A wire type without bytes, as a struct is in a version that has none of its fields."""

    def encode(self, value: object) -> bytes:
        return b""

    def decode(self, data: BytesIO) -> int:
        return 0


def test_a_count_is_held_against_the_bytes_that_are_there_before_anything_is_read() -> None:
    schema = aiokafka.Schema()
    assert len(aiokafka.Array(schema).decode(BytesIO(b"\0\x01\0\0")) or ()) == 65_536

    with pytest.raises(ProtocolError, match="65536 array entries announced"):
        Array(Nothing(), compact=False, nullable=False).decode(BytesIO(b"\0\x01\0\0"))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_a_varint_that_is_cut_short_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(struct.error):  # no ValueError, which its callers expect
        aiokafka.UnsignedVarInt32.decode(BytesIO(data))

    with pytest.raises(ProtocolError, match="announced"):
        UnsignedVarint.decode(BytesIO(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x1f", b"\x80\x80\x80\x80\x10"])
def test_the_fifth_byte_of_a_varint_may_not_overflow_32_bits(data: bytes) -> None:
    assert aiokafka.UnsignedVarInt32.decode(BytesIO(data)) > 0xFFFF_FFFF

    with pytest.raises(ProtocolError, match="32 bits"):
        UnsignedVarint.decode(BytesIO(data))


def test_a_varint_has_at_most_five_bytes() -> None:
    with pytest.raises(ProtocolError, match="32 bits"):
        UnsignedVarint.decode(BytesIO(b"\x80\x80\x80\x80\x80\x00"))


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 0x7FFF_FFFF, 0xFFFF_FFFF])
def test_varints_are_read_as_they_are_written(value: int) -> None:
    data = BytesIO(UnsignedVarint.encode(value))
    assert UnsignedVarint.decode(data) == value
    assert data.read() == b""


def test_tagged_fields_are_written_with_their_sizes() -> None:
    fields = {3: b"abc", 7: b"de"}
    assert aiokafka.TaggedFields.encode(fields) == b"\x02\x03abc\x07de"

    assert TaggedFields.encode([(3, b"abc"), (7, b"de")]) == b"\x02\x03\x03abc\x07\x02de"


def test_tag_0_is_a_tag() -> None:
    with pytest.raises(AssertionError, match="not a positive integer"):
        aiokafka.TaggedFields.encode({0: b"a"})

    assert TaggedFields.encode([(0, b"a")]) == b"\x01\0\x01a"


def test_tagged_fields_are_written_in_the_order_of_their_numbers() -> None:
    assert aiokafka.TaggedFields.encode({7: b"", 3: b""}) == b"\x02\x07\x03"

    assert TaggedFields.encode([(7, b""), (3, b"")]) == b"\x02\x03\0\x07\0"


def test_tagged_fields_are_read_in_any_order_as_kafka_reads_them() -> None:
    data = b"\x02\x07\x01b\x03\x01a"
    with pytest.raises(ValueError, match="out-of-order"):
        aiokafka.TaggedFields.decode(BytesIO(data))

    assert TaggedFields.decode(BytesIO(data)) == [(7, b"b"), (3, b"a")]


def test_a_tagged_field_that_is_cut_short_is_refused() -> None:
    data = b"\x01\x03\x09abc"
    assert aiokafka.TaggedFields.decode(BytesIO(data)) == {3: b"abc"}

    with pytest.raises(ProtocolError, match="9 bytes announced"):
        TaggedFields.decode(BytesIO(data))


def test_a_compact_string_is_no_longer_than_any_other() -> None:
    longest = b"\x80\x80\x02" + b"a" * LONGEST_STRING
    longer = b"\x81\x80\x02" + b"a" * (LONGEST_STRING + 1)
    assert len(aiokafka.CompactString().decode(BytesIO(longer)) or "") == LONGEST_STRING + 1

    compact = String(compact=True, nullable=False)
    assert compact.decode(BytesIO(longest)) == "a" * LONGEST_STRING
    with pytest.raises(ProtocolError, match="32768"):
        compact.decode(BytesIO(longer))


def test_text_is_utf_8() -> None:
    data = BytesIO(String(compact=True, nullable=False).encode("тема 😀"))
    assert String(compact=True, nullable=False).decode(data) == "тема 😀"
    with pytest.raises(ValueError, match="utf-8"):
        String(compact=False, nullable=False).decode(BytesIO(b"\0\x01\xff"))


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("wire_type", [String, Bytes])
def test_a_value_shorter_than_its_length_is_refused(wire_type: type, compact: bool) -> None:
    whole = of(wire_type, compact=compact, nullable=True)
    written = whole.encode("abc" if wire_type is String else b"abc")
    for size in range(len(written)):
        with pytest.raises(ValueError, match=r"announced|unpack"):
            whole.decode(BytesIO(written[:size]))


def test_what_is_read_is_there_whole() -> None:
    data = BytesIO(b"abcd")
    assert read(data, 3) == b"abc"
    with pytest.raises(ProtocolError, match="2 bytes announced"):
        read(data, 2)


def test_a_uuid_is_its_16_bytes() -> None:
    assert Uuid.decode(BytesIO(bytes(range(20)))) == bytes(range(16))
    assert Uuid.encode(ZERO_UUID) == bytes(16)
    with pytest.raises(ProtocolError):
        Uuid.decode(BytesIO(bytes(15)))
    with pytest.raises(ValueError, match="16 bytes, not 15"):
        Uuid.encode(bytes(15))


@pytest.mark.parametrize("value", [0, 1, 0x8000, 0xFFFF])
def test_an_unsigned_16_bit_integer_reaches_65535(value: int) -> None:
    assert UInt16.encode(value) == struct.pack(">H", value)
    assert UInt16.decode(BytesIO(UInt16.encode(value))) == value


@pytest.mark.parametrize("value", [-1, 0x10000])
def test_an_unsigned_16_bit_integer_goes_no_further(value: int) -> None:
    with pytest.raises(OverflowError):
        UInt16.encode(value)


def test_a_nullable_struct_begins_with_a_byte_that_says_whether_it_is_there() -> None:
    wire_type = Nullable(NUMBERS)
    assert (wire_type.encode(None), wire_type.encode(7)) == (b"\xff", b"\x01\0\x07")
    assert wire_type.decode(BytesIO(b"\xff")) is None
    assert wire_type.decode(BytesIO(b"\x01\0\x07")) == 7
    with pytest.raises(ValueError, match="unpack"):
        wire_type.decode(BytesIO(b""))


@pytest.mark.parametrize("wire_type", FIXED.values(), ids=FIXED)
def test_a_number_that_is_cut_short_is_refused(wire_type: Any) -> None:
    whole = wire_type.encode(bytes(16) if wire_type is Uuid else 1)
    for size in range(len(whole)):
        with pytest.raises(ValueError, match=r"announced|unpack"):
            wire_type.decode(BytesIO(whole[:size]))
