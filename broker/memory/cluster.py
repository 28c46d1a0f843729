"""The cluster in memory: everything that is lost when the broker ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.topics import MemoryTopics, coordinator_of


class MemorySettings(NamedTuple):
    """The broker's settings that concern its data; the names are those of the configuration.

    ``full`` is ``delete`` or ``refuse``.
    """

    auto_create_topics: bool = True
    partitions: int = 1
    max_bytes: int = 256 << 20
    full: str = "delete"


class MemoryCluster:
    """What a cluster of Kafka keeps for its clients. All nodes are this one process.

    ``on_close`` has what is to be called at the end: whoever waits is to be woken.
    """

    def __init__(self, clock: Clock, node_ids: Sequence[int], settings: MemorySettings) -> None:
        self.clock = clock
        self.node_ids = tuple(node_ids)
        self.settings = settings
        self.topics = MemoryTopics(self.node_ids, auto_creates=settings.auto_create_topics)
        self.on_close: set[Callable[[], None]] = set()
        self.is_closed = False

    def coordinator(self, key: str) -> int:
        """Return the id of the node that coordinates a group or a transactional id."""
        return coordinator_of(key, self.node_ids)

    def close(self) -> None:
        """Let nobody wait any more; what comes later waits for nothing."""
        self.is_closed = True
        self.clock.close()
        for wake in list(self.on_close):
            wake()
