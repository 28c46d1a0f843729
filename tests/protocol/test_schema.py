"""Declarations: what a field is in which version, and what stands in for one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pytest

from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import ZERO_UUID, Array, Nullable, ProtocolError
from aclbroker.protocol.schema import (
    Struct,
    UnsupportedVersion,
    message,
    of,
    struct_of,
    versions_in,
)


@message
class Inner:
    number: int = of("int16", default=-1)
    name: str = of("string", "1+")


@message(key=99, versions="0-3", flexible="2+")
class Example:
    kept: int = of("int32")
    late: int = of("int8", "1+", default=7)
    gone: bool = of("bool", "0-1")
    text: str | None = of("string", nullable="1+")
    entries: Sequence[Inner] = of([Inner])
    maybe: Inner | None = of(Inner, "2+", nullable="2+", default=None)
    tagged: int = of("int64", "2+", tag=3, tagged="2+", default=5)
    names: Sequence[str] = of(["string"], "3+", tag=0, tagged="3+")


@message(versions="0-1")
class Defaults:
    flag: bool = of("bool")
    count: int = of("int32")
    share: float = of("float64")
    text: str = of("string")
    raw: bytes = of("bytes")
    records: bytes = of("records")
    absent_records: bytes | None = of("records", nullable="0+")
    uuid: bytes = of("uuid")
    entries: Sequence[int] = of(["int32"])
    inner: Inner = of(Inner)
    given: int = of("int64", default=-1)


def names_at(version: int) -> list[str]:
    """Return the names of the fields that are written one after the other at a version."""
    return list(struct_of(Example, version).names)


@pytest.mark.parametrize(
    ("text", "versions"),
    [("0+", range(0x7FFF)), ("2+", range(2, 0x7FFF)), ("1-3", range(1, 4)), ("2", range(2, 3))],
)
def test_versions_are_written_as_kafka_writes_them(text: str, versions: range) -> None:
    assert versions_in(text) == versions


def test_none_are_no_versions() -> None:
    assert not versions_in("none")


def test_a_message_has_its_key_and_versions() -> None:
    cls: Any = Example
    assert cls.KEY == 99
    assert range(4) == cls.VERSIONS
    assert [version in cls.FLEXIBLE for version in cls.VERSIONS] == [False, False, True, True]


def test_a_version_has_the_fields_that_are_declared_for_it_in_their_order() -> None:
    assert names_at(0) == ["kept", "gone", "text", "entries"]
    assert names_at(1) == ["kept", "late", "gone", "text", "entries"]
    assert names_at(2) == ["kept", "late", "text", "entries", "maybe"]
    assert names_at(3) == names_at(2)


def test_tagged_fields_stand_apart_with_their_numbers() -> None:
    known = {version: struct_of(Example, version).known for version in range(4)}
    assert [{tag: field.name for tag, field in known[v].items()} for v in range(4)] == [
        {},
        {},
        {3: "tagged"},
        {3: "tagged", 0: "names"},
    ]


def test_the_fields_of_an_entry_follow_the_version_of_the_message() -> None:
    def entry_at(version: int) -> Any:
        struct = struct_of(Example, version)
        array = struct.fields[struct.names.index("entries")]
        assert isinstance(array, Array)
        return array.entry

    assert [entry_at(version).names for version in (0, 1)] == [("number",), ("number", "name")]
    assert [entry_at(version).flexible for version in range(4)] == [False, False, True, True]


def test_null_is_allowed_where_it_is_declared() -> None:
    with pytest.raises(ValueError, match="null"):
        struct_of(Example, 0).encode(Example(text=None))
    assert struct_of(Example, 1).encode(Example(text=None))


def test_fields_without_a_default_of_their_own_are_zero_or_empty_as_in_kafka() -> None:
    assert Defaults() == Defaults(
        False, 0, 0.0, "", b"", b"", None, ZERO_UUID, (), Inner(-1, ""), -1
    )


def test_structs_that_are_defaults_are_not_shared() -> None:
    one, other = Defaults(), Defaults()
    one.inner.number = 9
    assert other.inner.number == -1


def test_a_message_of_defaults_can_be_written_at_every_version() -> None:
    for api in APIS.values():
        for version in api.versions:
            for cls in (api.request, api.response):
                struct = struct_of(cls, version)
                written = struct.encode(cls())
                assert struct.encode(struct.decode(BytesIO(written))) == written


def test_only_declared_fields_can_be_set() -> None:
    example: Any = Example()
    with pytest.raises(AttributeError):
        example.unknown = 1


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(UnsupportedVersion, match="Example has no version 4"):
        struct_of(Example, 4)


def test_bytes_of_each_version_are_those_of_its_fields() -> None:
    item = Example(1, 2, True, "a", [Inner(3, "b")], Inner(4, "c"), 6, ["d"])
    assert [struct_of(Example, version).encode(item).hex(" ") for version in range(4)] == [
        "00 00 00 01 01 00 01 61 00 00 00 01 00 03",
        "00 00 00 01 02 01 00 01 61 00 00 00 01 00 03 00 01 62",
        "00 00 00 01 02 02 61 02 00 03 02 62 00 01 00 04 02 63 00 01 03 08 00 00 00 00 00 00 00 06",
        "00 00 00 01 02 02 61 02 00 03 02 62 00 01 00 04 02 63 00 "
        "02 00 03 02 02 64 03 08 00 00 00 00 00 00 00 06",
    ]


def test_a_field_that_the_version_lacks_is_read_as_its_default() -> None:
    item = Example(1, 2, True, "a", [Inner(3, "b")], Inner(4, "c"), 6, ["d"])
    struct = struct_of(Example, 0)
    read = struct.decode(BytesIO(struct.encode(item)))
    assert read == Example(1, 7, True, "a", [Inner(3, "")], None, 5, ())


def test_unknown_tagged_fields_are_kept_among_the_known_ones() -> None:
    struct = struct_of(Example, 3)
    # A message that is flexible has them as well, which no type checker sees.
    example: Any = Example
    item = example(tagged=6, names=["d"], unknown_tags=((1, b"one"), (4, b"")))
    written = struct.encode(item)
    assert written.endswith(
        b"\x04" + b"\x00\x03\x02\x02d" + b"\x01\x03one" + b"\x03\x08" + bytes(7) + b"\x06\x04\0"
    )
    assert struct.decode(BytesIO(written)) == example(
        tagged=6, names=["d"], entries=[], unknown_tags=((1, b"one"), (4, b""))
    )


def test_tagged_fields_that_have_their_defaults_are_not_written() -> None:
    struct = struct_of(Example, 3)
    assert struct.encode(Example(tagged=5, names=[])) == struct.encode(Example())
    assert struct.encode(Example()).endswith(b"\xff\0")


@pytest.mark.parametrize("size", [7, 9])
def test_a_known_tagged_field_has_the_size_of_its_value(size: int) -> None:
    struct = struct_of(Example, 2)
    before = struct.encode(Example())[:-1]
    assert struct.decode(BytesIO(before + b"\x01\x03\x08" + bytes(8))).tagged == 0
    with pytest.raises(ValueError, match=r"longer than its value|unpack"):
        struct.decode(BytesIO(before + bytes([1, 3, size]) + bytes(size)))


def test_no_entry_of_any_array_is_without_bytes() -> None:
    # Else a count of entries could be any number, and no message too short for it.
    def entries(wire_type: Any) -> list[Any]:
        match wire_type:
            case Struct():
                fields = [
                    *wire_type.fields,
                    *(known.wire_type for known in wire_type.known.values()),
                ]
                return [entry for field in fields for entry in entries(field)]
            case Array():
                return [wire_type.entry, *entries(wire_type.entry)]
            case Nullable():
                return entries(wire_type.struct)
        return []

    for api in APIS.values():
        for version in api.versions:
            for cls in (api.request, api.response):
                for entry in entries(struct_of(cls, version)):
                    assert not isinstance(entry, Struct) or entry.names or entry.flexible


def test_a_count_beyond_the_message_is_refused() -> None:
    with pytest.raises(ProtocolError, match="array entries announced"):
        struct_of(Example, 0).decode(BytesIO(b"\0\0\0\1\1\0\1a\x7f\xff\xff\xff"))


def test_messages_of_different_kinds_are_not_equal() -> None:
    assert Inner(1, "a") == Inner(1, "a")
    assert Inner(1, "a") != Inner(1, "b")
    other: object = (1, "a")
    assert Inner(1, "a") != other
