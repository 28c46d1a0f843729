"""Well-formed requests that no kind client sends, made from the schemas: the same for one seed.

What makes a request unkind is drawn for each: how many entries its arrays have and at which depth,
whether these repeat one entry or all differ, which texts and numbers stand in it, where null stands
and how many tagged fields. Nothing is named but what would have the sender wait, or would take away
what others rely on.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from math import isqrt
from random import Random
from typing import Any, Final, NamedTuple

from aclbroker.protocol.aiokafka_types import UInt32
from aclbroker.protocol.compile import encode
from aclbroker.protocol.header import RequestHeader, encode_request_header
from aclbroker.protocol.messages import APIS, Api, ApiKey
from aclbroker.protocol.primitives import (
    LONGEST_STRING,
    MOST_ENTRIES,
    MOST_TAGS,
    ZERO_UUID,
    Array,
    Bytes,
    Nullable,
    String,
    Tags,
    UInt16,
    Uuid,
)
from aclbroker.protocol.schema import Struct, struct_of
from aclbroker.protocol.wire import framed
from tests.fuzz.samples import FIXED

NAMES: Final = ("open-1", "shut-1")
"""What there should be: topics, groups and transactional ids."""

_SHORT: Final[Sequence[Sequence[str]]] = (
    ("",),
    ("open-1",),
    NAMES,
    ("open-1", "Open-1", "OPEN-1", "oPEN-1"),
    ("*", "kafka-cluster", "User:*", "1", "0", "-1"),
    (".", "..", " ", "\0", "a/b", "a\nb", "тема", "主題-😀", "\u202e", "__cluster_metadata"),
    ("a", "b", "User:", ":", "User:carol", "127.0.0.1", "10.0.0.0/8", "::1"),
)
_LONG: Final[Sequence[Sequence[str]]] = (
    ("x" * 249, "x" * 250),
    ("x" * LONGEST_STRING, "y" * LONGEST_STRING),
    ("x" * (LONGEST_STRING - 4) + "😀", "é" * (LONGEST_STRING // 2)),
)
"""The last takes four bytes for each character, once it is decoded."""

_CLIENT_IDS: Final = (None, "", "fuzz", "c" * 256, "c" * LONGEST_STRING)
_BLOBS: Final = (b"", b"\0", b"\xff\x80", bytes(200))
_LONG_BLOBS: Final = (bytes(100_000), b"\xff" * 9_000)
_SMALL_NUMBERS: Final = range(-1, 9)
_FEW: Final = 8
_SOME: Final = 1_000


class Request(NamedTuple):
    """A request as a frame. ``entries`` is how many entries its arrays have together.

    ``is_refused`` is whether it has more of them, or more tagged fields, than are read;
    ``is_closed`` whether even the head of it cannot be read.
    """

    key: int
    version: int
    correlation_id: int
    frame: bytes
    entries: int
    is_refused: bool
    is_closed: bool

    def __str__(self) -> str:
        entries = f"{len(self.frame)} bytes, {self.entries} entries"
        return f"{APIS[self.key].name} v{self.version} ({entries}): {self.frame[:300].hex()}"


def _long_texts(room: int) -> Sequence[Sequence[str]]:
    """Return texts of which so many entries are not too much for a machine."""
    if room <= _FEW:
        return _LONG
    return _LONG[:1] if room <= _SOME else _SHORT


class _Maker:
    """Makes the values of one request, which is unkind in ways that are drawn when it is begun."""

    def __init__(self, chance: Random, room: int, ids: Sequence[bytes]) -> None:
        self._chance = chance
        self._texts = chance.choice(_SHORT if chance.random() < 0.97 else _long_texts(room))
        self._blobs = _BLOBS if room > _FEW or chance.random() < 0.98 else _LONG_BLOBS
        self._ids = (ZERO_UUID, *ids)
        self._nulls = chance.choice((0.0, 0.0, 0.3, 1.0))
        self._defaults = chance.choice((0.0, 0.3, 0.7))
        self._small = chance.choice((0.0, 0.5, 1.0))
        self._repeats = chance.random() < 0.5
        self._tags = chance.choice((0, 0, 0, 0, 1, 3, 20))

    def value(self, wire_type: Any, room: int) -> Any:
        """Return a value of a wire type; all arrays in it have at most ``room`` entries."""
        match wire_type:
            case Struct():
                return self.struct(wire_type, room)
            case Array():
                if wire_type.nullable and room <= _FEW and self._chance.random() < self._nulls:
                    return None
                return self._array(wire_type.entry, room)
            case String() | Bytes():
                if wire_type.nullable and self._chance.random() < self._nulls:
                    return None
                return self._chance.choice(
                    self._texts if isinstance(wire_type, String) else self._blobs
                )
            case Nullable():
                if room <= _FEW and self._chance.random() < self._nulls:
                    return None
                return self.value(wire_type.struct, room)
            case _:
                return self._fixed(wire_type)

    def struct(self, layout: Struct, room: int) -> Any:
        """Return an object; one of its arrays, at whatever depth, has most of the entries."""
        fields = dict(zip(layout.names, layout.fields, strict=True))
        for known in layout.known.values():
            if has_arrays(known.wire_type) or self._chance.random() < 0.5:
                fields[known.name] = known.wire_type
        arrays = [name for name, wire_type in fields.items() if has_arrays(wire_type)]
        long = self._chance.choice(arrays) if arrays else ""
        tags = tags_of(min(self._tags, room // 2) if layout.flexible else 0)
        room -= len(tags)
        others = 1 if room > 2 * len(arrays) else 0
        values = {}
        for name, wire_type in fields.items():
            if name in arrays:
                share = room - others * (len(arrays) - 1) if name == long else others
                values[name] = self.value(wire_type, share)
            elif self._chance.random() >= self._defaults:
                values[name] = self.value(wire_type, 0)
        return layout.cls(**values, unknown_tags=tags)

    def _array(self, entry: Any, room: int) -> list[Any]:
        """Return entries, of which each has an equal share of the room that is left."""
        count = room if room > _FEW else self._chance.randint(0, room)
        if has_arrays(entry):
            count = self._chance.choice((min(1, count), isqrt(count), count))
        if not count:
            return []
        made = [self.value(entry, room // count - 1) for _ in range(min(count, _FEW))]
        if self._repeats:
            return made[:1] * count
        rest = (differing(each, n) for n, each in enumerate(cycle(made)))
        return made + list(islice(rest, count - len(made)))

    def _fixed(self, wire_type: Any) -> Any:
        if wire_type is Uuid:
            return self._chance.choice(self._ids)
        value = FIXED[wire_type](self._chance)
        if type(value) is not int or self._chance.random() >= self._small:
            return value
        small = self._chance.choice(_SMALL_NUMBERS)
        return abs(small) if wire_type in (UInt16, UInt32) else small


def has_arrays(wire_type: Any) -> bool:
    """Whether a value of the wire type can have entries."""
    match wire_type:
        case Array():
            return True
        case Nullable():
            return has_arrays(wire_type.struct)
        case Struct():
            known = (tagged.wire_type for tagged in wire_type.known.values())
            return any(map(has_arrays, (*wire_type.fields, *known)))
    return False


def differing(entry: Any, number: int) -> Any:
    """Return an entry whose texts, but no other values, are others for each number."""
    if isinstance(entry, str):
        return f"{entry[:200]}{number}"
    if not dataclasses.is_dataclass(entry):
        return entry
    other = copy.copy(entry)
    for field in dataclasses.fields(entry):
        if isinstance(text := getattr(entry, field.name), str):
            setattr(other, field.name, f"{text[:200]}{number}")
    return other


def tags_of(count: int) -> Tags:
    """Return so many tagged fields that nobody knows, in the order of their numbers."""
    return tuple((7_000 + number, b"") for number in range(count - 1)) + (
        ((0xFFFF_FFFF, b"\x80\0unknown"),) if count else ()
    )


def entries_in(value: Any, wire_type: Any) -> int:
    """Return how many entries all arrays in a value have, tagged fields among them."""
    match wire_type:
        case Array() if value:
            inner = has_arrays(wire_type.entry) or isinstance(wire_type.entry, Struct)
            return len(value) + (sum(entries_in(e, wire_type.entry) for e in value) if inner else 0)
        case Nullable() if value is not None:
            return entries_in(value, wire_type.struct)
        case Struct():
            plain = zip(wire_type.names, wire_type.fields, strict=True)
            known = [
                (tagged.name, tagged.wire_type)
                for tagged in wire_type.known.values()
                if not tagged.is_default(getattr(value, tagged.name))
            ]
            inside = sum(entries_in(getattr(value, name), kind) for name, kind in (*plain, *known))
            return inside + len(known) + len(value.unknown_tags)
    return 0


def tame(message: Any) -> None:
    """Take out what would have the sender wait, or would take ACLs away from others."""
    match message.KEY:
        case ApiKey.PRODUCE:
            message.acks = message.acks or 1  # with 0 no answer comes
        case ApiKey.FETCH:
            message.max_wait_ms = min(message.max_wait_ms, 0)
        case ApiKey.DELETE_ACLS:
            for each in message.filters:
                each.principal_filter = each.principal_filter or "User:nobody"


VERSIONS: Final = [(api, version) for api in APIS.values() for version in api.versions]
"""Every version of every API key."""

WIDE: Final = [each for each in VERSIONS if has_arrays(struct_of(each[0].request, each[1]))]
"""Those whose requests have arrays."""

_BEFORE_LOGIN = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
LOGIN: Final = [each for each in VERSIONS if each[0].key in _BEFORE_LOGIN]
"""Those that are answered before the client has authenticated."""


def request(
    chance: Random, api: Api, version: int, room: int, ids: Sequence[bytes] = ()
) -> Request:
    """Return a request whose arrays have about ``room`` entries together, if it has arrays.

    ``ids`` are ids of topics that exist.
    """
    layout = struct_of(api.request, version)
    message = _Maker(chance, room, ids).struct(layout, room)
    header_tags: Tags = ()
    if layout.flexible and chance.random() < 0.01:
        message.unknown_tags = tags_of(
            chance.choice((MOST_TAGS - len(layout.known), MOST_TAGS + 1))
        )
    elif layout.flexible and chance.random() < 0.01:
        header_tags = tags_of(chance.choice((1, MOST_TAGS, MOST_TAGS + 1)))
    tame(message)
    correlation_id = chance.randint(-0x8000_0000, 0x7FFF_FFFF)
    client_id = chance.choice(_CLIENT_IDS[:-1] if chance.random() < 0.99 else _CLIENT_IDS)
    header = RequestHeader(api.key, version, correlation_id, client_id, header_tags, 0)
    frame = framed(encode_request_header(api, header) + encode(message, version))
    entries = entries_in(message, layout)
    is_refused = entries > MOST_ENTRIES or len(message.unknown_tags) > MOST_TAGS
    is_closed = len(header_tags) > MOST_TAGS or (is_refused and api.key == ApiKey.PRODUCE)
    return Request(api.key, version, correlation_id, frame, entries, is_refused, is_closed)


def requests(
    chance: Random,
    count: int,
    ids: Sequence[bytes] = (),
    *,
    some: float = 0.006,
    most: float = 0.0,
) -> Iterator[Request]:
    """Yield requests of every version of every key in turn, nearly all with few entries.

    ``some`` is the share of those that have up to a thousand, and ``most`` of those that have as
    many as may be or, half of them, more.
    """
    for api, version in islice(cycle(VERSIONS), count):
        drawn = chance.random()
        if drawn < most:
            room = chance.choice((MOST_ENTRIES - 1, MOST_ENTRIES + MOST_ENTRIES // 100))
        elif drawn < most + some:
            room = chance.randint(_FEW, _SOME)
        else:
            room = chance.randint(0, _FEW)
        yield request(chance, api, version, room, ids)
