"""Whether who applies a policy could not change ACLs any more afterwards.

A cluster does not tell a client who it is, nor who its super users are. So the principal is taken
from the settings of the client, or told; and what cannot be known is refused as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aclbroker.broker.acl.authorizer import Action, RuleKind, Session
from aclbroker.broker.acl.bindings import CLUSTER_NAME, AclBinding, AclOperation, ResourceType
from aclbroker.broker.acl.decisions import StandardAuthorizerData
from aclbroker.broker.acl.index import AclIndex

_NEEDED: Final = (AclOperation.ALTER, AclOperation.DESCRIBE)
"""What it takes on the cluster to change ACLs, and to see them."""


def lockout(
    principal: str, host: str, before: Iterable[AclBinding], after: Iterable[AclBinding]
) -> str | None:
    """Tell why a principal, at its own address, may not change ACLs any more; None if it may.

    Who may do so though no ACL says it is a super user, or the cluster allows what no ACL is about.
    A super user stays one; but the other loses the right with the first ACL on the cluster, so that
    is told as well.
    """
    session = Session((principal,), host, "")
    old, new = (StandardAuthorizerData(AclIndex(acls, cidr=True)) for acls in (before, after))
    for operation in _NEEDED:
        action = Action(operation, ResourceType.CLUSTER, CLUSTER_NAME)
        decision = new.decide(session, action)
        if decision:
            continue
        if old.decide(session, action):
            return f"{principal} may {operation.name} the cluster now and may not afterwards"
        if decision.kind is not RuleKind.DEFAULT_DENY:
            return f"an ACL denies {principal} {operation.name} on the cluster"
        if not _about_cluster(old) and _about_cluster(new):
            return (
                f"no ACL is about the cluster now, and the policy's do not allow {principal} "
                f"{operation.name} on it; unless that is a super user, it cannot change ACLs then"
            )
    return None


def _about_cluster(data: StandardAuthorizerData) -> bool:
    return data.index.has_match(ResourceType.CLUSTER, CLUSTER_NAME)
