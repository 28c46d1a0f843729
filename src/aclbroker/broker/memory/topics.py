"""The topics of the cluster in memory: names, ids, configurations, partitions and their leaders."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aclbroker.broker.catalog import (
    GROUPS_TOPIC,
    SHARES_TOPIC,
    TRANSACTIONS_TOPIC,
    Catalog,
    new_topic_id,
)
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings, log_settings
from aclbroker.broker.memory.placing import MOST_PARTITIONS
from aclbroker.broker.memory.room import Room
from aclbroker.broker.topic_configs import (
    TOPIC_CONFIGS,
    BrokerDefault,
    shown,
    with_defaults,
)
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

_COORDINATOR_PARTITIONS: Final = 50
_COORDINATOR_REPLICAS: Final = 3
_SEGMENT_BYTES: Final = "104857600"
_COORDINATOR_TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    GROUPS_TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": _SEGMENT_BYTES,
    },
    TRANSACTIONS_TOPIC: {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": _SEGMENT_BYTES,
        "unclean.leader.election.enable": "false",
    },
    SHARES_TOPIC: {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": _SEGMENT_BYTES,
    },
}
"""The topics of Kafka's coordinators with their settings. Here they stay empty."""

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

    ``room`` is the memory for all records. New partitions verify transactions with
    ``transactions``; ``partitions`` is the number of all partitions. ``defaults`` are the broker's
    defaults for the settings of topics.
    """

    knows_at_once = False

    def __init__(
        self,
        node_ids: Sequence[int],
        room: Room,
        *,
        auto_creates: bool,
        defaults: Mapping[str, BrokerDefault] | None = None,
    ) -> None:
        super().__init__(node_id=node_ids[0], auto_creates=auto_creates)
        self.defaults = dict(defaults or {})
        self.by_name: dict[str, Topic] = {}
        self.sessions: Container[int] = ()
        self.transactions: VerifyTransaction | None = None
        self.room = room
        self.partitions = 0
        self.version = 0
        """How often topics or their partitions have changed."""
        self.on_delete: list[Callable[[str], None]] = []
        """What is called with the name of a topic that is gone."""
        self.on_forget: list[Callable[[bytes], None]] = []
        """What is called with the id of a topic that is gone."""
        self._node_ids = node_ids
        self._created = 0

    def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] | None = None,
        assignments: Sequence[Sequence[int]] = (),
        replicas: int = 1,
    ) -> Topic | None:
        """Add a topic, whose name must be valid. May pause.

        ``assignments`` has the node ids of each partition, its leader's first; without them they
        are spread, each over ``replicas`` nodes. Returns None if there is such a topic.
        """
        topic = Topic(name, new_topic_id(), dict(configs or {}))
        self._created += 1
        topic.partitions += self._new(topic, 0, partitions, assignments, replicas)
        if name in self.by_name:
            return None
        self.by_name[name] = topic
        self._ids[name] = topic.topic_id
        self._names[topic.topic_id] = name
        self.topics[name] = partitions
        self.partitions += partitions
        self.version += 1
        return topic

    def create_internal(self, name: str) -> None:
        """Create a coordinator's topic, as Kafka does at the first request for a coordinator.

        It does nothing if the topic exists, or if the limit leaves no room for its partitions.
        """
        if (
            name not in self.by_name
            and self.partitions + _COORDINATOR_PARTITIONS <= MOST_PARTITIONS
        ):
            replicas = min(_COORDINATOR_REPLICAS, len(self._node_ids))
            configs = _COORDINATOR_TOPICS[name]
            self.create(name, _COORDINATOR_PARTITIONS, configs, replicas=replicas)

    def grow(self, topic: Topic, count: int, assignments: Sequence[Sequence[int]] = ()) -> bool:
        """Give a topic as many partitions as ``count``. May pause.

        Returns False if the topic has changed meanwhile, and so nothing was done.
        """
        before = len(topic.partitions)
        replicas = len(topic.partitions[0].replicas)
        made = self._new(topic, before, count, assignments, replicas)
        if len(topic.partitions) != before or self.by_name.get(topic.name) is not topic:
            return False
        topic.partitions += made
        self.topics[topic.name] = count
        self.partitions += len(made)
        self.version += 1
        return True

    def _new(
        self,
        topic: Topic,
        first: int,
        count: int,
        assignments: Sequence[Sequence[int]],
        replicas: int,
    ) -> list[Partition]:
        settings = self._log_settings(topic)
        begun = self._created - 1
        if topic.partitions:
            begun = self._node_ids.index(topic.partitions[0].leader)

        def partition(index: int) -> Partition:
            if assignments:
                nodes = tuple(assignments[index - first])
            else:
                nodes = self._spread(begun + index, replicas)
            log = PartitionLog(f"{topic.name}-{index}", settings, self.room)
            return Partition(topic.name, index, nodes[0], log, nodes, self.transactions)

        return [partition(index) for index in in_turns(range(first, count))]

    def config(self, configs: Mapping[str, str], name: str) -> str:
        """Return the value of a setting for a topic with this configuration, as Kafka shows it."""
        values = with_defaults(configs, self.defaults)
        return shown(name, values.get(name, TOPIC_CONFIGS[name].default))

    def _log_settings(self, topic: Topic) -> LogSettings:
        return log_settings(with_defaults(topic.configs, self.defaults))

    def _spread(self, first: int, replicas: int) -> tuple[int, ...]:
        return tuple(self._node_ids[(first + n) % len(self._node_ids)] for n in range(replicas))

    def configure(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Give a topic other configurations, which must be valid. May pause."""
        topic.configs = dict(configs)
        settings = self._log_settings(topic)
        for partition in in_turns(topic.partitions):
            partition.log.settings = settings

    def delete(self, topic: Topic) -> None:
        """Remove a topic with all of its records. May pause."""
        del self.by_name[topic.name], self._ids[topic.name]
        del self._names[topic.topic_id], self.topics[topic.name]
        self.version += 1
        self.partitions -= len(topic.partitions)
        for partition in in_turns(topic.partitions):
            partition.log.clear()
        for forget in self.on_delete:
            forget(topic.name)
        for forget_id in self.on_forget:
            forget_id(topic.topic_id)

    def partition(self, name: str | None, index: int) -> Partition | None:
        """Return a partition, None if there is none."""
        if not self.has_partition(name, index) or name is None:
            return None
        return self.by_name[name].partitions[index]

    def keeps_session(self, session_id: int) -> bool:
        """Tell whether there is a session of Fetch requests (KIP-227) of that id."""
        return session_id in self.sessions

    def of_node(self, node_id: int) -> Catalog:
        """Return the same topics as one of the nodes knows them, which tells its own id."""
        return self if node_id == self.node_id else _TopicsOfNode(self, node_id)


class _TopicsOfNode(Catalog):
    """The topics of a cluster, all of whose changes are seen here, and the id of one node."""

    knows_at_once = False

    def __init__(self, cluster: MemoryTopics, node_id: int) -> None:
        super().__init__(node_id=node_id, auto_creates=cluster.auto_creates)
        self.topics, self._ids, self._names = cluster.topics, cluster._ids, cluster._names
        self._cluster = cluster

    def keeps_session(self, session_id: int) -> bool:
        """Tell whether there is a session of Fetch requests (KIP-227) of that id."""
        return self._cluster.keeps_session(session_id)


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
