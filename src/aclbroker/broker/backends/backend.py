"""The interface of a cluster behind the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import CLUSTER_NAME, ResourceType
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topic_resolver import TopicResolver
from aclbroker.broker.gate.whole import WholeRights
from aclbroker.protocol.pieces import Encoded
from aclbroker.protocol.primitives import Frame

BackendHandler = Callable[[Any, RequestRights, Any], Any | Coroutine[Any, Any, Any]]
"""Takes the backend, the session's rights and the part of a request that the gate allowed.

Returns the response, a coroutine of it, or `Later`. If the gate adds nothing to the response, it
may also be bytes: the message without its header, encoded at the version of the request.
"""


def _itself(response: Any) -> Any:
    return response


def _nothing() -> None:
    """Do nothing."""


class BackendUnavailable(Exception):
    """The cluster behind the gate cannot answer; the client's connection must be closed."""


class Later(NamedTuple):
    """A response that another broker makes, for which no worker waits.

    The next requests of the connection may begin before it is there. ``read``, which `Turns.run`
    runs and which may wait, returns the message of the response. The connection calls ``left`` when
    the answer has left for the client. A backend can limit the waiting answers by that.
    """

    response: Awaitable[Any]
    read: Callable[[Any], Any] = _itself
    left: Callable[[], None] = _nothing


def _undecoded(_relayed: Relayed) -> Encoded:
    raise RuntimeError("nothing decodes this answer")


class AnswerSlot:
    """The place of one answer among those of a connection, which leave in the order of requests.

    ``answer`` is there once the answer is, or ``error`` in its place. ``held`` bytes of the request
    are on the account of its principal. The next request may begin meanwhile unless the slot
    ``is_alone``. ``left`` must be called when the answer has left for the client.
    """

    __slots__ = ("answer", "error", "held", "is_alone", "left", "task")

    def __init__(self, held: int = 0, *, is_alone: bool = True) -> None:
        self.held = held
        self.answer: Encoded | None = None
        self.error: BaseException | None = None
        self.task: asyncio.Task[Any] | None = None
        self.is_alone = is_alone
        self.left: Callable[[], None] = _nothing


class Relayed(AnswerSlot):
    """The place of the answer to a request that was forwarded as its original bytes.

    The backend sets the answer, or the ``unread`` frame of one that must be decoded, which
    ``decode`` does. Then it calls the ``arrived`` of `Backend.connected`.
    """

    __slots__ = ("decode", "unread")

    def __init__(self) -> None:
        super().__init__(is_alone=False)
        self.unread: Frame | None = None
        self.decode: Callable[[Relayed], Encoded | Awaitable[Encoded]] = _undecoded

    def send(self) -> None:
        """Send all requests of the connection that were relayed and not sent yet."""
        raise NotImplementedError

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer; `Turns.run` runs this, which may wait."""
        raise NotImplementedError


Relay = Callable[[WholeRights, Session, Frame], Relayed | None]
"""Forwards a request that is wholly allowed as its original bytes; None if it must be decoded."""


class KeyVersions(NamedTuple):
    """An API key with its lowest and its highest version, as ApiVersions lists them."""

    key: int
    lowest: int
    highest: int


class Node(NamedTuple):
    """The id of a broker and its advertised address on one listener."""

    node_id: int
    host: str
    port: int


class FeatureRange(NamedTuple):
    """The lowest and the highest supported level of a feature, and its current level.

    The level 0 means that the feature is off.
    """

    lowest: int
    highest: int
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
    def listed(self) -> Sequence[KeyVersions]:
        """The API keys of ``handlers`` that ApiVersions lists, before login too.

        It must be hashable. Another broker may offer other versions after it has started anew.
        """

    @property
    def features(self) -> Mapping[str, FeatureRange]:
        """The features that ApiVersions lists (KIP-584)."""

    @property
    def features_epoch(self) -> int:
        """The epoch of the features' levels, which grows with each change of a level."""

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

    @property
    def relay(self) -> Relay | None:
        """The function that forwards requests without decoding them, if there is one."""

    def connected(
        self, connection: object, lost: Callable[[], None], arrived: Callable[[], None]
    ) -> None:
        """Note the connection of a session that has begun.

        The backend calls ``lost`` if it can answer no further request of the connection, and
        ``arrived`` when answers of relayed requests are there.
        """

    def disconnected(self, connection: object) -> None:
        """Note that the connection of a session is closed."""


def cluster_operations(rights: RequestRights) -> int:
    """Return the session's operations on the cluster (KIP-430); 0 without DESCRIBE on it."""
    if not rights.holds("show cluster"):
        return 0
    return rights.operations(ResourceType.CLUSTER, CLUSTER_NAME)
