"""The interface of a cluster behind the gate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol

from aclbroker.acl.bindings import CLUSTER_NAME, ResourceType
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topic_resolver import TopicResolver

BackendHandler = Callable[[Any, RequestRights, Any], Any | Coroutine[Any, Any, Any]]
"""Takes the backend, the session's rights and the part of a request that the gate allowed.

Returns the response, a coroutine of it, or `Later`. If the gate adds nothing to the response, it
may also be bytes: the message without its header, encoded at the version of the request.
"""


class Later(NamedTuple):
    """A response that another broker makes, for which no worker waits.

    The next requests of the connection may begin before it is there.
    """

    response: Awaitable[Any]


class Node(NamedTuple):
    """The id of a broker and its advertised address on one listener."""

    node_id: int
    host: str
    port: int


class FeatureRange(NamedTuple):
    """The lowest supported level of a feature, and its current level, which is the highest."""

    lowest: int
    level: int


class Backend(Protocol):
    """A cluster behind the gate, as the node that a client is connected to sees it."""

    @property
    def cluster_id(self) -> str:
        """The cluster id."""

    @property
    def handlers(self) -> Mapping[int, BackendHandler]:
        """The handler of each API key that the backend answers."""

    @property
    def listed(self) -> Collection[int]:
        """The API keys of ``handlers`` that ApiVersions lists, before login too."""

    @property
    def features(self) -> Mapping[str, FeatureRange]:
        """The features that ApiVersions lists (KIP-584)."""

    @property
    def exceeds_rights(self) -> bool:
        """Whether it answers with more rights than the client has, so that `show` must filter."""

    @property
    def topics(self) -> TopicResolver:
        """The resolver of topic ids, which also knows which topics exist; it may wait."""

    @property
    def short_answers(self) -> Collection[int]:
        """The API keys whose answers to short requests wait for nothing and are never long."""

    def node(self, rights: RequestRights) -> Node:
        """Return the connected node as the listener of the session advertises it."""

    def nodes(self, rights: RequestRights) -> tuple[Node, ...]:
        """Return all nodes of the cluster as the listener of the session advertises them."""

    def disconnected(self, connection: object) -> None:
        """Note that the connection of a session is closed."""


def cluster_operations(rights: RequestRights) -> int:
    """Return the session's operations on the cluster (KIP-430); 0 without DESCRIBE on it."""
    if not rights.holds("show cluster"):
        return 0
    return rights.operations(ResourceType.CLUSTER, CLUSTER_NAME)
