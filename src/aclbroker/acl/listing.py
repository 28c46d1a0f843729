"""Which ACLs a filter selects: one by one, or by resource pattern, as DescribeAcls answers.

A filter with a principal goes through that principal's permissions, any other filter through the
patterns. So a list costs what it returns, with one exception: a filter by host, operation or
permission that names neither principal nor resource looks at every ACL of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import bits, pairs
from aclbroker.acl.patterns import Entry, Pattern, Patterns
from aclbroker.acl.permissions import Permissions, Principals
from aclbroker.turns import in_turns


class PatternAcls(Protocol):
    """A resource pattern with ACLs of it; ``memo`` is `acl.patterns.Pattern`'s."""

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


class AclListing:
    """The ACLs that a filter selects.

    Where they change while the caller goes through them (`in_turns`), what was added or removed
    meanwhile may be among them or not: ``is_current`` tells whether that is so.

    ``patterns`` has them by resource pattern, each pattern once. Where the filter selects all ACLs
    of a pattern, that is mostly the index's own, with its memo.
    """

    __slots__ = ("is_current", "patterns")

    def __init__(self, patterns: Iterator[PatternAcls], is_current: Callable[[], bool]) -> None:
        self.patterns = patterns
        self.is_current = is_current

    def __iter__(self) -> Iterator[AclBinding]:
        for acls in self.patterns:
            resource_type, pattern_type, name = acls.resource_type, acls.pattern_type, acls.name
            for entry in in_turns(acls.entries):
                yield AclBinding(resource_type, name, pattern_type, *entry)


def by_pattern(bindings: Iterable[AclBinding]) -> list[SomeAcls]:
    """Return bindings, which may come in any order, by resource pattern."""
    found: dict[tuple[ResourceType, PatternType, str], SomeAcls] = {}
    for binding in bindings:
        key = binding.resource_type, binding.pattern_type, binding.resource_name
        if key not in found:
            found[key] = SomeAcls(*key)
        found[key].entries.append(binding[3:])
    return list(found.values())


class SomeAcls:
    """Those ACLs of a resource pattern that are asked for."""

    __slots__ = ("entries", "memo", "name", "pattern_type", "resource_type")

    def __init__(self, resource_type: ResourceType, pattern_type: PatternType, name: str) -> None:
        self.resource_type = resource_type
        self.pattern_type = pattern_type
        self.name = name
        self.entries: list[Entry] = []
        self.memo: Any = None

    def add(self, permissions: Permissions, mask: int) -> None:
        """Add those ACLs of a principal and host whose bits are in ``mask``."""
        found = permissions.of_type(self.pattern_type).get(self.name, 0) & mask
        self.entries += [(permissions.principal, permissions.host, *pair) for pair in pairs(found)]


_EVERYTHING: Final = bits(AclOperation.ANY, AclPermission.ANY)


def listed(
    patterns: Patterns, principals: Principals, acl_filter: AclFilter
) -> Iterator[PatternAcls]:
    """Return the patterns of one resource type with the ACLs that a filter selects, each once.

    Where it selects all ACLs of a pattern, that is mostly the one of ``patterns``, with its memo.
    """
    pattern_type, name = acl_filter.pattern_type, acl_filter.resource_name
    mask = bits(acl_filter.operation, acl_filter.permission)
    if acl_filter.principal is not None:
        wanted = _permissions(principals, acl_filter.principal, acl_filter.host)
        return _of_permissions(patterns, wanted, acl_filter, mask)
    if acl_filter.host is None and mask == _EVERYTHING:
        return patterns.selected(pattern_type, name)
    return _of_patterns(patterns, acl_filter, mask)


def _permissions(principals: Principals, principal: str, host: str | None) -> Iterable[Permissions]:
    if host is None:
        return in_turns(list(principals.of_principal(principal)))
    permissions = principals.get(principal, host)
    return () if permissions is None else (permissions,)


def _of_patterns(patterns: Patterns, acl_filter: AclFilter, mask: int) -> Iterator[PatternAcls]:
    for pattern in patterns.selected(acl_filter.pattern_type, acl_filter.resource_name):
        some = _nothing_of(pattern)
        for permissions in in_turns(list(pattern.permissions)):
            if acl_filter.host in (None, permissions.host):
                some.add(permissions, mask)
        if some.entries:
            yield some


def _of_permissions(
    patterns: Patterns, wanted: Iterable[Permissions], acl_filter: AclFilter, mask: int
) -> Iterator[PatternAcls]:
    found: dict[Pattern, SomeAcls] = {}
    for permissions in wanted:
        for pattern in _candidates(patterns, permissions, acl_filter):
            if mask == _EVERYTHING and len(pattern.permissions) == 1:
                yield pattern
                continue
            some = found.get(pattern)
            if some is None:
                some = found[pattern] = _nothing_of(pattern)
            some.add(permissions, mask)
    yield from (some for some in in_turns(found.values()) if some.entries)


def _nothing_of(pattern: Pattern) -> SomeAcls:
    return SomeAcls(pattern.resource_type, pattern.pattern_type, pattern.name)


def _candidates(
    patterns: Patterns, permissions: Permissions, acl_filter: AclFilter
) -> Iterator[Pattern]:
    """Return the patterns of a principal and host that a filter's type and name select."""
    pattern_type, name = acl_filter.pattern_type, acl_filter.resource_name
    if name is not None:
        for pattern in patterns.selected(pattern_type, name):
            if pattern.name in permissions.of_type(pattern.pattern_type):
                yield pattern
        return
    for kind in (PatternType.LITERAL, PatternType.PREFIXED):
        if pattern_type in (PatternType.ANY, PatternType.MATCH, kind):
            for each in in_turns(list(permissions.of_type(kind))):
                # The last ACL of the pattern may have been removed since.
                if each in patterns.of_type(kind):
                    yield patterns.get(kind, each)
