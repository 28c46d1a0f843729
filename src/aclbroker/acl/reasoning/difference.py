"""Which rights differ between two sets of rules: every one, as regions of requests.

Everyone whom no ACL names is compared once. A principal is compared on its own patterns, and on
everyone's inside of them together with all whose own ACLs say the same there (`layers`). So the
cost follows the number of ACLs and of the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, starmap
from typing import Final, NamedTuple

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.reasoning.by_host import Rights, by_host, combined, joined
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.acl.reasoning.layers import Layer, Part
from aclbroker.acl.reasoning.names import PREFIX, ROOT, Component, Key, NameRegion
from aclbroker.acl.reasoning.regions import Principals, Region
from aclbroker.acl.reasoning.rules import (
    EFFECTIVE,
    EVERYTHING,
    TYPES,
    Rules,
    Table,
    named_principals,
    tables,
)
from aclbroker.acl.reasoning.trees import Everyone, Totals, within

_LOST_SHIFT: Final = 16
_GAINED_BITS: Final = 0xFFFF
_NONE: Final[Mapping[str, Sequence[Key]]] = {}
_SUPER_USER: Final = -1
"""In place of what ACLs say: every bit, which no ACLs do."""


class Difference(NamedTuple):
    """Rights that one set of rules gives and the other does not."""

    is_gained: bool
    """Whether the new rules give them; else they are lost."""

    region: Region


class Compared(NamedTuple):
    """All differences of two sets of rules, and the principals that are not just anybody there."""

    differences: list[Difference]
    named: frozenset[str]


class Comparing(NamedTuple):
    """As `Compared`, with differences that come one by one, once, of which none is kept."""

    differences: Iterator[Difference]
    named: frozenset[str]


class Values(dict[tuple[Totals, Totals], Rights]):
    """What differs at each host: the operations gained, and those lost, shifted; 0 if nothing.

    Of pairs: what own ACLs say together, on each side, and what everyone has there. Of who may do
    everything `_SUPER_USER` is in place of the former.
    """

    def __init__(self, resource_type: ResourceType) -> None:
        super().__init__()
        self._effective = EFFECTIVE[resource_type]

    def __missing__(self, pair: tuple[Totals, Totals]) -> Rights:
        totals = [
            EVERYTHING if own == _SUPER_USER else joined(own, around)
            for own, around in zip(*pair, strict=True)
        ]
        found = self[pair] = combined(totals, self._compared)
        return found

    def _compared(self, old: int, new: int) -> int:
        before, after = self._effective[old], self._effective[new]
        return after & ~before | (before & ~after) << _LOST_SHIFT


def compare(old: Rules, new: Rules) -> Compared:
    """Return every right that is gained or lost from the old rules to the new ones.

    No request is of two regions. What broker users may do on the listener of the brokers is not
    compared.
    """
    differences, named = comparing(old, new)
    return Compared(list(differences), named)


def comparing(old: Rules, new: Rules, cut: HostCut | None = None) -> Comparing:
    """Return what `compare` does, for rules of which the differences take too much memory.

    ``cut``: one that is made of all hosts of both, and maybe of others; None to make one.
    """
    cut = cut or HostCut(old.hosts() | new.hosts(), old.cidr or new.cidr)
    sides = tables(old, cut), tables(new, cut)
    pairs = {each: (sides[0][each], sides[1][each]) for each in TYPES}
    named = frozenset[str]().union(*map(named_principals, pairs.values()))
    return Comparing(chain.from_iterable(starmap(partial(_of_type, cut), pairs.items())), named)


def _of_type(
    cut: HostCut, resource_type: ResourceType, both: tuple[Table, Table]
) -> Iterator[Difference]:
    groups = _Comparison(*both).groups(named_principals(both))
    return _differences(groups, cut, resource_type)


_Place = tuple[Key, tuple[Key, ...], Rights]
"""A pattern, the patterns in it that are left out, and the value in between."""


class Group(NamedTuple):
    """Names on which the same is so for some principals."""

    principals: Principals
    place: _Place
    apart: Mapping[str, Sequence[Key]]
    """The principals of whom it is not so on the names of some patterns."""


def _differences(
    groups: Iterable[Group], cut: HostCut, resource_type: ResourceType
) -> Iterator[Difference]:
    for principals, (key, excepted, value), apart in groups:
        names = NameRegion(resource_type, key, excepted)
        for mask, number in by_host(value, cut.everywhere):
            gained, lost = number & _GAINED_BITS, number >> _LOST_SHIFT
            if gained:
                yield Difference(True, Region(principals, cut, mask, gained, names, apart))
            if lost:
                yield Difference(False, Region(principals, cut, mask, lost, names, apart))


class _Comparison:
    """The regions of one resource type in which a right is gained or lost."""

    def __init__(self, old: Table, new: Table) -> None:
        self._sides = old, new
        self._everyone = Everyone(self._sides)
        self._values = Values(old.resource_type)
        self._of_everyone = Layer(self._everyone, self._values, ROOT, (0, 0))
        # What does not show for everyone else may show for who has other ACLs beside it.
        self._is_everyone_equal = all(before == after for before, after in self._everyone.totals)
        self._layers: dict[tuple[Key, Totals], Layer] = {}
        self._known_changing: dict[tuple[Key, Totals, Totals], list[Key]] = {}
        self._of_literals: dict[_Place, list[str]] = {}
        self._together: dict[_Place, list[str]] = {}
        self._apart: dict[_Place, dict[str, Sequence[Key]]] = {}
        self._alone: dict[str, Principals] = {}

    def groups(self, principals: Sequence[str]) -> Iterator[Group]:
        """Yield every region once: those of named principals, then those of everyone else."""
        for principal in principals:
            self._enter_layers(principal)
        for layer in self._layers.values():
            for outer, who in layer.members.items():
                outer.leave(who, layer.key, layer.number, layer.inside)
        for layer in self._layers.values():
            self._gather(layer)
        self._layers.clear()
        for place, names in self._of_literals.items():
            known = self._together.setdefault(place, names)
            if known is not names:
                known.extend(names)
        self._of_literals.clear()
        everyone = [self._of_others(part) for part in self._of_everyone.parts()]
        self._alone = {principal: Principals((principal,)) for principal in principals}
        by_first: dict[str, list[_Place]] = {principal: [] for principal in principals}
        for place, names in self._together.items():
            names.sort()
            by_first[names[0]].append(place)
        for place in chain.from_iterable(by_first.values()):
            yield self._group(place)
        yield from everyone

    def _enter_layers(self, principal: str) -> None:
        """Find the patterns from which on a value is not that of the layer around them."""
        old, new = (side.own(principal) for side in self._sides)
        supers = [side.rules.is_super_user(principal) for side in self._sides]
        if self._is_everyone_equal and supers[0] == supers[1] and old == new:
            return
        everyone, values = self._everyone, self._values
        before, after = (old.prefixes, old.literals), (new.prefixes, new.literals)
        keys = sorted({ROOT, *old.keys(), *new.keys()})
        start = tuple(_SUPER_USER if is_super else 0 for is_super in supers)
        around: list[tuple[str, Totals, Layer]] = [("", start, self._of_everyone)]
        for key in keys:
            name, kind = key
            while not name.startswith(around[-1][0]):
                around.pop()
            _, above, layer = around[-1]
            own: Totals = (
                joined(above[0], before[kind].get(name, 0)),
                joined(above[1], after[kind].get(name, 0)),
            )
            number = everyone.innermost(key)
            known = everyone.totals[number]
            value = values[own, known]
            if value == values[layer.chain, known]:
                if kind == PREFIX and own != layer.chain:
                    # They follow in the order of the keys, and so in this loop.
                    _add(keys, key, self._changing(key, own, layer.chain))
            elif kind == PREFIX:
                layer = self._entered(principal, key, own, layer)
            else:
                layer.leave((principal,), key, number)
                if value:
                    self._of_literals.setdefault((key, (), value), []).append(principal)
            if kind == PREFIX:
                around.append((name, own, layer))

    def _entered(self, principal: str, key: Key, own: Totals, around: Layer) -> Layer:
        """Return the layer of a prefix, which a principal enters from the one around it."""
        layer = self._layers.get((key, own))
        if layer is None:
            layer = self._layers[key, own] = Layer(self._everyone, self._values, key, own)
        layer.members.setdefault(around, []).append(principal)
        return layer

    def _changing(self, key: Key, own: Totals, around: Totals) -> list[Key]:
        """Return everyone's keys in a prefix at which two chains do not have the same value."""
        found = self._known_changing.get((key, own, around))
        if found is None:
            everyone, values = self._everyone, self._values
            found = self._known_changing[key, own, around] = [
                everyone.keys[number]
                for number in everyone.within(key)
                if values[own, everyone.totals[number]] != values[around, everyone.totals[number]]
            ]
        return found

    def _gather(self, layer: Layer) -> None:
        """Put the regions of a layer to those of others that are the same."""
        members = list(chain.from_iterable(layer.members.values()))
        for component, others, apart in layer.parts():
            gone = frozenset(others)
            names = [each for each in members if each not in gone] if gone else members
            if names:
                place = _place(component)
                self._together.setdefault(place, []).extend(names)
                if apart:
                    self._apart.setdefault(place, {}).update(apart)

    def _of_others(self, part: Part) -> Group:
        """Return a region of everyone's; who has the very same in a layer is one of everyone."""
        place = _place(part.component)
        others = set(part.others).difference(self._together.pop(place, ()))
        apart = {**part.apart, **self._apart.pop(place, _NONE)}
        return Group(Principals(tuple(sorted(others)), is_everyone=True), place, apart)

    def _group(self, place: _Place) -> Group:
        """Return who has the value of a place, which is forgotten."""
        names, apart = self._together.pop(place), self._apart.pop(place, _NONE)
        if len(names) > 1:
            return Group(Principals(tuple(names)), place, apart)
        [name] = names
        if apart:
            key, excepted, value = place
            place = key, tuple(sorted((*excepted, *apart[name]))), value
        return Group(self._alone[name], place, _NONE)


def _place(component: Component) -> _Place:
    return component.key, tuple(component.excepted), component.value


def _add(keys: list[Key], around: Key, more: Sequence[Key]) -> None:
    """Add keys that lie in one to those in order, each once."""
    if more:
        numbers = within(keys, around)
        place = slice(numbers.start, numbers.stop)
        keys[place] = sorted({*keys[place], *more})
