"""A cluster in memory, as one of its nodes sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from aclbroker.broker.backends.backend import FeatureRange
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.backends.memory.features import FEATURES
from aclbroker.broker.memory import MemoryCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBackend(DeclaredBackend):
    """A node of a cluster whose data are in ``cluster``; ``catalog`` is its view of the topics."""

    features: ClassVar[Mapping[str, FeatureRange]] = FEATURES

    cluster: MemoryCluster

    def disconnected(self, connection: object) -> None:
        """End the share sessions of a connection that is closed."""
        self.cluster.disconnected(connection)
