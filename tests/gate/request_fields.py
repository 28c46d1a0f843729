"""The fields of requests, and what the gate does with the value of one of them."""

from __future__ import annotations

import dataclasses
import io
import struct
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import Decision, RequestContext
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.schema import FieldSpec
from tests.gate.rights import ByRule, Rights, context, everything, services
from tests.gate.test_mutations import CATALOG as KNOWN
from tests.gate.test_mutations import NAMES, requests

MARK: Final = "marked"
_IDS: Final = {name: KNOWN.id_of(name) for name in NAMES}
CATALOG: Final = Catalog(
    dict.fromkeys((*NAMES, MARK), 1), NAMES, topic_ids={**_IDS, MARK: MARK.encode().ljust(16)}
)
AUDIT: Final = Audit(load(), "cluster", configure(stream=io.StringIO()))
NULL: Final = "=null"
"""Stands behind the path of an array that is null, which often asks for everything."""

_NUMBERS: Final = (1, 32, -1)
_TEXTS: Final = ("string", "uuid", "bytes", "records")
_Questions = list[tuple[Any, ...]]


class Field(NamedTuple):
    """A field of a request: its path, in which ``[]`` ends the name of an array of values."""

    path: str
    kind: str

    @property
    def is_text(self) -> bool:
        """Whether the field can have a name, an id or bytes."""
        return self.kind in _TEXTS

    @property
    def parts(self) -> Sequence[str]:
        """The names of the fields on the way, without the signs of arrays."""
        return self.path.removesuffix(NULL).removesuffix("[]").split(".")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]


def fields(cls: Any, version: int, prefix: str = "") -> Iterator[Field]:
    """Yield the fields that a version of a request has, tagged ones too, and arrays that are null.

    A field with structs inside of it is not among them, but the fields of these are.
    """
    for field in dataclasses.fields(cls):
        spec: FieldSpec | None = field.metadata.get("spec")
        if spec is None or version not in spec.versions:
            continue
        is_array = isinstance(spec.kind, list)
        kind: Any = spec.kind[0] if isinstance(spec.kind, list) else spec.kind
        if is_array and version in spec.nullable:
            yield Field(f"{prefix}{field.name}{NULL}", "null")
        if isinstance(kind, str):
            yield Field(f"{prefix}{field.name}{'[]' * is_array}", kind)
        else:
            yield from fields(kind, version, f"{prefix}{field.name}.")


class Treatment(Enum):
    """The treatment of a field's value by the gate."""

    ASKED = "a right is asked for on the value, or on a name that belongs to it"
    DECIDES = "the number decides which rights are asked for"
    CLUSTER = "without a right on the cluster the value is not forwarded"
    REFUSED = "the gate never forwards the value"
    OPEN = "the value is forwarded, and no right is asked for on it"


class _Asking(ByRule):
    """Takes note of each question."""

    def __init__(self, rights: Rights) -> None:
        super().__init__(rights)
        self.questions: _Questions = []

    def authorize(
        self, context: Any, operation: AclOperation, resource_type: ResourceType, names: Any
    ) -> list[Decision]:
        self.questions += [(operation, resource_type, name) for name in names]
        return super().authorize(context, operation, resource_type, names)

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        self.questions.append((operation, resource_type))
        return super().authorize_by_resource_type(context, operation, resource_type)


def not_on_the_cluster(_operation: AclOperation, kind: ResourceType, _name: str | None) -> bool:
    """Allow everything but operations on the cluster."""
    return kind is not ResourceType.CLUSTER


def _checked(
    key: int, version: int, request: Any, rights: Rights, profile: Profile
) -> tuple[Any, _Questions]:
    """Return the part of a request that passes the gate, and the questions to the authorizer."""
    authorizer = _Asking(rights)
    parts = dataclasses.replace(
        services(rights, CATALOG, AUDIT), authorizer=authorizer, profile=profile
    )
    verdict = check(request, parts.rights(GATE[key], context(key, version)), CATALOG)
    return verdict.request, authorizer.questions


def treatment(key: int, version: int, field: Field) -> Treatment:
    """Return the treatment of a field in all kinds of requests of a key, in both profiles.

    A text must be asked about in all of them. A number must decide in one of them.
    """
    found = {
        _treatment(key, version, field, (plain, marked), profile)
        for profile in Profile
        for plain in requests(key, version)
        for marked in _marked(key, version, field, plain)
    }
    order = _OF_TEXT if field.is_text else _OF_NUMBER
    return next(each for each in order if each in found)


_OF_TEXT: Final = (Treatment.OPEN, Treatment.ASKED, Treatment.CLUSTER, Treatment.REFUSED)
_OF_NUMBER: Final = (Treatment.DECIDES, *_OF_TEXT)


def _treatment(
    key: int, version: int, field: Field, pair: tuple[Any, Any], profile: Profile
) -> Treatment:
    """Return the treatment of the value that the second request has, and the first has not."""

    def passes(rights: Rights) -> tuple[bool, _Questions]:
        passed, questions = _checked(key, version, marked, rights, profile)
        is_there = passed is not None and (not field.is_text or _has_mark(encode(passed, version)))
        return is_there, questions

    plain, marked = pair
    if not passes(everything)[0]:
        return Treatment.REFUSED
    is_there, questions = passes(not_on_the_cluster)
    if not is_there:
        return Treatment.CLUSTER
    if field.is_text:
        is_asked = any(question[-1] == MARK for question in questions)
        return Treatment.ASKED if is_asked else Treatment.OPEN
    _, before = _checked(key, version, plain, not_on_the_cluster, profile)
    is_same = field.kind == "null" or set(questions) == set(before)
    return Treatment.OPEN if is_same else Treatment.DECIDES


def _has_mark(data: bytes) -> bool:
    return MARK.encode() in data or CATALOG.id_of(MARK) in data


def _marked(key: int, version: int, field: Field, plain: Any) -> Iterator[Any]:
    """Yield copies of a request that have other values in one field of their first entries."""
    cls = APIS[key].request
    for value in _values(field):
        copy = decode(cls, version, encode(plain, version))
        if not _put(copy, field.parts, [value] if field.path.endswith("[]") else value):
            continue
        try:
            yield decode(cls, version, encode(copy, version))
        except (ValueError, struct.error):
            continue  # The number is too large for the field, or not negative.


def _values(field: Field) -> Sequence[Any]:
    data = MARK.encode()
    texts = {"string": MARK, "uuid": CATALOG.id_of(MARK), "bytes": data, "records": data}
    if field.kind == "bool":
        return (True, False)
    if field.kind == "null":
        return (None,)
    return [texts[field.kind]] if field.is_text else _NUMBERS


def _put(item: Any, path: Sequence[str], value: Any) -> bool:
    """Set a field in the first entry of each array on the way; return whether there was one."""
    name, *rest = path
    if not rest:
        setattr(item, name, value)
        return True
    inner = getattr(item, name)
    if isinstance(inner, list | tuple):
        inner = inner[0] if inner else None
    return inner is not None and _put(inner, rest, value)
