"""What the handlers of a broker share: who decides, who records it, and what this node is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from broker.acl.authorizer import Action, Authorizer, RequestContext
from broker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from broker.acl.operations import bit_field, supported_operations
from broker.audit import Audit

Handler = Callable[["Services", RequestContext, Any], Any | Awaitable[Any]]
"""Answers a decoded request: returns the response, or an awaitable of it."""


class Node(NamedTuple):
    """This broker, as clients of one listener reach it."""

    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running broker that requests are answered from.

    ``authorizer`` is None when no authorizer is configured: then everything is allowed, and the ACL
    APIs answer SECURITY_DISABLED (KIP-140). ``advertised`` maps a listener's name to this node.
    """

    cluster_id: str
    advertised: Mapping[str, Node]
    authorizer: Authorizer | None
    audit: Audit

    def allows(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        """Decide one action and record the decision."""
        if self.authorizer is None:
            return True
        action = Action(operation, resource_type, resource_name)
        [decision] = self.authorizer.authorize(context, [action])
        if self.audit.wants(decision.allowed, action):
            self.audit.record(context, action, decision)
        return decision.allowed

    def allows_cluster(self, context: RequestContext, operation: AclOperation) -> bool:
        """Decide an action on the cluster and record the decision."""
        return self.allows(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def authorized_operations(
        self, context: RequestContext, resource_type: ResourceType, resource_name: str
    ) -> int:
        """Return what the session may do, as a bit field of operation codes (KIP-430)."""
        if self.authorizer is None:
            return bit_field(supported_operations(resource_type))
        return self.authorizer.authorized_operations(context, resource_type, resource_name)

    def cluster_operations(self, context: RequestContext) -> int:
        """Return the cluster's authorized operations; none without the right to describe it."""
        if not self.allows_cluster(context, AclOperation.DESCRIBE):
            return 0
        return self.authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME)
