"""Why a request was just denied, for the audit log: in bounded time, and in `reasons`' words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aclbroker.acl.authorizer import RuleKind, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.reasons import AclChange, NearMiss, smallest_acl, to_be_allowed


class WhyDenied(NamedTuple):
    """What nearly allowed a request that was denied by default, and what would allow it.

    ``nearest`` is None if an ACL denied it. ``change`` is None where it is not told.
    """

    nearest: Sequence[NearMiss] | None = None
    change: AclChange | None = None


def why_denied(
    data: StandardAuthorizerData,
    session: Session,
    kind: RuleKind,
    operation: AclOperation,
    resource: tuple[ResourceType, str | None],
) -> WhyDenied:
    """Return why something was denied by a rule; a name of None is any resource of the type.

    The work is bounded, whatever ACLs there are: see `acl.near_misses`.
    """
    if kind is RuleKind.RESERVED_TOPIC:
        # No ACL would change it.
        return WhyDenied()
    resource_type, name = resource
    nearest = None
    if kind is RuleKind.DEFAULT_DENY:
        nearest = data.index.near_misses(session.peer, operation, resource_type, name)
    if not name:
        # What would allow the empty name allows every other, too.
        return WhyDenied(nearest)
    own = smallest_acl(session.principals[0], session.address, operation, (resource_type, name))
    if nearest is not None:
        return WhyDenied(nearest, AclChange((own,)))
    found = data.index.decisive(session.peer, operation, resource_type, name)
    if found is None or not found.denials:
        return WhyDenied()
    # Without its DENYs it may be a resource without any ACL, which that setting opens.
    if data.allow_everyone_if_no_acl_found and not found.is_granted:
        return WhyDenied()
    return WhyDenied(None, to_be_allowed(own, found.denials, is_granted=found.is_granted))
