"""What a set of grants needs besides, so that it allows nothing that the current rules deny.

These are the DENY ACLs that hold for something granted, and, where resources without ACLs are open
to everyone, an ACL on each resource that the current rules close.
"""

from __future__ import annotations

from collections.abc import Iterable

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
)
from aclbroker.acl.operations import supported_operations
from aclbroker.acl.reasoning.lint.scopes import Pattern, PatternsAround, pattern_of_acl
from aclbroker.pipeline.acls.ruleset import Ruleset


def safeguards(allows: Iterable[AclBinding], rules: Ruleset) -> list[AclBinding]:
    """Return what keeps ALLOW ACLs from allowing what ``rules`` deny: all DENYs, and `closings`.

    With them nothing is allowed that is not allowed now, where each ALLOW lies within those of
    ``rules``; a PREFIXED one beyond them may allow more.
    """
    denies = [acl for acl in rules.acls if acl.permission is AclPermission.DENY]
    return [*denies, *closings([*allows, *denies], rules)]


def closings(acls: Iterable[AclBinding], rules: Ruleset) -> list[AclBinding]:
    """Return the ACLs that keep closed what the current rules close, and ``acls`` would not.

    Only where ``allow_everyone_if_no_acl_found`` holds. A super user is allowed everything anyway,
    so an ACL for one closes a resource and grants nothing. Without super users an ACL that is there
    already is kept, if possible one that denies, and none that allows everything to everyone.
    """
    if not rules.allow_everyone_if_no_acl_found:
        return []
    taken = set(_by_pattern(acls))
    closing = _by_pattern(sorted(rules.acls, key=_openness, reverse=True))
    around = PatternsAround({*taken, *closing})
    super_user = min(rules.super_users - {WILDCARD_PRINCIPAL}, default=None)
    return [
        acl if super_user is None else _closing(acl, super_user)
        for pattern, acl in closing.items()
        # The widest around it closes it, whether that is taken or is itself of what is kept.
        if pattern not in taken
        and around(pattern)[0] == pattern
        and not (super_user is None and _allows_everything(acl))
    ]


def _allows_everything(acl: AclBinding) -> bool:
    is_for_all = acl.principal == WILDCARD_PRINCIPAL and acl.host == WILDCARD
    return is_for_all and acl[5:] == (AclOperation.ALL, AclPermission.ALLOW)


def _by_pattern(acls: Iterable[AclBinding]) -> dict[Pattern, AclBinding]:
    """Return the last ACL of each pattern."""
    found = ((pattern_of_acl(acl), acl) for acl in acls)
    return {pattern: acl for pattern, acl in found if pattern is not None}


def _openness(acl: AclBinding) -> tuple[object, ...]:
    """A key that sorts those of one pattern's ACLs first that grant little."""
    return (
        acl.permission is not AclPermission.DENY,
        acl.principal == WILDCARD_PRINCIPAL,
        acl.operation is AclOperation.ALL,
        acl.host == WILDCARD,
        acl,
    )


def _closing(acl: AclBinding, super_user: str) -> AclBinding:
    operations = supported_operations(acl.resource_type)
    operation = AclOperation.DESCRIBE if AclOperation.DESCRIBE in operations else operations[-1]
    return acl._replace(
        principal=super_user, host=WILDCARD, operation=operation, permission=AclPermission.ALLOW
    )
