"""What all handlers use: the authorizer, this node, and what it has."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from itertools import count
from secrets import randbelow
from typing import Any, NamedTuple

from aclbroker.broker.acl.authorizer import Authorizer, RequestContext
from aclbroker.broker.acl.bindings import CLUSTER_NAME, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.credentials import Credentials
from aclbroker.broker.gate.need import Profile, Row
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import TopicResolver
from aclbroker.broker.observability.audit import Audit

Handler = Callable[["Services", RequestRights, Any], Any | Coroutine[Any, Any, Any]]
"""Answers what the gate let through of a request: with the response, or a coroutine of it.

Where the gate adds nothing to the response it may also be bytes: the message, encoded at the
request's version, without a header.
"""

_PRODUCER_IDS = 1 << 62


class Node(NamedTuple):
    """This broker, as clients of one listener reach it."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running broker that requests are answered from.

    ``authorizer`` is None when no authorizer is configured: then everything is allowed, and the ACL
    APIs answer SECURITY_DISABLED (KIP-140). ``advertised`` maps a listener's name to this node,
    ``settings`` has the broker's configuration as it may be shown. ``credentials`` is None when
    there is no store to keep them in.
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

    @property
    def topics(self) -> TopicResolver:
        """Who knows the names of topic ids, and which topics there are."""
        return self.catalog

    def rights(self, row: Row, context: RequestContext) -> RequestRights:
        """Return the rights of a request's session; each decision is recorded."""
        return RequestRights(row, context, self.authorizer, self.audit, self.profile)

    def node(self, rights: RequestRights) -> Node:
        """Return this node as the session reaches it."""
        return self.advertised[rights.context.session.listener]


def cluster_operations(rights: RequestRights) -> int:
    """Return the cluster's authorized operations; none without the right to describe it."""
    if not rights.holds("show cluster"):
        return 0
    return rights.operations(ResourceType.CLUSTER, CLUSTER_NAME)
