"""What consumers of the classic protocol tell one another, as bytes: subscriptions, assignments.

The broker has to read them to know which topics a group reads, and where consumers of both
protocols are in one group. The formats are Kafka's ConsumerProtocolSubscription and
ConsumerProtocolAssignment, of which each version only adds to the end. Reading may pause.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.turns import in_turns

PROTOCOL_TYPE: Final = "consumer"

NEWEST_VERSION: Final = 3
_FIRST_WITH_OWNED: Final = 1
_FIRST_WITH_GENERATION: Final = 2
_FIRST_WITH_RACK: Final = 3


class Malformed(ValueError):
    """Bytes are not what they should be."""


class Subscription(NamedTuple):
    """What a consumer tells its group's leader; ``owned`` has the partitions it owns by topic."""

    version: int
    topics: tuple[str, ...]
    owned: Mapping[str, Sequence[int]]
    generation: int = -1
    rack: str | None = None


def read_topics(metadata: bytes) -> tuple[str, ...]:
    """Return the topics of a subscription; raises Malformed."""
    reader = _Reader(metadata)
    reader.int16()
    return reader.topics()


def read_subscription(metadata: bytes) -> Subscription:
    """Return a subscription; raises Malformed."""
    reader = _Reader(metadata)
    version = reader.int16()
    if version < 0:
        raise Malformed("the embedded consumer protocol is malformed")
    topics = reader.topics()
    reader.skip_bytes()
    owned: dict[str, Sequence[int]] = {}
    generation, rack = -1, None
    if version >= _FIRST_WITH_OWNED:
        owned = reader.partitions()
    if version >= _FIRST_WITH_GENERATION:
        generation = reader.int32()
    if version >= _FIRST_WITH_RACK:
        rack = reader.nullable_text()
    return Subscription(min(version, NEWEST_VERSION), topics, owned, generation, rack)


def read_assignment(assignment: bytes) -> Mapping[str, Sequence[int]]:
    """Return the partitions of an assignment by topic.

    Raises Malformed, also if there is anything else in it that only some assignor understands.
    """
    reader = _Reader(assignment)
    if reader.int16() < 0:
        raise Malformed("the embedded consumer protocol is malformed")
    partitions = reader.partitions()
    if reader.int32() > 0:
        raise Malformed("an unsupported custom assignor is in use")
    return partitions


def version_of(metadata: bytes) -> int:
    """Return the version of a subscription, the oldest if that cannot be read."""
    try:
        return max(0, min(_Reader(metadata).int16(), NEWEST_VERSION))
    except Malformed:
        return 0


def assignment_bytes(partitions: Mapping[str, Sequence[int]], version: int) -> bytes:
    """Return the assignment of partitions, by topic, as bytes."""
    parts = [struct.pack(">hi", version, len(partitions))]
    for topic, indexes in partitions.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si", len(name), name, len(indexes)))
        parts.append(struct.pack(f">{len(indexes)}i", *indexes))
    parts.append(struct.pack(">i", -1))
    return b"".join(parts)


class _Reader:
    """Reads the primitive types of Kafka's protocol from bytes; all methods raise Malformed."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def text(self) -> str:
        text = self.nullable_text()
        if text is None:
            raise Malformed("no text")
        return text

    def nullable_text(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise Malformed("not UTF-8") from error

    def topics(self) -> tuple[str, ...]:
        return tuple([self.text() for _ in in_turns(range(self._count(2)))])

    def skip_bytes(self) -> None:
        self._take(max(0, self.int32()))

    def partitions(self) -> dict[str, Sequence[int]]:
        found: dict[str, Sequence[int]] = {}
        for _ in in_turns(range(self._count(6))):
            topic, indexes = self.text(), self._count(4)
            found[topic] = struct.unpack(f">{indexes}i", self._take(4 * indexes))
        return found

    def _count(self, least: int) -> int:
        """Return how many entries follow, which take at least so many bytes each."""
        count = self.int32()
        if count < 0 or count * least > len(self._data) - self._at:
            raise Malformed(f"{count} entries")
        return count

    def _number(self, code: str, size: int) -> int:
        value: int = struct.unpack(code, self._take(size))[0]
        return value

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise Malformed("too short")
        self._at += size
        return taken
