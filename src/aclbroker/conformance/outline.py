"""Reduces an answer to its outline: error codes, fields beside a refusal, listed and told names.

Each is kept under the path of its field, in which an entry of a list is named after what it is
about, as in ``topics[conformance-topic-read].partitions[0].error_code``. An entry without a name is
shown by its position. A topic id is shown as ``#`` and the topic's name, and as ``#zero`` if it is
the zero id and the entry has no name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from aclbroker.conformance.codes import refusal
from aclbroker.conformance.resources import LISTED, TopicIds
from aclbroker.conformance.told import names_in
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.protocol.schema import FieldSpec

NOT_ASKED: Final = -(2**31)
"""The value of authorized operations that were not asked for or are not told (KIP-430)."""

CLOSED: Final = "closed"
NO_ANSWER: Final = "no answer"
ANSWERED: Final = "answered"

_KINDS: Final = ("resource_type",)
_NAMES: Final = (
    "resource_name",
    "name",
    "topic_name",
    "topic",
    "group_id",
    "transactional_id",
    "user",
    "key",
    "partition_index",
    "partition_id",
    "partition",
    "index",
    "producer_id",
)
"""The fields that name what an entry is about; the first one that an entry has is used."""

_LEFT_OUT: Final = frozenset(("throttle_time_ms", *_KINDS, *_NAMES, "topic_id"))
"""Fields that are not kept, since they differ from run to run or are part of the path."""

_ID_BYTES: Final = 16

_LISTS: Final[dict[ApiKey, dict[str, str]]] = {
    ApiKey.METADATA: {"topics": "name"},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics": "name"},
    ApiKey.LIST_GROUPS: {"groups": "group_id"},
    ApiKey.LIST_TRANSACTIONS: {"transaction_states": "transactional_id"},
    ApiKey.OFFSET_FETCH: {"topics": "name"},
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: {"topics": "topic_name"},
}
"""The lists that brokers filter by rights: by key, the list and the name field of its entries."""


class Outline(NamedTuple):
    """What is kept of one answer; without an answer, only the outcome is set."""

    outcome: str
    codes: dict[str, int]
    operations: dict[str, int]
    names: dict[str, list[str]]
    """The names of `LISTED` that are in each filtered list, sorted, by the path of the list."""
    fields: dict[str, Any]
    """The fields beside a compared code, and inside the structs beside it, by their paths."""
    told: dict[str, list[str]]
    """The names in each error message that the request does not have, by the message's path."""
    named: list[int]
    """The codes that are compared beside the refusing ones; see `Case.codes`."""


def without_answer(outcome: str) -> Outline:
    """Return the outline of a connection that was closed, or of a request without an answer."""
    return Outline(outcome, {}, {}, {}, {}, {}, [])


def outline(
    key: ApiKey,
    version: int,
    answer: Any,
    ids: TopicIds,
    asked: Collection[str] = (),
    codes: Sequence[int] = (),
) -> Outline:
    """Return the outline of an answer that was decoded at a version.

    ``asked`` has the names in the request, ``codes`` the codes of `Case.codes`.
    """
    made = Outline(ANSWERED, {}, {}, {}, {}, {}, list(codes))
    _Walk(key, version, ids, asked, made).struct(answer, "")
    return made


class _Walk:
    def __init__(
        self, key: ApiKey, version: int, ids: TopicIds, asked: Collection[str], made: Outline
    ) -> None:
        self._key = key
        self._version = version
        self._ids = ids
        self._asked = asked
        self._made = made
        self._lists = _LISTS.get(key, {})

    def struct(self, item: Any, path: str, *, refused: bool = False) -> None:
        """Keep the fields of a struct; ``path`` is its path with a dot at the end.

        All fields of a ``refused`` struct are kept, since they do not depend on a broker's data.
        """
        fields = fields_of(item, self._version)
        refused = refused or any(self._refuses(item, field) for field in fields)
        for field in fields:
            value, where = getattr(item, field.name), path + field.name
            if field.holds_structs:
                self._inner(field.name, value, where, refused=refused)
            elif field.is_code:
                self._made.codes[where] = value
            elif field.name.endswith("authorized_operations"):
                if value != NOT_ASKED:
                    self._made.operations[where] = value
            elif "message" in field.name:
                self._message(value, where)
            elif refused and field.name not in _LEFT_OUT:
                self._made.fields[where] = self._plain(value)

    def _refuses(self, item: Any, field: Field) -> bool:
        return field.is_code and bool(
            refusal(self._key, getattr(item, field.name), self._made.named)
        )

    def _inner(self, name: str, value: Any, where: str, *, refused: bool) -> None:
        if isinstance(value, Sequence):
            self._entries(name, value, where, refused=refused)
        elif value is not None:
            self.struct(value, f"{where}.", refused=refused)

    def _message(self, text: str | None, where: str) -> None:
        if told := sorted(set(names_in(text or "")) - set(self._asked)):
            self._made.told[where] = told

    def _plain(self, value: Any) -> Any:
        """Return the value of a field as JSON can hold it."""
        if isinstance(value, bytes | memoryview):
            value = bytes(value)
            return f"#{self._ids.name_of(value)}" if len(value) == _ID_BYTES else value.hex()
        return list(value) if isinstance(value, tuple) else value

    def _entries(self, name: str, entries: Sequence[Any], where: str, *, refused: bool) -> None:
        if name in self._lists:
            names = {self._shown_name(entry, self._lists[name]) for entry in entries}
            self._made.names[where] = sorted(names & LISTED)
        seen: dict[str, int] = {}
        for position, entry in enumerate(entries):
            about = self._about(entry) or f"({position})"
            seen[about] = seen.get(about, 0) + 1
            again = f" again {seen[about]}" if seen[about] > 1 else ""
            self.struct(entry, f"{where}[{about}{again}].", refused=refused)

    def _shown_name(self, entry: Any, field: str) -> str:
        name: str | None = getattr(entry, field)
        return name or self._ids.name_of(getattr(entry, "topic_id", ZERO_UUID))

    def _about(self, entry: Any) -> str:
        """Return what an entry is about: its kind, name and topic id, as far as it has them."""
        names = {field.name for field in fields_of(entry, self._version)}
        parts = [f"{getattr(entry, kind)}:" for kind in _KINDS if kind in names]
        name = next((each for each in _NAMES if each in names), None)
        if name is not None and (value := getattr(entry, name)) is not None:
            parts.append(str(value))
        if "topic_id" in names:
            if (topic_id := entry.topic_id) != ZERO_UUID:
                parts.append(f"#{self._ids.name_of(topic_id)}")
            elif not any(parts):
                parts.append("#zero")
        return "".join(parts)


class Field(NamedTuple):
    """A field of a message: whether it holds structs, and whether it is an error code."""

    name: str
    holds_structs: bool
    is_code: bool


def fields_of(item: Any, version: int) -> tuple[Field, ...]:
    """Return the fields that a message, or a struct in one, has at a version."""
    cls: Any = type(item)
    return _fields_at(cls, version)


@cache
def _fields_at(cls: Any, version: int) -> tuple[Field, ...]:
    found = []
    for field in dataclasses.fields(cls):
        spec: FieldSpec | None = field.metadata.get("spec")
        if spec is None or version not in spec.versions:
            continue
        kind = spec.kind[0] if isinstance(spec.kind, list) else spec.kind
        is_code = spec.kind == "int16" and field.name.endswith("error_code")
        found.append(Field(field.name, isinstance(kind, type), is_code))
    return tuple(found)
