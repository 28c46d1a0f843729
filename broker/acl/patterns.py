"""The resource patterns of one resource type, and which of them match a resource (KIP-290).

A resource's patterns are found by its name, by ``*``, and by one lookup for each distinct length
of PREFIXED names that is not longer than its own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.operations import pairs
from aclbroker.broker.acl.permissions import Permissions
from aclbroker.turns import in_turns

_AT_ONCE: Final = 128
"""How many patterns are listed before the next pause: nearly all are encoded already."""

Entry = tuple[str, str, AclOperation, AclPermission]
"""An ACL of a pattern that is known: principal, host, operation, permission."""


class Pattern:
    """A resource pattern with at least one ACL.

    ``memo`` belongs to whoever lists ACLs: it keeps what was made of this pattern's ACLs, and is
    set to None when one of them changes.
    """

    __slots__ = ("_permissions", "memo", "name", "pattern_type", "resource_type")

    def __init__(self, resource_type: ResourceType, pattern_type: PatternType, name: str) -> None:
        self.resource_type = resource_type
        self.pattern_type = pattern_type
        self.name = name
        self.memo: Any = None
        # Most patterns have the ACLs of one principal and host, for whom no set is needed.
        self._permissions: Permissions | set[Permissions] | None = None

    @property
    def permissions(self) -> Collection[Permissions]:
        """Those of each principal and host with ACLs of this pattern; not to be changed."""
        found = self._permissions
        if isinstance(found, set):
            return found
        return () if found is None else (found,)

    @property
    def entries(self) -> list[Entry]:
        """All ACLs of the pattern."""
        pattern_type, name = self.pattern_type, self.name
        return [
            (permissions.principal, permissions.host, operation, permission)
            for permissions in in_turns(list(self.permissions))
            for operation, permission in pairs(permissions.of_type(pattern_type).get(name, 0))
        ]

    def add(self, permissions: Permissions) -> None:
        """Note that a principal and host now have ACLs of this pattern."""
        found = self._permissions
        if found is None:
            self._permissions = permissions
        elif isinstance(found, set):
            found.add(permissions)
        else:
            self._permissions = {found, permissions}

    def discard(self, permissions: Permissions) -> None:
        """Note that a principal and host have no ACLs of this pattern any more."""
        if isinstance(self._permissions, set):
            self._permissions.discard(permissions)
        else:
            self._permissions = None


class Patterns:
    """The patterns of one resource type that have ACLs."""

    __slots__ = ("_counts", "_literal", "_prefixed", "lengths", "resource_type")

    def __init__(self, resource_type: ResourceType) -> None:
        self.resource_type = resource_type
        self._literal: dict[str, Pattern] = {}
        self._prefixed: dict[str, Pattern] = {}
        self._counts: dict[int, int] = {}  # how many prefixed names have that length
        self.lengths: list[int] = []
        """The distinct lengths of the PREFIXED names, ascending; the list stays the same one."""

    def of_type(self, pattern_type: PatternType) -> dict[str, Pattern]:
        """Return all LITERAL or all PREFIXED patterns by name; not to be changed."""
        return self._literal if pattern_type == PatternType.LITERAL else self._prefixed

    def get_or_add(self, pattern_type: PatternType, name: str) -> Pattern:
        """Return a pattern, without ACLs if it is new."""
        named = self.of_type(pattern_type)
        pattern = named.get(name)
        if pattern is None:
            pattern = named[name] = Pattern(self.resource_type, pattern_type, name)
            if pattern_type == PatternType.PREFIXED:
                self._count(len(name))
        return pattern

    def _count(self, length: int) -> None:
        if length not in self._counts:
            insort(self.lengths, length)
        self._counts[length] = self._counts.get(length, 0) + 1

    def discard(self, pattern: Pattern) -> None:
        """Forget a pattern that has no ACLs any more."""
        del self.of_type(pattern.pattern_type)[pattern.name]
        if pattern.pattern_type == PatternType.PREFIXED:
            length = len(pattern.name)
            self._counts[length] -= 1
            if not self._counts[length]:
                del self._counts[length]
                del self.lengths[bisect_left(self.lengths, length)]

    def match(self, name: str) -> bool:
        """Tell whether any pattern matches a resource of that name."""
        return next(self.selected(PatternType.MATCH, name), None) is not None

    def selected(self, pattern_type: PatternType, name: str | None) -> Iterator[Pattern]:
        """Return the patterns that a filter's pattern type and name select, most specific first.

        They may change while the caller goes through them; those that are new may be left out.
        """
        if name is None:
            return chain.from_iterable(
                in_turns(list(self.of_type(kind).values()), _AT_ONCE)
                for kind in (PatternType.LITERAL, PatternType.PREFIXED)
                if pattern_type in (PatternType.ANY, PatternType.MATCH, kind)
            )
        found = (self.of_type(kind).get(each) for kind, each in self.candidates(pattern_type, name))
        return (pattern for pattern in found if pattern is not None)

    def candidates(self, pattern_type: PatternType, name: str) -> Iterable[tuple[PatternType, str]]:
        """Return what `selected` looks for, each once, whether it is there or not."""
        literal, prefixed = (PatternType.LITERAL, name), (PatternType.PREFIXED, name)
        match pattern_type:
            case PatternType.LITERAL:
                return [literal]
            case PatternType.PREFIXED:
                return [prefixed]
            case PatternType.ANY:
                return [literal, prefixed]
            case PatternType.MATCH:
                sizes = self.lengths[: bisect_left(self.lengths, len(name) + 1)]
                prefixes = [(PatternType.PREFIXED, name[:size]) for size in reversed(sizes)]
                wildcard = [(PatternType.LITERAL, WILDCARD)] if name != WILDCARD else []
                return [literal, *prefixes, *wildcard]
        return []
