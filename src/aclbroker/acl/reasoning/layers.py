"""What all those have in a pattern whose own ACLs say the same about its names.

Many principals have the same ACLs of a prefix. What everyone's ACLs make of these inside of it is
worked out once for all of them, as a layer of regions. At each name a principal is in one layer: in
that of everyone, or in one of the innermost of its own patterns where that says something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.acl.reasoning.by_host import Rights
from aclbroker.acl.reasoning.names import Component, Key, components
from aclbroker.acl.reasoning.trees import Everyone, Totals

_NOWHERE: Final = range(0)
_NOBODY: Final[Mapping[str, Sequence[Key]]] = {}


class Part(NamedTuple):
    """A region of a layer, and who of the layer is not of it: wholly, or on some patterns."""

    component: Component
    others: Sequence[str]
    apart: Mapping[str, Sequence[Key]]


class Layer:
    """The regions of a pattern for those whose own ACLs say the same there, the chain.

    ``values`` has the value of each pair of a chain and of what everyone has.
    """

    __slots__ = (
        *("chain", "inside", "key", "members", "number"),
        *("_apart", "_components", "_component_of", "_first", "_others"),
    )

    def __init__(
        self,
        everyone: Everyone,
        values: Mapping[tuple[Totals, Totals], Rights],
        key: Key,
        chain: Totals,
    ) -> None:
        self.key = key
        self.chain = chain
        self.number = everyone.innermost(key)
        """The number of `Everyone`'s innermost key that holds the pattern."""

        self.inside = everyone.within(key)
        """The numbers of those that lie in it."""

        self.members: dict[Layer, list[str]] = {}
        """Who is in the layer, by the layer that they are in around it."""

        # The pattern itself is the first node, whether it is one of everyone's or not.
        self._first = self.inside.start - (self.number not in self.inside)
        numbers = range(self._first + 1, self.inside.stop)
        self._components, self._component_of = components(
            [key, *(everyone.keys[each] for each in numbers)],
            [-1, *(self._node(everyone.parents[each]) for each in numbers)],
            [values[chain, everyone.totals[each]] for each in (self.number, *numbers)],
        )
        self._others: dict[int, list[str]] = {}
        self._apart: dict[int, dict[str, list[Key]]] = {}

    def _node(self, number: int) -> int:
        """Return the number of the innermost node that holds one of everyone's keys."""
        return max(number - self._first, 0)

    def leave(
        self, who: Sequence[str], key: Key, number: int, inside: Iterable[int] = _NOWHERE
    ) -> None:
        """Note who of the layer is not in it on the names of a pattern.

        ``number`` is that of everyone's innermost key that holds the pattern, ``inside`` has the
        numbers of those that lie in it.
        """
        around = self._component_of[self._node(number)]
        if around >= 0 and self._components[around].value:
            if self._components[around].key == key:
                self._others.setdefault(around, []).extend(who)
            else:
                apart = self._apart.setdefault(around, {})
                for each in who:
                    apart.setdefault(each, []).append(key)
        for found in {self._component_of[self._node(each)] for each in inside}:
            if found not in (around, -1):
                self._others.setdefault(found, []).extend(who)

    def parts(self) -> Iterator[Part]:
        """Yield the regions with a value that is not 0."""
        for number, component in enumerate(self._components):
            if component.value:
                yield Part(
                    component, self._others.get(number, ()), self._apart.get(number, _NOBODY)
                )
