"""The topics of the cluster in memory: names, ids, configurations, partitions and their leaders."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aclbroker.broker.catalog import Catalog, new_topic_id

_COORDINATOR_PARTITIONS: Final = 50


@dataclass(slots=True, eq=False)
class Partition:
    """One partition; ``leader`` is the id of the only node that has it."""

    topic: str
    index: int
    leader: int


@dataclass(slots=True, eq=False)
class Topic:
    """A topic with its id of 16 bytes; ``configs`` has what differs from the broker's defaults."""

    name: str
    topic_id: bytes
    configs: dict[str, str]
    partitions: list[Partition] = field(default_factory=list)


class MemoryTopics(Catalog):
    """All topics by name. Those of one topic are spread over the nodes, as are topics."""

    knows_at_once = False

    def __init__(self, node_ids: Sequence[int], *, auto_creates: bool) -> None:
        super().__init__(node_id=node_ids[0], auto_creates=auto_creates)
        self.by_name: dict[str, Topic] = {}
        self.sessions: Container[int] = ()
        self._node_ids = node_ids
        self._created = 0

    def create(self, name: str, partitions: int, configs: Mapping[str, str] | None = None) -> Topic:
        """Add a topic; its name must be valid, and no topic's yet."""
        topic = Topic(name, new_topic_id(), dict(configs or {}))
        self.by_name[name] = topic
        self._ids[name] = topic.topic_id
        self._names[topic.topic_id] = name
        self._created += 1
        self.grow(topic, partitions)
        return topic

    def grow(self, topic: Topic, count: int) -> None:
        """Give a topic as many partitions as ``count``, which is no fewer than it has."""
        first = self._created - 1
        for index in range(len(topic.partitions), count):
            leader = self._node_ids[(first + index) % len(self._node_ids)]
            topic.partitions.append(Partition(topic.name, index, leader))
        self.topics[topic.name] = count

    def delete(self, topic: Topic) -> None:
        """Remove a topic."""
        del self.by_name[topic.name], self._ids[topic.name]
        del self._names[topic.topic_id], self.topics[topic.name]

    def partition(self, name: str | None, index: int) -> Partition | None:
        """Return a partition, None if there is none."""
        if not self.has_partition(name, index) or name is None:
            return None
        return self.by_name[name].partitions[index]

    def keeps_session(self, session_id: int) -> bool:
        """Tell whether there is a session of Fetch requests (KIP-227) of that id."""
        return session_id in self.sessions


def coordinator_of(key: str, node_ids: Sequence[int]) -> int:
    """Return the id of the node that coordinates a group or a transactional id.

    As in Kafka, which spreads them over the partitions of its internal topics by Java's hash.
    """
    return node_ids[(_java_hash(key) & 0x7FFFFFFF) % _COORDINATOR_PARTITIONS % len(node_ids)]


def _java_hash(text: str) -> int:
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for first in range(0, len(encoded), 2):
        value = (31 * value + int.from_bytes(encoded[first : first + 2])) & 0xFFFFFFFF
    return value
