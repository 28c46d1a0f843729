"""Finds the difference that a request is of, among many, without a look at each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.reasoning.difference import Difference
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, Key
from aclbroker.acl.reasoning.regions import Region, Request

_Place = tuple[ResourceType, Key, str | None]
"""A type, a pattern, and one of the principals; None for everyone but some."""


class Places:
    """Differences of the same two sets of rules, by where they are.

    A request is looked for at the patterns that match its name, as its principal's and everyone's.
    """

    def __init__(self, differences: Sequence[Difference]) -> None:
        self._numbers: dict[_Place, list[int]] = {}
        self._regions = [_Region(each.region) for each in differences]
        lengths: dict[ResourceType, set[int]] = {}
        for number, (_, region) in enumerate(differences):
            names = region.names
            if names.key[1] == PREFIX:
                lengths.setdefault(names.resource_type, set()).add(len(names.key[0]))
            of_all = region.principals.is_everyone
            for principal in (None,) if of_all else region.principals.names:
                place = names.resource_type, names.key, principal
                self._numbers.setdefault(place, []).append(number)
        self._lengths = {kind: sorted(found, reverse=True) for kind, found in lengths.items()}

    def find(self, request: Request) -> int | None:
        """Return the number of the difference that a request is of, None if it is of none."""
        for key in self._keys(request.resource_type, request.name):
            for principal in (request.principal, None):
                for number in self._numbers.get((request.resource_type, key, principal), ()):
                    if request in self._regions[number]:
                        return number
        return None

    def _keys(self, resource_type: ResourceType, name: str) -> Iterator[Key]:
        yield name, LITERAL
        for length in self._lengths.get(resource_type, ()):
            if length <= len(name):
                yield name[:length], PREFIX


class _Region:
    """A region that tells as quickly whether a request is of it, however many exceptions it has."""

    def __init__(self, region: Region) -> None:
        excepted = region.names.excepted
        self._with_all = replace(region, names=replace(region.names, excepted=()))
        self._excepted = frozenset(excepted)
        self._lengths = sorted({len(name) for name, kind in excepted if kind == PREFIX})

    def __contains__(self, request: Request) -> bool:
        return request in self._with_all and not self._excepts(request.name)

    def _excepts(self, name: str) -> bool:
        if (name, LITERAL) in self._excepted:
            return True
        return any((name[:size], PREFIX) in self._excepted for size in self._lengths)
