"""The resource patterns of one resource type, and which of them match a resource (KIP-290).

A resource's patterns are found by its name, by ``*``, and by one lookup for each distinct length
of PREFIXED names that is not longer than its own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from aclbroker.acl.bindings import (
    ANY_PATTERN,
    LITERAL,
    MATCH,
    PREFIXED,
    WILDCARD,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import pairs
from aclbroker.acl.permissions import Permissions
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

    def __init__(
        self,
        resource_type: ResourceType,
        pattern_type: PatternType,
        name: str,
        permissions: Permissions,
    ) -> None:
        self.resource_type = resource_type
        self.pattern_type = pattern_type
        self.name = name
        self.memo: Any = None
        # Most patterns have the ACLs of one principal and host, for whom no set is needed.
        self._permissions: Permissions | set[Permissions] = permissions

    @property
    def permissions(self) -> Collection[Permissions]:
        """Those of each principal and host with ACLs of this pattern; not to be changed."""
        found = self._permissions
        return found if isinstance(found, set) else (found,)

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
        if isinstance(found, set):
            found.add(permissions)
        else:
            self._permissions = {found, permissions}

    def discard(self, permissions: Permissions) -> bool:
        """Note that a principal and host have none any more; return whether others have."""
        found = self._permissions
        if not isinstance(found, set):
            return False
        found.discard(permissions)
        return bool(found)


Named = dict[str, Permissions | Pattern]
"""Patterns by name: those of one principal and host, that nobody has asked for yet, by these."""


class Patterns:
    """The patterns of one resource type that have ACLs."""

    __slots__ = ("_counts", "_prefixed", "lengths", "literal", "resource_type")

    def __init__(self, resource_type: ResourceType) -> None:
        self.resource_type = resource_type
        self.literal: Named = {}
        """All LITERAL patterns; for `AclIndex` alone to add to."""

        self._prefixed: Named = {}
        self._counts: dict[int, int] = {}  # how many prefixed names have that length
        self.lengths: list[int] = []
        """The distinct lengths of the PREFIXED names, ascending; the list stays the same one."""

    def of_type(self, pattern_type: PatternType) -> Named:
        """Return all LITERAL or all PREFIXED patterns; not to be changed."""
        return self.literal if pattern_type == LITERAL else self._prefixed

    def get(self, pattern_type: PatternType, name: str) -> Pattern:
        """Return a pattern. Raises KeyError if it has no ACLs."""
        named = self.of_type(pattern_type)
        found = named[name]
        if isinstance(found, Permissions):
            found = named[name] = Pattern(self.resource_type, pattern_type, name, found)
        return found

    def add_new(self, pattern_type: PatternType, name: str, permissions: Permissions) -> None:
        """Add a pattern that is new, with the ACLs of one principal and host."""
        if pattern_type == LITERAL:
            self.literal[name] = permissions
        else:
            self._prefixed[name] = permissions
            self._count(len(name))

    def _count(self, length: int) -> None:
        if length not in self._counts:
            insort(self.lengths, length)
        self._counts[length] = self._counts.get(length, 0) + 1

    def discard(self, pattern_type: PatternType, name: str) -> None:
        """Forget a pattern that has no ACLs any more."""
        del self.of_type(pattern_type)[name]
        if pattern_type == PREFIXED:
            self._count_less(len(name))

    def _count_less(self, length: int) -> None:
        self._counts[length] -= 1
        if not self._counts[length]:
            del self._counts[length]
            del self.lengths[bisect_left(self.lengths, length)]

    def withhold(self, pattern_type: PatternType, name: str) -> None:
        """Let a pattern be found by its length that is denied to all and in no list."""
        if pattern_type == PREFIXED:
            self._count(len(name))

    def release(self, pattern_type: PatternType, name: str) -> None:
        """Take `withhold` back."""
        if pattern_type == PREFIXED:
            self._count_less(len(name))

    def match(self, name: str) -> bool:
        """Tell whether any pattern matches a resource of that name."""
        return next(self.selected(MATCH, name), None) is not None

    def selected(self, pattern_type: PatternType, name: str | None) -> Iterator[Pattern]:
        """Return the patterns that a filter's pattern type and name select, most specific first.

        They may change while the caller goes through them; those that are new may be left out.
        """
        if name is None:
            wanted: Iterable[tuple[PatternType, str]] = (
                (kind, each)
                for kind in (LITERAL, PREFIXED)
                if pattern_type in (ANY_PATTERN, MATCH, kind)
                for each in in_turns(list(self.of_type(kind)), _AT_ONCE)
            )
        else:
            wanted = self.candidates(pattern_type, name)
        return (self.get(kind, each) for kind, each in wanted if each in self.of_type(kind))

    def candidates(self, pattern_type: PatternType, name: str) -> Iterable[tuple[PatternType, str]]:
        """Return what `selected` looks for, each once, whether it is there or not."""
        literal, prefixed = (LITERAL, name), (PREFIXED, name)
        if pattern_type == MATCH:
            sizes = self.lengths[: bisect_left(self.lengths, len(name) + 1)]
            prefixes = [(PREFIXED, name[:size]) for size in reversed(sizes)]
            wildcard = [(LITERAL, WILDCARD)] if name != WILDCARD else []
            return [literal, *prefixes, *wildcard]
        if pattern_type == ANY_PATTERN:
            return [literal, prefixed]
        return [each for each in (literal, prefixed) if each[0] == pattern_type]
