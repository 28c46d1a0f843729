"""Policies of what was used: the smallest that allows it, and what in a policy was never used."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.testing.decisions import Question

_ANY_TOPIC: Final = (AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)


def smallest_policy(used: Iterable[Question], prefixes: Collection[str] = ()) -> set[AclBinding]:
    """Return the ALLOWs of which each is needed for something that was used.

    No operation stands beside one that implies it. Hosts are left open, since those of a test are
    not those of the real thing. A name that begins with one of the ``prefixes`` stands for all that
    do; all other names are literal.
    """
    found: dict[tuple[str, ResourceType, str, PatternType], set[AclOperation]] = {}
    for asked in used:
        if asked.name is not None:
            name, pattern = _pattern_of(asked.name, asked.resource_type, prefixes)
            key = asked.principal, asked.resource_type, name, pattern
            found.setdefault(key, set()).add(asked.operation)
    writers = {
        principal
        for (principal, kind, _, _), operations in found.items()
        if kind is ResourceType.TOPIC and AclOperation.WRITE in operations
    }
    return {
        AclBinding(kind, name, pattern, principal, WILDCARD, operation, AclPermission.ALLOW)
        for (principal, kind, name, pattern), operations in found.items()
        for operation in operations
        if not _is_implied(operation, operations)
        # Who may write to some topic may be idempotent (KIP-679).
        and not ((operation, kind) == _ANY_TOPIC and principal in writers)
    }


def never_used(acls: Iterable[AclBinding], used: Collection[Question]) -> list[AclBinding]:
    """Return the ALLOWs that by themselves allow nothing of what was used, in their order.

    A right on any one topic, which an idempotent producer needs (KIP-679), is a use of an ACL only
    if it follows from none that is used for a topic's own sake.
    """
    alone = {acl: _Alone(acl) for acl in acls if acl.permission is AclPermission.ALLOW}
    named = [asked for asked in used if asked.name is not None]
    found = {acl for acl, rules in alone.items() if any(map(rules.allows, named))}
    of_any = {
        acl
        for asked in used
        if asked.name is None and not any(alone[acl].allows(asked) for acl in found)
        for acl, rules in alone.items()
        if rules.allows(asked)
    }
    return sorted(alone.keys() - found - of_any)


class _Alone:
    """What one ACL allows where there is no other."""

    def __init__(self, acl: AclBinding) -> None:
        index = AclIndex()
        index.add(acl)
        self._data = StandardAuthorizerData(index)

    def allows(self, asked: Question) -> bool:
        session = Session((asked.principal,), asked.host, "")
        if asked.name is None:
            of_type = asked.operation, asked.resource_type
            return self._data.authorize_by_resource_type(session, *of_type).allowed
        decisions = self._data.decisions(session, asked.operation, asked.resource_type)
        return decisions[asked.name].allowed


def _pattern_of(
    name: str, resource_type: ResourceType, prefixes: Collection[str]
) -> tuple[str, PatternType]:
    if resource_type is not ResourceType.CLUSTER:
        fitting = [each for each in prefixes if name.startswith(each)]
        if fitting:
            return max(fitting, key=len), PatternType.PREFIXED
    return name, PatternType.LITERAL


def _is_implied(operation: AclOperation, others: Collection[AclOperation]) -> bool:
    """Tell whether another of the operations, allowed, allows this one as well."""
    return any(GRANTED_BY[operation] >> other & 1 for other in others if other is not operation)
