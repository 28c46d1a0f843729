"""Compares the answers of two clusters. The tables name all that may differ, each with a reason."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.broker.memory.batch import CONTROL, HEADER, LOG_APPEND_TIME, OVERHEAD
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.requests import codes

RENAMED: Final = {
    "topic_id": ("topic", "A cluster draws an id for each new topic."),
    "member_id": ("member", "A coordinator draws a random part of a member's id."),
    "leader": ("member", "The leader of a classic group is the id of a member."),
    "session_id": ("session", "A broker draws a random id for each fetch session."),
    "client_instance_id": ("client", "A broker draws a random id for a client's telemetry."),
    "cluster_id": ("cluster", "Each cluster has an id of its own."),
    "port": ("port", "The clusters listen on different ports, and the gateway has its own."),
}
"""Fields whose values differ. One value on one side always stands for one value on the other."""

TIMES: Final = {
    "log_append_time_ms": "The clusters append the record at different times.",
    "transaction_start_time_ms": "The transaction begins at different times.",
    "last_caught_up_timestamp": "It is the time of the answer.",
    "last_fetch_timestamp": "It is the time of the answer.",
    "last_timestamp": "The last batch may be a marker, which has the time of its broker.",
    "acquisition_lock_timeout_ms": "It is the rest of a time.",
}
"""Fields with a time. Both sides must have one, or neither."""

UNORDERED: Final = {
    "responses": "The gateway adds refused topics to the answer of a session behind all others.",
    "partitions": "A topic that was refused for a time is the last one in the session upstream.",
}
"""Arrays in answers of fetch sessions and share sessions whose order has no meaning."""

WITHOUT_ORDER: Final = {
    "topic_partitions": "The topics of an assignment have no order.",
    "DescribeShareGroupOffsets.groups.topics": "All topics of a group have no order.",
}
"""Arrays that are made of sets, by the names of the fields or by their paths."""

_INDEX: Final = re.compile(r"\[\d+\]")
_NOTHING: Final = (ZERO_UUID, "", 0, -1, None)


class Difference(NamedTuple):
    """A field whose values differ."""

    path: str
    alone: Any
    behind: Any


class Renames:
    """The values of one cluster that stand for values of the other, by their kinds."""

    def __init__(self) -> None:
        self._there: dict[tuple[str, Any], Any] = {}
        self._back: dict[tuple[str, Any], Any] = {}
        self.deleted: set[bytes] = set()
        """The ids of deleted topics in the cluster that has ACLs."""
        self.by_design: Counter[str] = Counter()
        """The number of differences of each reason in `BY_DESIGN`."""
        self.revoked: set[str] = set()
        """The share groups of which a member was refused a topic that it had read."""

    def agree(self, kind: str, alone: Any, behind: Any) -> bool:
        """Note two values that stand for each other; return False if they contradict others."""
        if alone in _NOTHING or behind in _NOTHING:
            return bool(alone == behind)
        there = self._there.setdefault((kind, alone), behind)
        back = self._back.setdefault((kind, behind), alone)
        return bool(there == behind and back == alone)

    def there(self, kind: str, alone: Any) -> Any:
        """Return the value of the cluster behind the gateway."""
        return self._there.get((kind, alone), alone)

    def here(self, kind: str, behind: Any) -> Any:
        """Return the value of the cluster that has ACLs."""
        return self._back.get((kind, behind), behind)

    def translated(self, message: Any) -> Any:
        """Return a request for the cluster behind the gateway."""
        return mapped(message, self._translate)

    def text(self, behind: str) -> str:
        """Return a text with the ids of the cluster that has ACLs."""
        for (kind, there), alone in self._back.items():
            if kind in ("member", "topic"):
                for form in _forms(there):
                    if form in behind:
                        behind = behind.replace(form, _forms(alone)[0])
        return behind

    def _translate(self, name: str, value: Any) -> Any:
        kind = RENAMED.get(name)
        return value if kind is None else self.there(kind[0], value)

    def back(self, name: str, value: Any) -> Any:
        """Return a field's value of the cluster that has ACLs."""
        kind = RENAMED.get(name)
        return value if kind is None else self.here(kind[0], value)


def mapped(message: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:
    """Return a copy of a message whose plain fields are changed."""
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        fields = (field.name for field in dataclasses.fields(message))
        return dataclasses.replace(
            message, **{name: mapped(getattr(message, name), change, name) for name in fields}
        )
    if isinstance(message, list | tuple):
        return [mapped(entry, change, name) for entry in message]
    return change(name, message)


def differences(
    key: int, request: Any, alone: Any, behind: Any, renames: Renames
) -> list[Difference]:
    """Return the fields of two answers to a request that differ beyond the tables."""
    is_session = max(_epochs(request)) > 0
    walk = _Walk(renames, request, UNORDERED if is_session else ())
    return list(walk.differences(APIS[key].name, "", alone, behind))


def _epochs(request: Any) -> list[int]:
    names = "session_epoch", "share_session_epoch"
    return [int(getattr(request, name, 0)) for name in names]


class _Walk:
    """Goes through two answers at once."""

    def __init__(self, renames: Renames, request: Any, unordered: Collection[str]) -> None:
        self.renames, self.request, self._unordered = renames, request, unordered

    def differences(self, path: str, name: str, alone: Any, behind: Any) -> Iterator[Difference]:
        """Yield the fields that differ."""
        if dataclasses.is_dataclass(alone) and type(alone) is type(behind):
            for rule in BY_DESIGN:
                if rule.holds(self, path, alone, behind):
                    self.renames.by_design[rule.reason] += alone != behind
                    return
            for field in dataclasses.fields(alone):
                values = getattr(alone, field.name), getattr(behind, field.name)
                yield from self.differences(f"{path}.{field.name}", field.name, *values)
        elif isinstance(alone, list | tuple) and isinstance(behind, list | tuple):
            yield from self._entries(path, name, alone, behind)
        elif not self._is_alike(name, alone, behind):
            yield Difference(path, alone, behind)

    def _entries(
        self, path: str, name: str, alone: Sequence[Any], behind: Sequence[Any]
    ) -> Iterator[Difference]:
        if len(alone) != len(behind):
            yield Difference(path, alone, behind)
            return
        if name in self._unordered or {name, _INDEX.sub("", path)} & WITHOUT_ORDER.keys():
            here = mapped(behind, self.renames.back)
            places = sorted(range(len(here)), key=lambda place: self._identity(here[place]))
            alone = sorted(alone, key=self._identity)
            behind = [behind[place] for place in places]
        for number, values in enumerate(zip(alone, behind, strict=True)):
            yield from self.differences(f"{path}[{number}]", name, *values)

    @staticmethod
    def _identity(entry: Any) -> str:
        """Return the topic and the partition of an entry."""
        topic, topic_id = getattr(entry, "topic", ""), getattr(entry, "topic_id", b"")
        index = getattr(entry, "partition_index", -1)
        return repr((topic, topic_id, index))

    def _is_alike(self, name: str, alone: Any, behind: Any) -> bool:
        if name in RENAMED:
            return self.renames.agree(RENAMED[name][0], alone, behind)
        if name in TIMES:
            return (alone in _NOTHING) == (behind in _NOTHING)
        if name == "records" and alone is not None and behind is not None:
            return timeless(alone) == timeless(behind)
        if isinstance(alone, str) and isinstance(behind, str) and alone != behind:
            return alone == self.renames.text(behind)
        return bool(alone == behind)


class Rule(NamedTuple):
    """Entries of answers that differ by design, and the reason."""

    holds: Callable[[_Walk, str, Any, Any], bool]
    reason: str


def _is_of_deleted_topic(walk: _Walk, _path: str, alone: Any, behind: Any) -> bool:
    return (
        getattr(alone, "topic_id", None) in walk.renames.deleted
        and codes(alone) - {0} == {ErrorCode.UNKNOWN_TOPIC_ID}
        and codes(behind) - {0} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    )


def _is_created(walk: _Walk, path: str, alone: Any, behind: Any) -> bool:
    return (
        path.startswith("Metadata.topics")
        and getattr(walk.request, "allow_auto_topic_creation", False)
        and getattr(alone, "name", None) == getattr(behind, "name", "")
        and (alone.error_code, behind.error_code) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    )


def _is_setting(_walk: _Walk, path: str, alone: Any, _behind: Any) -> bool:
    is_config = path.startswith("DescribeConfigs.results")
    return is_config and getattr(alone, "name", None) in _SETTINGS


_SETTINGS: Final = ("authorizer.class.name", "auto.create.topics.enable")


def _is_hidden_name(_walk: _Walk, path: str, alone: Any, behind: Any) -> bool:
    return (
        path.startswith("DeleteTopics.responses")
        and getattr(behind, "name", "") is None
        and alone.error_code == behind.error_code == 0
    )


def _is_of_revoked_group(walk: _Walk, path: str, alone: Any, _behind: Any) -> bool:
    is_offsets = path.startswith("DescribeShareGroupOffsets.groups")
    return is_offsets and getattr(alone, "group_id", None) in walk.renames.revoked


BY_DESIGN: Final = (
    Rule(
        _is_of_deleted_topic,
        "The gateway remembers the names of topic ids, so it refuses the id of a deleted topic as "
        "its name. A Kafka does not know the id any more.",
    ),
    Rule(
        _is_created,
        "The gateway creates the topics of a partly refused Metadata before it forwards the rest, "
        "so the answer has them.",
    ),
    Rule(
        _is_hidden_name,
        "The gate of a gateway hides the name of a topic that was deleted by its id from a client "
        "that may not describe it. A Kafka shows it, and so does a cluster in memory.",
    ),
    Rule(
        _is_of_revoked_group,
        "A topic whose right was revoked has left the share session upstream. Its acquired records "
        "are released when their lock ends, not with the session (docs/gateway.md, Limits).",
    ),
    Rule(
        _is_setting,
        "The gateway has the authorizer, and says whether topics are created automatically. The "
        "cluster behind it has its own settings.",
    ),
)


def timeless(records: bytes) -> Sequence[Any]:
    """Return batches without the times that a broker gave them, and without checksums of these."""
    batches = []
    data = bytes(records)
    while len(data) >= HEADER.size:
        head = list(HEADER.unpack_from(data))
        size = OVERHEAD + head[1]
        if head[5] & (CONTROL | LOG_APPEND_TIME):
            head[4] = head[7] = head[8] = 0
        batches.append((*head, data[HEADER.size : size]))
        data = data[size:]
    return [*batches, data]


def _forms(value: Any) -> Sequence[str]:
    """Return the texts in which an id stands in messages."""
    if isinstance(value, str):
        return (value,)
    return (topic_id_text(value),)


def topic_id_text(topic_id: bytes) -> str:
    """Return a topic id as Kafka writes it."""
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(topic_id).decode().rstrip("=")
