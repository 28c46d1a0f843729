"""Where the partitions are that a request came to the wrong node for."""

from __future__ import annotations

from aclbroker.broker.backends.backend import Node
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.topics import Partition


class Leaders:
    """The leaders that an answer tells of, whose addresses it has to have."""

    def __init__(self, backend: MemoryBackend, rights: RequestRights) -> None:
        self._nodes = backend.nodes(rights)
        self._told: set[int] = set()

    def of(self, partition: Partition) -> tuple[int, int]:
        """Return the leader's id and epoch, which the answer tells."""
        self._told.add(partition.leader)
        return partition.leader, partition.log.leader_epoch

    def nodes(self) -> list[Node]:
        """Return the leaders that the answer tells of."""
        return [node for node in self._nodes if node.node_id in self._told]
