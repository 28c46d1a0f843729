"""Which rights differ between two sets of rules: every one, as regions of requests.

Everyone whom no ACL names is compared once. A principal is compared on its own patterns, and only
where it differs from everyone else is it told apart. So the cost follows the number of ACLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from aclbroker.broker.acl.bindings import ResourceType
from aclbroker.broker.reasoning.by_host import Rights, by_host, combined
from aclbroker.broker.reasoning.hosts import HostCut
from aclbroker.broker.reasoning.names import Component, Key, NameRegion, components
from aclbroker.broker.reasoning.regions import Principals, Region
from aclbroker.broker.reasoning.rules import (
    EFFECTIVE,
    TYPES,
    Rules,
    Table,
    named_principals,
    tables,
)
from aclbroker.broker.reasoning.trees import Everyone, Totals, Tree, patterns_of, tree_of

_LOST_SHIFT: Final = 16
_GAINED_BITS: Final = 0xFFFF


class Difference(NamedTuple):
    """Rights that one set of rules gives and the other does not."""

    is_gained: bool
    """Whether the new rules give them; else they are lost."""

    region: Region


class Compared(NamedTuple):
    """All differences of two sets of rules, and the principals that are not just anybody there."""

    differences: list[Difference]
    named: frozenset[str]


class Values(dict[Totals, Rights]):
    """For totals, what differs at each host: the operations gained, and those lost, shifted.

    0 if nothing differs. With one side it is what that side allows.
    """

    def __init__(self, resource_type: ResourceType) -> None:
        super().__init__()
        self._effective = EFFECTIVE[resource_type]

    def __missing__(self, totals: Totals) -> Rights:
        found = self[totals] = combined(totals, self._compared)
        return found

    def _compared(self, *bits: int) -> int:
        if len(bits) == 1:
            return self._effective[bits[0]]
        old, new = self._effective[bits[0]], self._effective[bits[1]]
        return new & ~old | (old & ~new) << _LOST_SHIFT


def compare(old: Rules, new: Rules) -> Compared:
    """Return every right that is gained or lost from the old rules to the new ones.

    No request is of two regions. What broker users may do on the listener of the brokers is not
    compared.
    """
    cut = HostCut(old.hosts() | new.hosts(), old.cidr or new.cidr)
    sides = tables(old, cut), tables(new, cut)
    found: list[Difference] = []
    named: set[str] = set()
    for resource_type in TYPES:
        both = sides[0][resource_type], sides[1][resource_type]
        named.update(named_principals(both))
        comparison = Comparison(both)
        found += _differences(comparison.regions(), cut, resource_type)
    return Compared(found, frozenset(named))


class Group(NamedTuple):
    """Names on which the same is so for some principals; ``value`` says what, at which hosts."""

    principals: Principals
    names: NameRegion
    value: Rights


def _differences(
    groups: Iterable[Group], cut: HostCut, resource_type: ResourceType
) -> Iterator[Difference]:
    for principals, names, value in groups:
        for mask, number in by_host(value, cut.everywhere):
            gained, lost = number & _GAINED_BITS, number >> _LOST_SHIFT
            if gained:
                yield Difference(True, Region(principals, cut, mask, gained, names))
            if lost:
                yield Difference(False, Region(principals, cut, mask, lost, names))


class Comparison:
    """The regions of one resource type in which one value is not 0, over one or two tables.

    With two, the value tells what is gained and lost; with one, what is allowed.
    """

    def __init__(self, sides: Sequence[Table]) -> None:
        self._sides = sides
        self._type = sides[0].resource_type
        self._values = Values(self._type)
        self.everyone = Everyone(sides)
        # What does not show for everyone else may show for who has other ACLs beside it.
        self._is_everyone_equal = len(sides) == 2 and all(
            old == new for old, new in self.everyone.totals
        )
        self._of_all = [self._values[totals] for totals in self.everyone.totals]
        self._components, self._component_of = components(
            self.everyone.keys, self.everyone.parents, self._of_all
        )
        self._inner: list[list[Key]] = [each.excepted for each in self._components]
        self._others: list[list[str]] = [[] for _ in self._components]

    def regions(self) -> Iterator[Group]:
        """Yield every region once: those of named principals, then those of everyone else."""
        together: dict[tuple[Key, tuple[Key, ...], Rights], list[str]] = {}
        for principal in named_principals(self._sides):
            for component in self.of_principal(principal):
                place = component.key, tuple(component.excepted), component.value
                together.setdefault(place, []).append(principal)
        for (key, excepted, value), principals in together.items():
            names = NameRegion(self._type, key, excepted)
            yield Group(Principals(tuple(principals)), names, value)
        for component, others in zip(self._components, self._others, strict=True):
            if component.value:
                names = NameRegion(self._type, component.key, tuple(component.excepted))
                yield Group(Principals(tuple(others), is_everyone=True), names, component.value)

    def of_principal(self, principal: str) -> list[Component]:
        """Return where the value of a principal is not 0, but not where it is as everyone's.

        Where it is not as everyone's on some part of one of everyone's regions, all of what the
        principal has in that region is told.
        """
        owns = [side.own(principal) for side in self._sides]
        supers = [side.rules.is_super_user(principal) for side in self._sides]
        is_equal = len(owns) == 2 and supers[0] == supers[1] and owns[0] == owns[1]
        if is_equal and self._is_everyone_equal:
            return []
        patterns = patterns_of(self.everyone, owns)
        if any(supers):
            patterns.update(self.everyone.keys)
        tree = tree_of(self.everyone, owns, supers, patterns)
        values = [self._values[totals] for totals in tree.totals]
        touched = self._touched(tree, values)
        if touched:
            for number in touched:
                self._others[number].append(principal)
                patterns.add(self._components[number].key)
                patterns.update(self._inner[number])
            tree = tree_of(self.everyone, owns, supers, patterns)
            values = [self._values[totals] for totals in tree.totals]
        told = [
            value if not self._of_all[outer] or self._component_of[outer] in touched else 0
            for value, outer in zip(values, tree.outer, strict=True)
        ]
        return [each for each in components(tree.keys, tree.parents, told)[0] if each.value]

    def _touched(self, tree: Tree, values: Sequence[Rights]) -> set[int]:
        """Return everyone's regions in which somebody has not the same as everyone."""
        return {
            self._component_of[outer]
            for value, outer in zip(values, tree.outer, strict=True)
            if self._of_all[outer] and value != self._of_all[outer]
        }

    def full(self, principal: str) -> list[Component]:
        """Return all that a principal has, region by region."""
        owns = [side.own(principal) for side in self._sides]
        supers = [side.rules.is_super_user(principal) for side in self._sides]
        patterns = patterns_of(self.everyone, owns).union(self.everyone.keys)
        tree = tree_of(self.everyone, owns, supers, patterns)
        values = [self._values[totals] for totals in tree.totals]
        return [each for each in components(tree.keys, tree.parents, values)[0] if each.value]
