"""The rights of one principal, or of everyone else, in each region of the names of one type.

A principal's tree has its own patterns and those of ``User:*`` that lie in them. Elsewhere it has
the rights of everyone else, which are worked out once, for several sets of rules ("sides") together
where they are compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from aclbroker.acl.reasoning.by_host import Rights, joined
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT, Key, parents_of
from aclbroker.acl.reasoning.rules import EVERYTHING, Own, Table

OPEN: Final = EVERYTHING | 1
"""The rights of everyone on a name without any ACL, where that opens it. Bit 0 is of no ACL."""

Totals = tuple[Rights, ...]
"""What all ACLs that match a name say together, for each side."""


class Everyone:
    """The tree of a principal that nothing names: what ``User:*`` has, and what is open.

    Its nodes are the patterns of ``User:*``. If resources without any ACL are open to everyone on
    one of the sides, they are also the outermost patterns of anybody there, which end that.
    """

    def __init__(self, sides: Sequence[Table]) -> None:
        patterns = [set(side.everyone.keys()) for side in sides]
        for side, known in zip(sides, patterns, strict=True):
            if side.is_open:
                known |= side.outermost()
        self.keys: list[Key] = sorted({ROOT}.union(*patterns))
        self.parents = parents_of(self.keys)
        self.by_side = [
            _totals_of_everyone(self.keys, self.parents, side, known)
            for side, known in zip(sides, patterns, strict=True)
        ]
        """For each side, what holds at each key."""

        self.totals: list[Totals] = list(zip(*self.by_side, strict=True))
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        prefixes = [(key, number) for number, key in enumerate(self.keys) if key[1] == PREFIX]
        self._prefixes = [key[0] for key, _ in prefixes]
        self._prefix_numbers = [number for _, number in prefixes]
        places = {number: place for place, number in enumerate(self._prefix_numbers)}
        self._prefix_parents = [places.get(self.parents[n], 0) for n in self._prefix_numbers]

    def innermost(self, key: Key) -> int:
        """Return the number of the innermost key that holds a pattern, which may be itself."""
        number = self._numbers.get(key)
        if number is not None:
            return number
        name = key[0]
        # The last prefix that is not behind the name lies in all those that the name begins with.
        place = bisect_right(self._prefixes, name) - 1
        while not name.startswith(self._prefixes[place]):
            place = self._prefix_parents[place]
        return self._prefix_numbers[place]

    def within(self, key: Key) -> range:
        """Return the numbers of all keys in a pattern."""
        return within(self.keys, key)


def within(keys: Sequence[Key], key: Key) -> range:
    """Return the numbers of the keys, which are in order, that lie in a pattern."""
    name, kind = key
    first = bisect_left(keys, key)
    if kind == LITERAL:
        return range(first, first + (first < len(keys) and keys[first] == key))
    size = len(name)
    if not size:
        return range(len(keys))
    if first == len(keys) or not keys[first][0].startswith(name):
        return range(first, first)
    return range(first, bisect_right(keys, name, first, key=lambda each: each[0][:size]))


def _totals_of_everyone(
    keys: Sequence[Key], parents: Sequence[int], side: Table, patterns: set[Key]
) -> list[Rights]:
    """Return what holds at each key for everyone; ``patterns`` are those of the side."""
    own, is_open = side.everyone, side.is_open
    named = own.prefixes, own.literals
    totals: list[Rights] = []
    for key, parent in zip(keys, parents, strict=True):
        above = totals[parent] if parent >= 0 else None
        if is_open and key not in patterns:
            totals.append(OPEN if above is None else above)
            continue
        rights = named[key[1]].get(key[0], 0)
        totals.append(rights if above is None or above == OPEN else joined(above, rights))
    return totals


class Tree(NamedTuple):
    """The nodes of one principal: keys in order, and by their numbers what is known of each."""

    keys: list[Key]
    parents: list[int]
    rights: list[Rights]
    """What all ACLs that match the names say together."""


def patterns_of(everyone: Everyone, own: Own) -> set[Key]:
    """Return where the rights of a principal that has these ACLs may change.

    These are the patterns of its ACLs, and everyone's inside of them.
    """
    found = set(own.keys())
    outer: str | None = None
    for prefix in sorted(own.prefixes):
        if outer is None or not prefix.startswith(outer):
            outer = prefix
            numbers = everyone.within((prefix, PREFIX))
            found.update(everyone.keys[numbers.start : numbers.stop])
    return found


def tree_of(everyone: Everyone, own: Own, patterns: Iterable[Key]) -> Tree:
    """Return the tree of a principal that has these ACLs; its nodes are the patterns.

    Among them must be those of `patterns_of`. ``everyone`` is of one side.
    """
    keys = sorted(patterns)
    parents = parents_of(keys)
    around = [everyone.by_side[0][everyone.innermost(key)] for key in keys]
    return Tree(keys, parents, _totals(own, keys, parents, around))


def _totals(
    own: Own, keys: Sequence[Key], parents: Sequence[int], around: list[Rights]
) -> list[Rights]:
    """Return what holds at each key of a principal; ``around`` is what everyone has there."""
    if not own.prefixes and not own.literals:
        return around
    named = own.prefixes, own.literals
    chains: list[Rights] = []
    totals: list[Rights] = []
    for (name, kind), parent, known in zip(keys, parents, around, strict=True):
        rights = named[kind].get(name, 0)
        if parent >= 0 and (above := chains[parent]):
            rights = joined(above, rights)
        chains.append(rights)
        # As `joined` does, whose call would take a third of the time.
        if type(rights) is int and type(known) is int:
            totals.append(rights | known)
        else:
            totals.append(joined(rights, known))
    return totals
