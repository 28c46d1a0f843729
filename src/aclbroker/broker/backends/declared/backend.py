"""A cluster of declared topics and groups, which are empty."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from secrets import randbelow
from typing import ClassVar, Final

from aclbroker.broker.backends.backend import (
    Answers,
    BackendHandler,
    FeatureRange,
    KeyVersions,
    Node,
)
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.messages import ApiKey

_PRODUCER_IDS: Final = 1 << 62
_FEW_TOPICS: Final = 500
_SHORT_ANSWERS: Final = frozenset((ApiKey.FIND_COORDINATOR, ApiKey.METADATA))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredBackend:
    """One node of a cluster whose topics and groups are those of ``catalog``.

    ``handlers`` answer the API keys, and ApiVersions lists ``listed``. ``advertised`` maps the name
    of a listener to this node, and ``peers`` to all nodes, where there are others. ``settings`` is
    the configuration that may be shown to clients.
    """

    features: ClassVar[Mapping[str, FeatureRange]] = {}
    features_epoch: ClassVar[int] = 0
    exceeds_rights: ClassVar[bool] = False

    cluster_id: str
    catalog: Catalog
    handlers: Mapping[int, BackendHandler]
    listed: Sequence[KeyVersions]
    advertised: Mapping[str, Node]
    peers: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    producer_ids: count[int] = field(default_factory=lambda: count(randbelow(_PRODUCER_IDS)))

    @property
    def topics(self) -> Catalog:
        """The resolver of topic ids, which also knows which topics exist."""
        return self.catalog

    @property
    def short_answers(self) -> Collection[int]:
        """The API keys whose answers to short requests wait for nothing and are never long."""
        is_short = self.catalog.knows_at_once and len(self.catalog.topics) <= _FEW_TOPICS
        return _SHORT_ANSWERS if is_short else ()

    def node(self, rights: RequestRights) -> Node:
        """Return this node as the listener of the session advertises it."""
        return self.advertised[rights.context.session.listener]

    def nodes(self, rights: RequestRights) -> tuple[Node, ...]:
        """Return all nodes of the cluster as the listener of the session advertises them."""
        listener = rights.context.session.listener
        return self.peers.get(listener) or (self.advertised[listener],)

    def connected(self, connection: object, answers: Answers) -> None:
        """Do nothing, because requests of all connections are answered here."""

    def disconnected(self, connection: object) -> None:
        """Do nothing, because no connection leaves anything behind."""
