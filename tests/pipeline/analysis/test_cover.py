"""The cheapest members of sets: as cheap as a search through all of them finds."""

from collections.abc import Collection, Iterable
from itertools import combinations
from random import Random

import pytest

from aclbroker.pipeline.analysis.cover import MOST_SETS, Cost, least_cover


def alike(_: int) -> tuple[int, ...]:
    return (1,)


def random_sets(random: Random) -> list[frozenset[int]]:
    members = range(random.randint(1, 9))
    return [
        frozenset(random.sample(members, random.randint(1, min(4, len(members)))))
        for _ in range(random.randint(1, 12))
    ]


def covers(members: Collection[int], sets: Collection[frozenset[int]]) -> bool:
    return all(not each.isdisjoint(members) for each in sets)


def best_by_trying(sets: Collection[frozenset[int]], costs: list[Cost]) -> Cost:
    """What those cost that suffice and cost least."""
    members = sorted(frozenset[int]().union(*sets))
    return min(
        total(some, costs)
        for size in range(len(members) + 1)
        for some in combinations(members, size)
        if covers(some, sets)
    )


def total(members: Iterable[int], costs: list[Cost]) -> Cost:
    own, further = zip(*(costs[each] for each in members), strict=True) if members else ((), ())
    return sum(own), sum(further)


@pytest.mark.parametrize("dear", [1, 2, 100])
@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 7))]
)
def test_they_are_the_cheapest(seed: int, dear: int):
    random = Random(seed)
    for _ in range(30):
        sets = random_sets(random)
        costs: list[Cost] = [
            (random.choice((1, 1, 1, dear)), random.choice((0, 0, 1, 5))) for _ in range(9)
        ]
        found = least_cover(sets, costs.__getitem__)
        assert covers(found, sets)
        assert total(found, costs) == best_by_trying(sets, costs)


def test_what_greed_would_take_first_is_not_taken_where_two_suffice():
    """4 is in most sets, and needs two more beside it."""
    sets = [frozenset(each) for each in ((1, 4), (1, 4, 5), (2, 4), (2, 4, 6), (1, 5), (2, 6))]
    assert least_cover(sets, alike) == {1, 2}


def test_what_has_nothing_to_do_with_others_does_not_depend_on_them():
    random = Random("apart")
    parts = [
        [frozenset(10 * number + each for each in one) for one in random_sets(random)]
        for number in range(20)
    ]
    together = least_cover([each for part in parts for each in part], alike)
    assert together == set().union(*(least_cover(part, alike) for part in parts))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_search_that_is_cut_short_still_covers_and_none_of_it_can_go(steps: int):
    random = Random(steps)
    for _ in range(50):
        sets = random_sets(random)
        found = least_cover(sets, alike, steps)
        assert covers(found, sets)
        assert not any(covers(found - {each}, sets) for each in found)


def test_very_many_sets_are_covered_without_trying_all():
    random = Random("many")
    members = range(300)
    sets = [frozenset(random.sample(members, 5)) for _ in range(4 * MOST_SETS)]
    found = least_cover(sets, alike)
    assert covers(found, sets)
    assert not any(covers(found - {each}, sets) for each in found)
