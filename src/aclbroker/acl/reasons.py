"""Why something is denied, and what would allow it, in words.

`acl.reasoning.explain` says it of any request, and the audit log of what was denied just now:
both say the same, in these words.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from aclbroker.acl.acl_text import acl_text
from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import GRANTED_BY

OF_ANY_TOPIC: Final = "WRITE on any one topic, or IDEMPOTENT_WRITE on the cluster"
"""What an idempotent producer needs that was denied WRITE on any topic (KIP-679)."""


class NearMiss(NamedTuple):
    """An ACL that nearly allows what is denied, and why it does not."""

    acl: AclBinding
    why: str


class AclChange(NamedTuple):
    """ACLs to add and to remove."""

    add: tuple[AclBinding, ...] = ()
    remove: tuple[AclBinding, ...] = ()

    def __str__(self) -> str:
        parts = [f"remove {acl_text(acl)}" for acl in sorted(self.remove)]
        return "; ".join([*parts, *(f"add {acl_text(acl)}" for acl in sorted(self.add))])


def other_host(acl: AclBinding) -> str:
    """Return the words for an ACL of another host than the client's."""
    return f"it is for host {acl.host}"


def other_operation(acl: AclBinding) -> str:
    """Return the words for an ALLOW of an operation that does not imply the one asked for."""
    return f"it allows {acl.operation.name}"


def why_not(acl: AclBinding, operation: AclOperation, *, is_own_host: bool) -> str:
    """Return why an ACL does not allow an operation on a resource that its pattern matches.

    ``is_own_host`` tells that it holds for the client's host.
    """
    if acl.permission is AclPermission.DENY:
        return f"it denies {acl.operation.name}"
    reasons = [] if is_own_host else [other_host(acl)]
    if not GRANTED_BY[operation] >> acl.operation & 1:
        reasons.append(other_operation(acl))
    return " and ".join(reasons) or "a DENY takes it back"


def smallest_acl(
    principal: str,
    host: str,
    operation: AclOperation,
    resource: tuple[ResourceType, str],
    permission: AclPermission = AclPermission.ALLOW,
) -> AclBinding:
    """Return the ACL of one operation on one resource, for one principal from one host or ``*``.

    For the name ``*`` it is PREFIXED, as the LITERAL ``*`` is every name. There is none of that
    kind for the empty name, for which only the ACLs of every name hold: then it is that LITERAL.
    """
    resource_type, name = resource
    pattern_type = PatternType.PREFIXED if name == WILDCARD else PatternType.LITERAL
    return AclBinding(
        resource_type, name or WILDCARD, pattern_type, principal, host, operation, permission
    )


def to_be_allowed(
    own: AclBinding, denials: Collection[AclBinding], *, is_granted: bool
) -> AclChange:
    """Return the smallest change that allows what is denied.

    ``own`` is its `smallest_acl`, ``denials`` are all DENYs of it, ``is_granted`` tells that an
    ALLOW is there. Where nothing else would keep a resource closed that is open without any ACL,
    less may do.
    """
    return AclChange(() if is_granted else (own,), tuple(denials))
