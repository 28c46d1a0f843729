"""The services that all handlers share: the authorizer, this node, its topics and credentials."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from secrets import randbelow
from typing import TYPE_CHECKING, Any, NamedTuple

from aclbroker.broker.acl.authorizer import Authorizer, RequestContext, Session
from aclbroker.broker.acl.bindings import CLUSTER_NAME, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.gate.need import Profile, Row
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import TopicResolver
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.turns import Turns
from aclbroker.protocol.messages import ApiKey

if TYPE_CHECKING:
    from aclbroker.broker.memory import MemoryCluster

Handler = Callable[["Services", RequestRights, Any], Any | Coroutine[Any, Any, Any]]
"""Takes the part of a request that the gate allowed; returns the response or a coroutine of it.

If the gate adds nothing to the response, it may also be bytes: the message without its header,
encoded at the version of the request.
"""

_PRODUCER_IDS = 1 << 62
_FEW_TOPICS = 500

_SHORT_ANSWERS = frozenset((ApiKey.API_VERSIONS, ApiKey.FIND_COORDINATOR, ApiKey.METADATA))


class Node(NamedTuple):
    """The id and the advertised address of this broker on one listener."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running broker that the handlers need.

    ``authorizer`` is None when no authorizer is configured: then everything is allowed, and the ACL
    APIs answer SECURITY_DISABLED (KIP-140). ``advertised`` maps the name of a
    listener to this node, and ``settings`` is the configuration that may be shown to clients.
    ``credentials`` is None when there is no store for them. ``cluster`` has the data of a cluster
    in memory, None where there is none, and ``peers`` maps the name of a listener to all nodes of
    the cluster. ``handlers`` answer each API key; one that is not there is not answered. ``faults``
    come before all else, if there are some to be asked for. ``reserved_topics`` are those in which
    ACLs are kept: no client sees or reaches them. ``waits`` is what clients are told while the ACLs
    are not there: then nothing is answered but ApiVersions.
    """

    cluster_id: str
    advertised: Mapping[str, Node]
    authorizer: Authorizer | None
    audit: Audit
    catalog: Catalog
    profile: Profile = Profile.KAFKA
    settings: Mapping[str, str] = field(default_factory=dict)
    credentials: Credentials | None = None
    producer_ids: count[int] = field(default_factory=lambda: count(randbelow(_PRODUCER_IDS)))
    turns: Turns = field(default_factory=Turns)
    handlers: Mapping[int, Handler] = field(default_factory=dict)
    cluster: MemoryCluster | None = None
    peers: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)
    faults: Faults | None = None
    rights_class: type[RequestRights] = RequestRights
    reserved_topics: frozenset[str] = frozenset()
    waits: str = ""
    short_answers: frozenset[int] = field(init=False)
    """The keys whose answers to short requests wait for nothing and are never long."""

    def __post_init__(self) -> None:
        # A fault may wait, which only work that takes turns can do.
        is_ready = self.faults is None and self.catalog.knows_at_once
        is_short = is_ready and len(self.catalog.topics) <= _FEW_TOPICS
        object.__setattr__(self, "short_answers", _SHORT_ANSWERS if is_short else frozenset())

    @property
    def topics(self) -> TopicResolver:
        """The resolver of topic ids, which also knows which topics exist."""
        return self.catalog

    def rights(self, row: Row, context: RequestContext) -> RequestRights:
        """Return the rights of the session that sent a request; the audit records each decision."""
        return self.rights_class(
            row, context, self.authorizer, self.audit, self.profile, self.reserved_topics
        )

    def node(self, rights: RequestRights) -> Node:
        """Return this node as it is advertised on the listener of the session."""
        return self.advertised[rights.context.session.listener]

    def nodes(self, rights: RequestRights) -> tuple[Node, ...]:
        """Return all nodes of the cluster as they are advertised on the listener of the session."""
        listener = rights.context.session.listener
        return self.peers.get(listener) or (self.advertised[listener],)

    def disconnected(self, session: Session | None) -> None:
        """Note that the connection of a session is gone, if there was a session."""
        if session is not None and self.cluster is not None:
            self.cluster.disconnected(session.connection)

    @property
    def memory(self) -> MemoryCluster:
        """The cluster in memory, which must be there: its handlers ask for it."""
        if self.cluster is None:
            raise RuntimeError("this broker keeps no data")
        return self.cluster


def cluster_operations(rights: RequestRights) -> int:
    """Return the session's operations on the cluster (KIP-430); 0 without DESCRIBE on it."""
    if not rights.holds("show cluster"):
        return 0
    return rights.operations(ResourceType.CLUSTER, CLUSTER_NAME)
