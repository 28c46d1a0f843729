"""What would allow something that was denied: the smallest ACL, no DENY any more, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)


class Denied(NamedTuple):
    """One principal, operation and resource that was denied. ``name`` None: none was named."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None


class Standing(NamedTuple):
    """What the current rules decide on it, for sessions of one host and set of principals.

    ``allowed``: whether it is allowed by now. ``allows``, ``denies``: the ACLs that do so.
    """

    allowed: bool
    allows: Sequence[AclBinding] = ()
    denies: Sequence[AclBinding] = ()


class Kind(Enum):
    """Which remedy there is; the values are words for people."""

    ALLOW = "an ACL would allow it"
    DENY = "a DENY ACL blocks it"
    NOW = "allowed by now"
    NEVER = "no resource was named: nobody can be allowed that"
    NONE = "no ACL can be made"
    UNKNOWN = "the current ACLs are not given"


class Remedy(NamedTuple):
    """What would allow something that was denied.

    ``acl``: the smallest ACL, of ALLOW alone. ``denies``: the DENY ACLs that block it, if only from
    some hosts; no ALLOW helps against them. ``note``: what else there is to say.
    """

    kind: Kind
    acl: AclBinding | None = None
    denies: tuple[AclBinding, ...] = ()
    note: str = ""


def remedy(denied: Denied, standings: Sequence[Standing]) -> Remedy:
    """Return what would allow it. Without ``standings`` the current rules are not known."""
    if denied.name is None:
        return Remedy(Kind.NEVER)
    if not standings:
        return Remedy(Kind.UNKNOWN)
    left = [each for each in standings if not each.allowed]
    if not left:
        return Remedy(Kind.NOW)
    denies = tuple(sorted({acl for each in left for acl in each.denies}))
    if all(each.denies for each in left):
        also = all(each.allows for each in left)
        return Remedy(Kind.DENY, None, denies, "" if also else "and no ACL allows it besides")
    return _allowing(denied, denied.name, denies)


def _allowing(denied: Denied, name: str, denies: tuple[AclBinding, ...]) -> Remedy:
    if denied.principal == WILDCARD_PRINCIPAL:
        note = f"an ACL of {WILDCARD_PRINCIPAL} would hold for everyone"
        return Remedy(Kind.NONE, None, denies, note)
    # LITERAL * is every resource, not the one of that name.
    pattern = PatternType.PREFIXED if name == WILDCARD else PatternType.LITERAL
    acl = AclBinding(
        denied.resource_type,
        name,
        pattern,
        denied.principal,
        WILDCARD,
        denied.operation,
        AclPermission.ALLOW,
    )
    reason = invalid_reason(acl)
    if reason is not None:
        return Remedy(Kind.NONE, None, denies, reason)
    return Remedy(Kind.ALLOW, acl, denies, "from some hosts a DENY blocks it" if denies else "")
