"""The rights of one principal, or of everyone else, in each region of the names of one type.

Several sets of rules ("sides") are looked at together, so that they can be compared region by
region. A principal's tree has its own patterns and those of ``User:*`` that lie in them. Elsewhere
it has the rights of everyone else, which are worked out once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from aclbroker.broker.reasoning.by_host import Rights, joined
from aclbroker.broker.reasoning.names import PREFIX, ROOT, Key, parents_of
from aclbroker.broker.reasoning.rules import EVERYTHING, Own, Table

OPEN: Final = EVERYTHING | 1
"""The rights of everyone on a name without any ACL, where that opens it. Bit 0 is of no ACL."""

Totals = tuple[Rights, ...]
"""What all ACLs that match a name say together, for each side."""


class Everyone:
    """The tree of a principal that nothing names: what ``User:*`` has, and what is open.

    Its nodes are the patterns of ``User:*``. If resources without any ACL are open to everyone on
    one of the sides, they are the patterns of anybody.
    """

    def __init__(self, sides: Sequence[Table]) -> None:
        self.sides = sides
        named = {ROOT}
        for side in sides:
            named.update(side.everyone.keys())
        self._of_everyone = sorted(named)
        patterns = [side.patterns() if side.is_open else set() for side in sides]
        if any(side.is_open for side in sides):
            for side in sides:
                named |= side.patterns()
        self.keys: list[Key] = sorted(named)
        self.parents = parents_of(self.keys)
        self.totals: list[Totals] = []
        for key, parent in zip(self.keys, self.parents, strict=True):
            above = self.totals[parent] if parent >= 0 else None
            self.totals.append(
                tuple(
                    _total(side, known, key, above[number] if above else None)
                    for number, (side, known) in enumerate(zip(sides, patterns, strict=True))
                )
            )
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

    def inside(self, prefix: str) -> Iterable[Key]:
        """Return the keys in a prefix at which the rights of everyone else may change."""
        totals = self.totals[self.innermost((prefix, PREFIX))]
        keys = self.keys if OPEN in totals else self._of_everyone
        return _within(keys, prefix)

    def within(self, prefix: str) -> Iterable[Key]:
        """Return all keys in a prefix."""
        return _within(self.keys, prefix)


def _within(keys: Sequence[Key], prefix: str) -> Iterable[Key]:
    first = bisect_left(keys, (prefix, PREFIX))
    if not prefix:
        return keys
    last = first
    while last < len(keys) and keys[last][0].startswith(prefix):
        last += 1
    return keys[first:last]


def _total(side: Table, patterns: set[Key], key: Key, above: Rights | None) -> Rights:
    """Return what holds at a key; ``above`` is what holds around it, None for the root."""
    own = side.everyone
    rights = (own.literals if key[1] else own.prefixes).get(key[0], 0)
    if not side.is_open:
        return rights if above is None else joined(above, rights)
    if key in patterns:
        return rights if above is None or above == OPEN else joined(above, rights)
    return OPEN if above is None else above


class Tree(NamedTuple):
    """The nodes of one principal: keys in order, and by their numbers what is known of each."""

    keys: list[Key]
    parents: list[int]
    totals: list[Totals]
    outer: list[int]
    """The number of `Everyone`'s innermost key that holds it."""


def tree_of(
    everyone: Everyone, owns: Sequence[Own], supers: Sequence[bool], besides: Iterable[Key] = ()
) -> Tree:
    """Return the tree of a principal that has these ACLs of its own on each side.

    Its nodes are the patterns of those, what everyone's are inside of them, and the keys that are
    asked for ``besides``. On a side where it is a super user it may do everything.
    """
    named = set(besides)
    for own in owns:
        named.update(own.keys())
    prefixes = sorted({prefix for own in owns for prefix in own.prefixes})
    outer: str | None = None
    for prefix in prefixes:
        if outer is None or not prefix.startswith(outer):
            outer = prefix
            named.update(everyone.inside(prefix))
        elif any(side.is_open for side in everyone.sides):
            named.update(everyone.inside(prefix))
    keys = sorted(named)
    parents = parents_of(keys)
    chains: list[list[Rights]] = []
    totals: list[Totals] = []
    outers: list[int] = []
    sides = [(own.prefixes, own.literals) for own in owns]
    numbers = range(len(sides))
    for key, parent in zip(keys, parents, strict=True):
        name, kind = key
        chain: list[Rights] = []
        at = everyone.innermost(key)
        known = everyone.totals[at]
        for number in numbers:
            rights = sides[number][kind].get(name, 0)
            if parent >= 0:
                rights = joined(chains[parent][number], rights)
            chain.append(rights)
        chains.append(chain)
        outers.append(at)
        totals.append(
            tuple(
                EVERYTHING if supers[number] else joined(chain[number], known[number])
                for number in numbers
            )
        )
    return Tree(keys, parents, totals, outers)
