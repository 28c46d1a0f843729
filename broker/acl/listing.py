"""Which ACLs a filter selects, resource pattern by resource pattern.

A filter with a principal goes through that principal's grants, any other one through the patterns.
So a list costs what it returns, with one exception: a filter by host, operation or permission that
names neither principal nor resource looks at every ACL of the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

from broker.acl.bindings import AclFilter, AclOperation, AclPermission, PatternType, ResourceType
from broker.acl.grants import Grantees, Grants
from broker.acl.operations import bits, pairs
from broker.acl.patterns import Entry, Patterns


class PatternAcls(Protocol):
    """A resource pattern with ACLs of it; ``memo`` is `broker.acl.patterns.Pattern`'s."""

    memo: Any

    @property
    def resource_type(self) -> ResourceType:
        """The type of the resources."""

    @property
    def pattern_type(self) -> PatternType:
        """LITERAL or PREFIXED."""

    @property
    def name(self) -> str:
        """The pattern's name."""

    @property
    def entries(self) -> list[Entry]:
        """The ACLs: principal, host, operation and permission of each."""


class SomeAcls:
    """Those ACLs of a resource pattern that a filter selects."""

    __slots__ = ("entries", "memo", "name", "pattern_type", "resource_type")

    def __init__(self, resource_type: ResourceType, pattern_type: PatternType, name: str) -> None:
        self.resource_type = resource_type
        self.pattern_type = pattern_type
        self.name = name
        self.entries: list[Entry] = []
        self.memo: Any = None

    def add(self, grants: Grants, mask: int) -> None:
        """Take in those ACLs of the grants whose bits are in ``mask``."""
        found = grants.of_type(self.pattern_type).get(self.name, 0) & mask
        self.entries += [(grants.principal, grants.host, *pair) for pair in pairs(found)]


_EVERYTHING: Final = bits(AclOperation.ANY, AclPermission.ANY)


def listed(patterns: Patterns, grantees: Grantees, acl_filter: AclFilter) -> Iterator[PatternAcls]:
    """Return the patterns of one resource type with the ACLs that a filter selects, each once.

    Patterns of which it selects all ACLs are those of ``patterns`` themselves, with their memo.
    """
    pattern_type, name = acl_filter.pattern_type, acl_filter.resource_name
    mask = bits(acl_filter.operation, acl_filter.permission)
    if acl_filter.principal is not None:
        wanted = _grants(grantees, acl_filter.principal, acl_filter.host)
        selected = _of_grants(patterns, wanted, pattern_type, name, mask)
    elif acl_filter.host is None and mask == _EVERYTHING:
        return patterns.selected(pattern_type, name)
    else:
        selected = _of_patterns(patterns, acl_filter, mask)
    return (some for some in selected if some.entries)


def _grants(grantees: Grantees, principal: str, host: str | None) -> Iterable[Grants]:
    if host is None:
        return grantees.of_principal(principal)
    grants = grantees.get(principal, host)
    return () if grants is None else (grants,)


def _of_patterns(patterns: Patterns, acl_filter: AclFilter, mask: int) -> Iterator[SomeAcls]:
    for pattern in patterns.selected(acl_filter.pattern_type, acl_filter.resource_name):
        some = SomeAcls(pattern.resource_type, pattern.pattern_type, pattern.name)
        for grants in pattern.grants:
            if acl_filter.host in (None, grants.host):
                some.add(grants, mask)
        yield some


def _of_grants(
    patterns: Patterns,
    wanted: Iterable[Grants],
    pattern_type: PatternType,
    name: str | None,
    mask: int,
) -> Iterable[SomeAcls]:
    found: dict[tuple[PatternType, str], SomeAcls] = {}
    for grants in wanted:
        for kind, each in _candidates(patterns, grants, pattern_type, name):
            if each in grants.of_type(kind):
                some = found.get((kind, each))
                if some is None:
                    some = found[kind, each] = SomeAcls(patterns.resource_type, kind, each)
                some.add(grants, mask)
    return found.values()


def _candidates(
    patterns: Patterns, grants: Grants, pattern_type: PatternType, name: str | None
) -> Iterable[tuple[PatternType, str]]:
    if name is not None:
        return patterns.candidates(pattern_type, name)
    return _patterns_of(grants, pattern_type)


def _patterns_of(grants: Grants, pattern_type: PatternType) -> Iterator[tuple[PatternType, str]]:
    for kind in (PatternType.LITERAL, PatternType.PREFIXED):
        if pattern_type in (PatternType.ANY, PatternType.MATCH, kind):
            for name in grants.of_type(kind):
                yield kind, name
