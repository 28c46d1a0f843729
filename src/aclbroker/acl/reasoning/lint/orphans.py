"""ACLs of topics and groups that are not there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasoning.lint.findings import Finding, Severity, removing


class Live(NamedTuple):
    """The names of the topics and of the groups that there are; None if that is not known."""

    topics: Collection[str] | None = None
    groups: Collection[str] | None = None


def orphaned(acls: Iterable[AclBinding], live: Live) -> Iterator[Finding]:
    """Yield a finding for each ACL whose pattern matches no name.

    An ACL of CREATE may be there before its topic. Groups come and go with their consumers, so
    those are but noted.
    """
    names = {
        ResourceType.TOPIC: None if live.topics is None else sorted(set(live.topics)),
        ResourceType.GROUP: None if live.groups is None else sorted(set(live.groups)),
    }
    for acl in acls:
        known = names.get(acl.resource_type)
        if known is None or acl.operation == AclOperation.CREATE or _has_any(acl, known):
            continue
        kind = acl.resource_type.name
        severity = Severity.WARNING if acl.resource_type is ResourceType.TOPIC else Severity.NOTE
        which = (
            "whose name begins so" if acl.pattern_type == PatternType.PREFIXED else "of its name"
        )
        proof = f"There is no {kind} {which}; one that is made later would have it."
        yield removing("orphaned", severity, acl, proof)


def _has_any(acl: AclBinding, names: Sequence[str]) -> bool:
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL and name == WILDCARD:
        return True
    at = bisect_left(names, name)
    if at == len(names):
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return names[at].startswith(name)
    return names[at] == name
