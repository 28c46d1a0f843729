"""Find the ALLOWs that quarantined lines may have used, so that no proposal removes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.operations import GRANTED_BY
from aclbroker.pipeline.usage.doubt import Doubt


def doubted(acls: Sequence[AclBinding], doubts: Iterable[Doubt]) -> set[int]:
    """Return the positions of the ALLOWs that may have allowed one of the doubtful requests.

    Hosts are ignored, because a doubtful request may have come from any host.
    """
    by_principal: dict[str, list[int]] = {}
    for position, acl in enumerate(acls):
        if acl.permission is AclPermission.ALLOW:
            by_principal.setdefault(acl.principal, []).append(position)
    found: set[int] = set()
    for doubt in set(doubts):
        for principal in _principals(doubt, by_principal):
            found.update(at for at in by_principal[principal] if _may_allow(acls[at], doubt))
    return found


def _principals(doubt: Doubt, known: Iterable[str]) -> Iterable[str]:
    if doubt.principal is None:
        return known
    if doubt.is_longer:
        begin = doubt.principal
        return [each for each in known if each.startswith(begin) or each == WILDCARD_PRINCIPAL]
    named = {doubt.principal, WILDCARD_PRINCIPAL}
    return named.intersection(known)


def _may_allow(acl: AclBinding, doubt: Doubt) -> bool:
    if doubt.operation is not None:
        granted_by = GRANTED_BY[AclOperation[doubt.operation]]
        if not granted_by >> acl.operation & 1:
            return False
    kind = doubt.resource_type
    if kind is not None and acl.resource_type is not ResourceType[kind]:
        return False
    return doubt.resource_name is None or _may_match(acl, doubt, doubt.resource_name)


def _may_match(acl: AclBinding, doubt: Doubt, name: str) -> bool:
    pattern = acl.resource_name
    goes_on = doubt.has_longer_name and pattern.startswith(name)
    if acl.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern) or goes_on
    return pattern in (WILDCARD, name) or goes_on
