"""Shows an answer as one value for each of its fields, without what is different each time.

A path names the entries of lists after what they are about, as in
``topics[orders].partitions[0].error_code``. Topic ids, producer ids, session ids and member ids are
shown by names, times of today as ``<now>``, batches of records one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from aclbroker.conformance.outline import fields_of
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import ZERO_UUID

_LEFT_OUT: Final = frozenset(
    (
        *("throttle_time_ms", "host", "port", "rack", "cluster_id", "client_host"),
        *("documentation", "log_dir", "total_bytes", "usable_bytes"),
    )
)
"""Fields that no two brokers have alike."""

_NODES: Final = frozenset(
    (
        *("leader_id", "leader", "node_id", "controller_id", "preferred_read_replica"),
        *("replica_nodes", "isr_nodes"),
    )
)
_ABOUT: Final = (
    *("resource_name", "name", "topic_name", "topic", "topic_id", "group_id", "transactional_id"),
    *("partition_index", "partition_id", "partition", "index", "member_id", "batch_index"),
    *("producer_id", "key", "first_offset"),
)
"""The fields that name what an entry is about; the first one that is not empty counts.

With a topic id it is the first two.
"""

_LISTS: Final = frozenset((ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS))
"""The keys whose answers list what others have, too, which is not kept."""

_DIVIDED: Final = frozenset((ApiKey.PRODUCE, ApiKey.FETCH))
"""The keys in whose ``responses`` a broker may divide the partitions of a topic among entries."""

_TODAY: Final = 1_750_000_000_000
"""The suite's own records are older than this, in milliseconds since 1970."""

_BATCH: Final = Struct(">qiibIhiqqqhii")
_OVERHEAD: Final = 12
_CONTROL: Final = 0x20


class Shown(NamedTuple):
    """An answer as it is kept: its fields, and the messages for people, by their paths."""

    fields: dict[str, Any]
    messages: dict[str, list[str]]


class Names:
    """The names by which values are shown that are different each time."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[Any, str] = {ZERO_UUID: "#zero"}
        self._numbers: dict[int, str] = {}

    def call(self, value: Any, name: str) -> None:
        """Show a value as ``<name>`` from now on; what is empty or negative stays as it is.

        Numbers are ids of producers.
        """
        if isinstance(value, int):
            if value >= 0:
                self._numbers[value] = f"<{name}>"
        elif value:
            self._names[bytes(value) if isinstance(value, memoryview) else value] = f"<{name}>"

    def is_others(self, name: Any) -> bool:
        """Tell whether a name belongs to something that the story did not make."""
        return isinstance(name, str) and not name.startswith(self._prefix)

    def of(self, value: Any) -> Any:
        """Return a value as JSON can hold it."""
        if isinstance(value, bytes | memoryview):
            value = bytes(value)
            if value in self._names:
                return self._names[value]
            return f"0x{value.replace(self._prefix.encode(), b'').hex()}"
        if isinstance(value, str):
            for each, name in self._names.items():
                if isinstance(each, str):
                    value = value.replace(each, name)
            return value.replace(self._prefix, "")
        return value

    def of_number(self, field: str, value: int) -> Any:
        """Return a number of a field."""
        if field == "producer_id":
            return self._numbers.get(value, value)
        if field == "session_id":
            return value if value <= 0 else "<session>"
        if field in _NODES:
            return value if value < 0 else "<node>"
        return "<now>" if value > _TODAY and "time" in field else value


def shown(key: int, version: int, answer: Any, names: Names) -> Shown:
    """Return what is kept of an answer that was decoded at a version."""
    walk = _Walk(key, version, names)
    walk.struct(answer, "")
    return walk.made


class _Walk:
    def __init__(self, key: int, version: int, names: Names) -> None:
        self.made = Shown({}, {})
        self._version = version
        self._names = names
        self._is_list = key in _LISTS
        self._divided = "responses" if key in _DIVIDED else None

    def struct(self, item: Any, path: str) -> None:
        for field in fields_of(item, self._version):
            name, value, where = field.name, getattr(item, field.name), path + field.name
            if name in _LEFT_OUT:
                continue
            if field.holds_structs:
                self._inner(value, where)
            elif "error_message" in name:
                if value:
                    self.made.messages[where] = [self._names.of(value)]
            elif name == "records":
                self.made.fields[where] = [*batches(bytes(value or b""), self._names)]
            else:
                self.made.fields[where] = self._plain(name, value)

    def _inner(self, value: Any, where: str) -> None:
        if value is None:
            self.made.fields[where] = None
        elif isinstance(value, Sequence):
            self._entries([each for each in value if not self._is_of_others(each)], where)
        else:
            self.struct(value, f"{where}.")

    def _entries(self, entries: Sequence[Any], where: str) -> None:
        named = [(self._about(entry), entry) for entry in entries]
        if where == self._divided:
            self.made.fields[where] = len({about for about, _ in named})
            for about, entry in named:
                for field in fields_of(entry, self._version):
                    if field.holds_structs:
                        self._entries(getattr(entry, field.name), f"{where}[{about}].{field.name}")
            return
        self.made.fields[where] = self.made.fields.get(where, 0) + len(entries)
        seen: dict[str, int] = {}
        for about, entry in named:
            seen[about] = seen.get(about, 0) + 1
            again = f" again {seen[about]}" if seen[about] > 1 else ""
            self.struct(entry, f"{where}[{about}{again}].")

    def _is_of_others(self, entry: Any) -> bool:
        if not self._is_list:
            return False
        named = getattr(entry, "group_id", None) or getattr(entry, "transactional_id", None)
        return self._names.is_others(named)

    def _about(self, entry: Any) -> str:
        known = {field.name for field in fields_of(entry, self._version)}
        told = [
            str(self._plain(name, value))
            for name in _ABOUT
            if name in known and (value := getattr(entry, name)) not in (None, "", ZERO_UUID)
        ]
        # A topic may be there once by its name and once by its id.
        return " ".join(told[:2] if "topic_id" in known else told[:1])

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, str | bytes | memoryview):
            return self._names.of(value)
        if isinstance(value, Sequence):
            return sorted((self._plain(name, each) for each in value), key=repr)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._names.of_number(name, value)
        return value


def batches(records: bytes, names: Names) -> Iterator[str]:
    """Yield a line for each whole batch; one that is cut off at the end is no use to a client."""
    position = 0
    while len(records) - position >= _BATCH.size:
        header = _BATCH.unpack_from(records, position)
        base, length, epoch, magic, _, attributes, delta = header[:7]
        end = position + length + _OVERHEAD
        if end > len(records):
            return
        producer = names.of_number("producer_id", header[9])
        latest = names.of_number("time", header[8])
        body = "a marker" if attributes & _CONTROL else f"{length} bytes"
        yield (
            f"{base}..{base + delta} epoch {epoch} magic {magic} attributes {attributes:#x} "
            f"latest {latest} producer {producer} {header[10]} from {header[11]}: "
            f"{header[12]} records, {body}"
        )
        position = end
