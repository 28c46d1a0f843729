"""The resource patterns of one resource type, and which of them match a resource (KIP-290).

A resource's patterns are found by its name, by ``*``, and by one lookup for each distinct length
of PREFIXED names that is not longer than its own.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

from broker.acl.bindings import WILDCARD, PatternType
from broker.acl.identities import Identity

Entries = dict[Identity, int]
"""What the ACLs of one pattern say: to whom, and the bits of `broker.acl.operations`."""

Pattern = tuple[PatternType, str]
"""A pattern's type, LITERAL or PREFIXED, and its name."""


class Patterns:
    """The patterns of one resource type, each with its entries."""

    __slots__ = ("_counts", "_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, Entries] = {}
        self._prefixed: dict[str, Entries] = {}
        self._lengths: list[int] = []  # the distinct ones of the prefixed names, ascending
        self._counts: dict[int, int] = {}  # how many prefixed names have that length

    def of_type(self, pattern_type: PatternType) -> dict[str, Entries]:
        """Return the entries of all LITERAL or all PREFIXED patterns by name; not to be changed."""
        return self._literal if pattern_type == PatternType.LITERAL else self._prefixed

    def get_or_add(self, pattern_type: PatternType, name: str) -> Entries:
        """Return the entries of a pattern, none yet if it is new."""
        named = self.of_type(pattern_type)
        entries = named.get(name)
        if entries is None:
            entries = named[name] = {}
            if pattern_type == PatternType.PREFIXED:
                self._count(len(name))
        return entries

    def _count(self, length: int) -> None:
        if length not in self._counts:
            insort(self._lengths, length)
        self._counts[length] = self._counts.get(length, 0) + 1

    def discard(self, pattern_type: PatternType, name: str) -> None:
        """Forget a pattern that has no entries any more."""
        del self.of_type(pattern_type)[name]
        if pattern_type == PatternType.PREFIXED:
            length = len(name)
            self._counts[length] -= 1
            if not self._counts[length]:
                del self._counts[length]
                del self._lengths[bisect_left(self._lengths, length)]

    def matching(self, name: str) -> list[Entries]:
        """Return the entries of all patterns that match a resource of that name."""
        found = []
        literal, prefixed = self._literal, self._prefixed
        entries = literal.get(name)
        if entries is not None:
            found.append(entries)
        entries = literal.get(WILDCARD)
        if entries is not None:
            found.append(entries)
        size = len(name)
        for length in self._lengths:
            if length > size:
                break
            entries = prefixed.get(name[:length])
            if entries is not None:
                found.append(entries)
        return found

    def selected(self, pattern_type: PatternType, name: str | None) -> Iterator[Pattern]:
        """Return the patterns that a filter's pattern type and name select, most specific first."""
        if name is None:
            for kind in (PatternType.LITERAL, PatternType.PREFIXED):
                if pattern_type in (PatternType.ANY, PatternType.MATCH, kind):
                    yield from ((kind, each) for each in self.of_type(kind))
            return
        for pattern in dict.fromkeys(self._candidates(pattern_type, name)):
            if pattern[1] in self.of_type(pattern[0]):
                yield pattern

    def _candidates(self, pattern_type: PatternType, name: str) -> Iterable[Pattern]:
        literal, prefixed = (PatternType.LITERAL, name), (PatternType.PREFIXED, name)
        match pattern_type:
            case PatternType.LITERAL:
                return [literal]
            case PatternType.PREFIXED:
                return [prefixed]
            case PatternType.ANY:
                return [literal, prefixed]
            case PatternType.MATCH:
                prefixes = [(PatternType.PREFIXED, name[:size]) for size in self._lengths[::-1]]
                return [literal, *prefixes, (PatternType.LITERAL, WILDCARD)]
        return []
