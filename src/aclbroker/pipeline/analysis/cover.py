"""The cheapest members that are in all of some sets: exactly for few sets, greedily for many.

Sets that have members in common, directly or by others, are a component. Each is looked at by
itself, so that what is chosen for one does not depend on the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import add
from typing import Any, Final, NamedTuple, TypeVar

Member = TypeVar("Member")

Cost = tuple[int, ...]
"""What a member costs: at least 1, and then what decides between members of which that is equal."""

MOST_STEPS: Final = 3_000
"""How many choices are tried for a component; then the best that was found is taken."""

MOST_SETS: Final = 200
"""A component of more sets is covered greedily."""


def least_cover(
    sets: Iterable[frozenset[Member]],
    cost: Callable[[Member], Cost],
    most_steps: int = MOST_STEPS,
) -> set[Member]:
    """Return the members that together cost least, at least one of each set. No set is empty.

    They are the best, unless a component has more than `MOST_SETS`, or takes more than
    ``most_steps``; then none of them can go. Of what is equally good, the first in order is taken.
    """
    chosen: set[Member] = set()
    for component in _components(sets):
        # Mostly one member is in all of them.
        common: Iterable[Any] = frozenset.intersection(*component)
        members = sorted(common, key=lambda each: (cost(each), each))
        if common and cost(members[0])[0] == 1:
            chosen.add(members[0])
            continue
        members = sorted(frozenset[Any]().union(*component), key=lambda each: (cost(each), each))
        # As numbers, in order of preference, many are alike: a group's rights on each of its names.
        numbers = {each: number for number, each in enumerate(members)}
        numbered = frozenset(frozenset(numbers[each] for each in one) for one in component)
        found = _cover(numbered, tuple(map(cost, members)), most_steps)
        chosen.update(members[number] for number in found)
    return chosen


def _components(sets: Iterable[frozenset[Member]]) -> Iterator[list[frozenset[Member]]]:
    distinct = dict.fromkeys(sets)
    by_member: dict[Member, list[frozenset[Member]]] = {}
    for each in distinct:
        for member in each:
            by_member.setdefault(member, []).append(each)
    seen: set[frozenset[Member]] = set()
    for first in distinct:
        if first in seen:
            continue
        seen.add(first)
        component = [first]
        for each in component:
            for member in each:
                # The sets of a member are needed once.
                near = [other for other in by_member.pop(member, ()) if other not in seen]
                seen.update(near)
                component += near
        yield component


_Sets = Collection[frozenset[int]]


@lru_cache(maxsize=4096)
def _cover(sets: _Sets, costs: Sequence[Cost], most_steps: int) -> tuple[int, ...]:
    """Return the best members of a component, which are numbers in order of preference."""
    taken, left = _reduced(sets, costs)
    for component in _components(left):
        # What was taken away may have been what held it together.
        taken += _Search(component, costs, most_steps).best.members
    return tuple(taken)


class _Found(NamedTuple):
    """A cover, and what is compared of two of them."""

    cost: Cost
    members: list[int]


class _Search:
    """Looks for the best members of some sets; ``best`` is what is found."""

    def __init__(self, sets: _Sets, costs: Sequence[Cost], most_steps: int) -> None:
        self._costs = costs
        self._left = most_steps if len(sets) <= MOST_SETS else 0
        members = _greedy(sets, costs)
        self.best = _Found(self._sum(members), members)
        if self._left:
            self._search(_smallest_first(sets), [], self._sum([]))

    def _sum(self, members: Iterable[int]) -> Cost:
        total: Cost = (0,) * len(self._costs[0])
        for member in members:
            total = tuple(map(add, total, self._costs[member]))
        return total

    def _search(self, left: Sequence[frozenset[int]], chosen: list[int], cost: Cost) -> None:
        """Try all choices of a member for the smallest set that is left, the best ones first."""
        if not left:
            self.best = min(self.best, _Found(cost, sorted(chosen)))
            return
        # Each member that is still needed costs at least 1.
        if self._left <= 0 or (cost[0] + _fewest(left), *cost[1:]) > self.best.cost:
            return
        self._left -= 1
        counts = {member: sum(member in each for each in left) for member in left[0]}
        for member in sorted(counts, key=lambda each: (-counts[each], each)):
            rest = [each for each in left if member not in each]
            total = tuple(map(add, cost, self._costs[member]))
            self._search(rest, [*chosen, member], total)


def _smallest_first(sets: _Sets) -> list[frozenset[int]]:
    return sorted(sets, key=lambda each: (len(each), sorted(each)))


def _fewest(sets: Iterable[frozenset[int]]) -> int:
    """Return how many members are needed at least: one for each set that shares none with others.

    The sets come smallest first.
    """
    count = 0
    taken: set[int] = set()
    for each in sets:
        if taken.isdisjoint(each):
            taken |= each
            count += 1
    return count


def _reduced(sets: _Sets, costs: Sequence[Cost]) -> tuple[list[int], list[frozenset[int]]]:
    """Return members that a best cover has, and what is left to be covered by others.

    A set goes that holds another one; a member goes if another, no worse, is in all of its sets.
    """
    taken: list[int] = []
    left = list(sets)
    while True:
        before = set(left)
        left = _innermost(left)
        alone = {member for each in left if len(each) == 1 for member in each}
        taken += sorted(alone)
        left = [each for each in left if alone.isdisjoint(each)]
        left = _without_dominated(left, costs)
        if set(left) == before:
            return taken, left


def _innermost(sets: _Sets) -> list[frozenset[int]]:
    """Return the sets that hold none of the others."""
    kept: list[frozenset[int]] = []
    by_member: dict[int, list[frozenset[int]]] = {}
    for each in _smallest_first(set(sets)):
        # One that it holds is found by the first member of that.
        if not any(inner <= each for member in each for inner in by_member.get(member, ())):
            kept.append(each)
            by_member.setdefault(min(each), []).append(each)
    return kept


def _without_dominated(
    sets: Sequence[frozenset[int]], costs: Sequence[Cost]
) -> list[frozenset[int]]:
    places = _places(sets)
    gone: set[int] = set()
    for member, its in places.items():
        # What is in all of its sets is in any of them.
        for other in sets[min(its, key=lambda place: len(sets[place]))] - gone - {member}:
            is_worse = (costs[other], other) > (costs[member], member)
            if not is_worse and its <= places[other]:
                gone.add(member)
                break
    return [each - gone for each in sets]


def _places(sets: Sequence[frozenset[int]]) -> dict[int, set[int]]:
    places: dict[int, set[int]] = {}
    for place, each in enumerate(sets):
        for member in each:
            places.setdefault(member, set()).add(place)
    return dict(sorted(places.items()))


def _greedy(sets: _Sets, costs: Sequence[Cost]) -> list[int]:
    """Return a cover: next is always who is in most of the sets left, for what it costs.

    None of it can go.
    """
    in_order = _smallest_first(sets)
    places = _places(in_order)
    still = set(range(len(in_order)))
    queue = [(costs[member][0] / len(its), member) for member, its in places.items()]
    heapq.heapify(queue)
    chosen: list[int] = []
    while still:
        each_costs, member = heapq.heappop(queue)
        count = len(places[member] & still)
        if not count:
            continue
        now = costs[member][0] / count
        if now > each_costs:
            heapq.heappush(queue, (now, member))
            continue
        chosen.append(member)
        still -= places[member]
    # Those that were chosen later may be in all sets of an earlier one.
    kept = set(chosen)
    for member in sorted(chosen, reverse=True):
        if all(len(in_order[place] & kept) > 1 for place in places[member]):
            kept.discard(member)
    return sorted(kept)
