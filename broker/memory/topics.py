"""The topics of the cluster in memory: names, ids, configurations, partitions and their leaders."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aclbroker.broker.catalog import Catalog, new_topic_id
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.room import Room
from aclbroker.broker.memory.topic_configs import log_settings
from aclbroker.protocol.errors import ErrorCode

_COORDINATOR_PARTITIONS: Final = 50

VerifyTransaction = Callable[[str, int, int, str, int, bool], ErrorCode]
"""Takes a transactional id, the producer's id and epoch, the topic, the index of the partition, and
whether it is to be added to the transaction (as from version 12 of Produce on) or must be part of
it; returns NONE, or why the producer may not write.
"""


@dataclass(slots=True, eq=False)
class Partition:
    """One partition; ``leader`` is the id of the only node that serves it.

    ``replicas`` are the ids of the nodes that it is said to be on, the leader first; all are in
    sync, for all nodes are this one process. ``transactions`` is asked whether a producer may
    begin to write here in a transaction; None means that nobody has to be asked.
    """

    topic: str
    index: int
    leader: int
    log: PartitionLog
    replicas: tuple[int, ...]
    transactions: VerifyTransaction | None = None


@dataclass(slots=True, eq=False)
class Topic:
    """A topic with its id of 16 bytes; ``configs`` has what differs from the broker's defaults."""

    name: str
    topic_id: bytes
    configs: dict[str, str]
    partitions: list[Partition] = field(default_factory=list)


class MemoryTopics(Catalog):
    """All topics by name. Their partitions are spread over the nodes, one topic's and all topics'.

    ``room`` is the memory for all records; ``transactions`` is what new partitions have.
    """

    knows_at_once = False

    def __init__(self, node_ids: Sequence[int], room: Room, *, auto_creates: bool) -> None:
        super().__init__(node_id=node_ids[0], auto_creates=auto_creates)
        self.by_name: dict[str, Topic] = {}
        self.sessions: Container[int] = ()
        self.transactions: VerifyTransaction | None = None
        self.room = room
        self._node_ids = node_ids
        self._created = 0

    def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] | None = None,
        assignments: Sequence[Sequence[int]] = (),
        replicas: int = 1,
    ) -> Topic:
        """Add a topic; its name must be valid, and no topic's yet."""
        topic = Topic(name, new_topic_id(), dict(configs or {}))
        self.by_name[name] = topic
        self._ids[name] = topic.topic_id
        self._names[topic.topic_id] = name
        self._created += 1
        self.grow(topic, partitions, assignments, replicas)
        return topic

    def grow(
        self, topic: Topic, count: int, assignments: Sequence[Sequence[int]] = (), replicas: int = 1
    ) -> None:
        """Give a topic as many partitions as ``count``, which is no fewer than it has.

        ``assignments`` has the node ids of each new one, its leader's first; without them they are
        spread, each over ``replicas`` nodes.
        """
        settings = log_settings(topic.configs)
        begun = len(topic.partitions)
        for index in range(begun, count):
            nodes = (
                tuple(assignments[index - begun]) if assignments else self._spread(index, replicas)
            )
            log = PartitionLog(f"{topic.name}-{index}", settings, self.room)
            topic.partitions.append(
                Partition(topic.name, index, nodes[0], log, nodes, self.transactions)
            )
        self.topics[topic.name] = count

    def _spread(self, index: int, replicas: int) -> tuple[int, ...]:
        first = self._created - 1 + index
        return tuple(self._node_ids[(first + n) % len(self._node_ids)] for n in range(replicas))

    def configure(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Give a topic other configurations, which must be valid."""
        topic.configs = dict(configs)
        settings = log_settings(topic.configs)
        for partition in topic.partitions:
            partition.log.settings = settings

    def delete(self, topic: Topic) -> None:
        """Remove a topic with all of its records."""
        del self.by_name[topic.name], self._ids[topic.name]
        del self._names[topic.topic_id], self.topics[topic.name]
        for partition in topic.partitions:
            partition.log.clear()

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
