"""Declares each message once for all versions, and makes the Schema of each version.

A message, or a struct inside one, is a class under `message`. Its fields are made by `of`::

    @message(key=30, versions="0-3", flexible="2+")
    class CreateAclsRequest:
        creations: Sequence[AclCreation] = of([AclCreation])

Version ranges are written as Kafka's message specifications write them: ``0+``, ``1-3``, ``2``.
`struct_of` makes the `Struct` of a class at a version, which `protocol.compile` turns into code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from aclbroker.protocol.primitives import (
    FIXED,
    SIZED,
    ZERO_UUID,
    Array,
    Nullable,
    ProtocolError,
    Schema,
    TaggedFields,
    Tags,
    UnsignedVarint,
    WireType,
    read,
)

Kind = str | type | list[Any]
"""The name of a wire type or the class of a struct; a list with one of them means an array."""

_LAST = 0x7FFF
_EMPTY: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID} | {
    "bool": False,
    "float64": 0.0,
}
_T = TypeVar("_T")


class UnsupportedVersion(ValueError):
    """The message does not have this version."""


class FieldSpec(NamedTuple):
    """The declaration of a field: its kind, and the versions in which it has which form."""

    kind: Kind
    versions: range
    nullable: range
    tag: int | None
    tagged: range


def versions_in(text: str) -> range:
    """Parse a version range such as ``0+``, ``1-3``, ``2`` or ``none``."""
    if text == "none":
        return range(0)
    first, dash, last = text.removesuffix("+").partition("-")
    if text.endswith("+"):
        return range(int(first), _LAST)
    return range(int(first), int(last if dash else first) + 1)


def of(
    kind: Kind,
    versions: str = "0+",
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "none",
    default: Any = ...,
) -> Any:
    """Declare a field.

    ``versions`` are those that have the field, ``nullable`` those in which it may be null, and
    ``tagged`` those in which it is the tagged field with the number ``tag``. Without a ``default``,
    a field that a version lacks is zero, empty or a struct of defaults, as in Kafka; nullable
    records are null.
    """
    spec = FieldSpec(kind, versions_in(versions), versions_in(nullable), tag, versions_in(tagged))
    if default is ... and isinstance(kind, type):
        return dataclasses.field(default_factory=kind, metadata={"spec": spec})
    if default is ... and kind == "records" and spec.nullable:
        default = None
    if default is ...:
        default = () if isinstance(kind, list) else _EMPTY.get(kind, 0)  # type: ignore[arg-type] # a str
    return dataclasses.field(default=default, metadata={"spec": spec})


@dataclass_transform(kw_only_default=False)
def message(
    cls: type[_T] | None = None, *, key: int = -1, versions: str = "0+", flexible: str = "none"
) -> Any:
    """Make a message, or a struct inside one, from a class of declared fields.

    ``key`` is the API key, ``versions`` are those of the message, and ``flexible`` those that use
    the compact encoding with tagged fields (KIP-482). The class gets ``__slots__`` and a last field
    ``unknown_tags``, with the bytes of tagged fields that are not declared.
    """

    def declare(declared: type[_T]) -> Any:
        declared.__annotations__["unknown_tags"] = "Tags"
        declared.unknown_tags = ()  # type: ignore[attr-defined] # becomes the last field's default
        # All classes share __eq__ and __repr__. A dataclass would compile its own, which for 200
        # classes takes longer than everything else that happens here.
        made: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(declared)
        made.__eq__, made.__hash__, made.__repr__ = _equals, None, _shown
        made.KEY = key
        made.VERSIONS = versions_in(versions)
        made.FLEXIBLE = versions_in(flexible)
        return made

    return declare if cls is None else declare(cls)


def _equals(self: Any, other: Any) -> Any:
    if self.__class__ is not other.__class__:
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


def _shown(self: Any) -> str:
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__qualname__}({values})"


class TaggedField(NamedTuple):
    """A tagged field that is declared."""

    name: str
    wire_type: WireType
    default: Callable[[], Any]

    def is_default(self, value: Any) -> bool:
        """Return whether a value is the field's default, which is not encoded."""
        return bool((tuple(value) if isinstance(value, list) else value) == self.default())


class Struct(Schema):  # type: ignore[misc] # aiokafka is not typed
    """The layout of a class at one version: an aiokafka Schema for objects of the class."""

    def __init__(self, cls: type, version: int, *, flexible: bool) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.known: dict[int, TaggedField] = {}
        plain = []
        for field in dataclasses.fields(cls):
            spec: FieldSpec | None = field.metadata.get("spec")
            if spec is None or version not in spec.versions:
                continue
            wire_type = _wire_type(spec.kind, version, flexible, nullable=version in spec.nullable)
            if version in spec.tagged and spec.tag is not None:
                self.known[spec.tag] = TaggedField(field.name, wire_type, _default_of(field))
            else:
                plain.append((field.name, wire_type))
        super().__init__(*plain)

    def encode(self, item: Any) -> bytes:
        """Return the object's bytes; raises `ValueError` if a value does not fit its field."""
        body: bytes = super().encode([getattr(item, name) for name in self.names])
        return body + TaggedFields.encode(self._tags_of(item)) if self.flexible else body

    def decode(self, data: BytesIO) -> Any:
        """Read one object; raises `ProtocolError` or `ValueError`."""
        values = dict(zip(self.names, super().decode(data), strict=True))
        if self.flexible:
            values |= self._decode_tags(data)
        return self.cls(**values)

    def _tags_of(self, item: Any) -> list[tuple[int, bytes]]:
        known = (
            (tag, field.wire_type.encode(value))
            for tag, field in self.known.items()
            if not field.is_default(value := getattr(item, field.name))
        )
        return [*known, *item.unknown_tags]

    def _decode_tags(self, data: BytesIO) -> dict[str, Any]:
        values: dict[str, Any] = {}
        unknown = []
        for tag, raw in TaggedFields.decode(data):
            if field := self.known.get(tag):
                inner = BytesIO(raw)
                values[field.name] = field.wire_type.decode(inner)
                if inner.tell() != len(raw):
                    raise ProtocolError(f"tagged field {tag} is longer than its value")
            else:
                unknown.append((tag, raw))
        return values | {"unknown_tags": tuple(unknown)}


def _default_of(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


def _wire_type(kind: Kind, version: int, flexible: bool, *, nullable: bool) -> WireType:
    if isinstance(kind, list):
        entry = _wire_type(kind[0], version, flexible, nullable=False)
        return Array(entry, compact=flexible, nullable=nullable)
    if isinstance(kind, type):
        struct = Struct(kind, version, flexible=flexible)
        return Nullable(struct) if nullable else struct
    if kind in SIZED:
        sized: WireType = SIZED[kind](compact=flexible, nullable=nullable)
        return sized
    fixed: WireType = FIXED[kind]
    return fixed


@cache
def struct_of(cls: Any, version: int) -> Struct:
    """Return the layout of a class at a version; raises `UnsupportedVersion`."""
    if version not in cls.VERSIONS:
        raise UnsupportedVersion(f"{cls.__name__} has no version {version}")
    return Struct(cls, version, flexible=version in cls.FLEXIBLE)


__all__ = [
    "FieldSpec", "Kind", "Struct", "TaggedField", "Tags", "UnsignedVarint", "UnsupportedVersion",
    "message", "of", "read", "struct_of", "versions_in",
]  # fmt: skip
