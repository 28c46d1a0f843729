"""The interface of a cluster behind the gate."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import CLUSTER_NAME, ResourceType
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topic_resolver import TopicResolver
from aclbroker.broker.gate.whole import WholeRights
from aclbroker.protocol.pieces import Encoded
from aclbroker.protocol.primitives import Frame
from aclbroker.protocol.wire import FrameReader, Request

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


class AnswerSlot:
    """The place of one answer among those of a connection, which leave in the order of requests."""

    answer: Encoded | None = None
    """The answer, once it is there."""

    error: BaseException | None = None
    """The reason why there is no answer."""

    task: asyncio.Task[Any] | None = None
    """Makes the answer."""

    held = 0
    """How many bytes of the request are on the account of its principal."""

    is_alone = False
    """Whether no other request may begin before this one has an answer."""

    is_leaving = False
    """Whether a part of the answer has left for the client."""

    def leave(self) -> None:
        """Note that the answer leaves for the client."""


class Relayed(AnswerSlot):
    """The place of the answer to a request that was forwarded as its original bytes.

    The backend sets the answer, or the ``unread`` frame of one that must be decoded. Then it calls
    `Answers.arrived`.
    """

    unread: Frame | None = None

    @property
    def session(self) -> Session:
        """The session that sent the request."""
        raise NotImplementedError

    def request(self) -> Request:
        """Return the request, without records."""
        raise NotImplementedError

    def read(self, rights: RequestRights, request: Any) -> Any:
        """Return the message of the ``unread`` answer; `Turns.run` runs this, which may wait."""
        raise NotImplementedError


class Answers(Protocol):
    """The answers of one connection, as the backend of its requests sees them."""

    @property
    def slots(self) -> deque[AnswerSlot]:
        """The places of the answers that have not left yet."""

    @property
    def is_writable(self) -> bool:
        """Whether the client reads its answers, and no large one is being written."""

    def pass_on(self, data: Frame) -> None:
        """Write answers whose slots were taken from the front of `slots`."""

    def arrived(self) -> None:
        """Write the answers that are there, and go on with the requests that wait."""

    def lost(self) -> None:
        """Close the connection, because no further request of it can be answered."""


class Relay(Protocol):
    """Forwards the wholly allowed requests of one connection without decoding them."""

    @property
    def is_full(self) -> bool:
        """Whether the cluster does not read, so that no further request may begin."""

    def go_on(self) -> None:
        """Read answers again, because the client has read those before."""

    def take(self, rights: WholeRights, session: Session | None, frames: FrameReader) -> bool:
        """Forward the requests at the front of those that have arrived, up to one to decode.

        Without a session only a request is sent on that was begun. Returns whether there were any.
        """


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

    def connected(self, connection: object, answers: Answers) -> Relay | None:
        """Note the connection of a session that has begun, the first one or another.

        For the first session the result is a `Relay`, if the backend has one.
        """

    def disconnected(self, connection: object) -> None:
        """Note that the connection of a session is closed."""


def cluster_operations(rights: RequestRights) -> int:
    """Return the session's operations on the cluster (KIP-430); 0 without DESCRIBE on it."""
    if not rights.holds("show cluster"):
        return 0
    return rights.operations(ResourceType.CLUSTER, CLUSTER_NAME)
