"""What is known of an expression without running it: lengths, beginnings, ambiguity.

The expression is an automaton whose states are its characters (Glushkov's construction), with the
number of ways that lead from one to the next. If a text leads from a state back to it in two ways,
an engine that backtracks may try 2^n ways through n such texts. Java remembers where the simpler of
such expressions failed, Python does not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import NamedTuple, TypeVar

from aclbroker.broker.auth.mapping.java_regex.charset import EVERYTHING, SURROGATES, CharSet
from aclbroker.broker.auth.mapping.java_regex.effort import Effort

_T = TypeVar("_T")

# A character that is repeated more often, or a group, is taken as repeated without limit; so is a
# group within an expression of more states than the largest.
_COPIES = 32
_UNROLLED = 3
_LARGEST = 300


class Fragment(NamedTuple):
    """A part of an expression, which matches `low` to `high` characters, None if without limit.

    `first` and `last` have the states it begins and ends with, `empty` the ways to match nothing.
    """

    low: int
    high: int | None
    first: Counter[int]
    last: Counter[int]
    empty: int


NOTHING = Fragment(0, 0, Counter(), Counter(), 1)
"""What takes no character, such as an anchor."""


class Automaton:
    """The states of an expression and the ways from each to the next ones."""

    def __init__(self) -> None:
        self._chars: list[CharSet] = []
        self._next: list[Counter[int]] = []
        self._looked_at: set[int] = set()

    def char(self, chars: CharSet) -> Fragment:
        """One character."""
        state = self._added(chars)
        return Fragment(1, 1, Counter({state: 1}), Counter({state: 1}), 0)

    def _added(self, chars: CharSet) -> int:
        self._chars.append(chars)
        self._next.append(Counter())
        return len(self._chars) - 1

    def anything(self) -> Fragment:
        """Any text, such as what a back reference matches."""
        return self.repeated(self.char(EVERYTHING), 0, None)

    def sequence(self, parts: Iterable[Fragment]) -> Fragment:
        """One after the other."""
        return reduce(self._pair, parts, NOTHING)

    def _pair(self, left: Fragment, right: Fragment) -> Fragment:
        self._connect(left.last, right.first)
        return Fragment(
            left.low + right.low,
            None if left.high is None or right.high is None else left.high + right.high,
            left.first + _times(right.first, left.empty),
            right.last + _times(left.last, right.empty),
            left.empty * right.empty,
        )

    def alternatives(self, parts: list[Fragment]) -> Fragment:
        """One of them."""
        highs = [part.high for part in parts]
        return Fragment(
            min(part.low for part in parts),
            None if None in highs else max(high for high in highs if high is not None),
            sum((part.first for part in parts), Counter()),
            sum((part.last for part in parts), Counter()),
            sum(part.empty for part in parts),
        )

    def repeated(self, part: Fragment, least: int, most: int | None) -> Fragment:
        """The part so many times. More often than once it must not be one that can be empty."""
        if most is None or most > _UNROLLED or (most > 1 and len(self._chars) > _LARGEST):
            self._connect(part.last, part.first)
        elif most > 1:
            return self._unrolled([part, *(self._copy(part) for _ in range(1, most))], least)
        high = None if most is None or part.high is None else part.high * most
        return part._replace(
            low=part.low * least, high=high, empty=part.empty + (1 if least == 0 else 0)
        )

    def repeated_char(self, chars: CharSet, least: int, most: int | None) -> Fragment:
        """The character so many times."""
        if most is None or most > _COPIES:
            return self.repeated(self.char(chars), least, most)
        return self._unrolled([self.char(chars) for _ in range(most)], least)

    def _unrolled(self, copies: list[Fragment], least: int) -> Fragment:
        """One copy after the other; those from ``least`` on may be missing."""
        tail = NOTHING
        for index, copy in reversed([*enumerate(copies)]):
            tail = self._pair(copy, tail)
            if index >= least:
                tail = self.repeated(tail, 0, 1)
        return tail

    def _copy(self, part: Fragment) -> Fragment:
        """The part once more, which nothing must follow yet, with states of its own."""
        states = set(part.first).union(*(_reached(each, self._after) for each in part.first))
        new = {state: self._added(self._chars[state]) for state in sorted(states)}
        for state, copy in new.items():
            self._next[copy] = Counter({new[each]: n for each, n in self._next[state].items()})
            if state in self._looked_at:
                self._looked_at.add(copy)
        first, last = (
            Counter({new[state]: ways for state, ways in ends.items()})
            for ends in (part.first, part.last)
        )
        return part._replace(first=first, last=last)

    def _after(self, state: int) -> Iterable[int]:
        return self._next[state]

    def looked_ahead(self, part: Fragment) -> Fragment:
        """The part as something to look at, from which no way leads on."""
        self._looked_at.update(range(min(part.first, default=0), len(self._chars)))
        return Fragment(0, 0, part.first, Counter(), 1)

    def effort(self, whole: Fragment) -> Effort:
        """What an engine that backtracks may have to do for the whole expression."""
        return Effort(self._chars, self._next, whole.first)

    def _connect(self, last: Mapping[int, int], first: Mapping[int, int]) -> None:
        for state, ways in last.items():
            self._next[state] += _times(first, ways)

    def may_begin_inside_a_pair(self, whole: Fragment) -> bool:
        """Whether it can match nothing, or half of a character beyond U+FFFF, at its beginning."""
        return whole.low == 0 or any(
            self._chars[state].overlaps(SURROGATES)
            for state in whole.first.keys() - self._looked_at
        )

    def is_ambiguous(self) -> bool:
        """Whether a text leads from a state back to it in two ways, or states are too many."""
        ways = self._between_loops()
        if len(ways) > _LARGEST:
            return True
        reached = {state: _reached(state, lambda s: ways[s]) for state in ways}
        loops = {
            frozenset(other for other in reached[state] if state in reached[other])
            for state in ways
        }
        return any(self._has_two_ways(loop) for loop in loops)

    def _between_loops(self) -> dict[int, set[int]]:
        """The ways without states that lead to no loop, or that no loop leads to."""
        ways = {state: set(targets) for state, targets in enumerate(self._next)}
        while True:
            entered = set().union(*ways.values())
            kept = {s: targets & ways.keys() for s, targets in ways.items() if s in entered}
            kept = {s: targets for s, targets in kept.items() if targets}
            if kept == ways:
                return ways
            ways = kept

    def _has_two_ways(self, loop: frozenset[int]) -> bool:
        """Whether two ways of one text part somewhere in a loop, and meet again."""
        if any(self._next[state][target] > 1 for state in loop for target in loop):
            return True
        parted: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)

        def pairs_after(pair: tuple[int, int]) -> Iterator[tuple[int, int]]:
            for left, right in product(*(self._next[state].keys() & loop for state in pair)):
                if self._chars[left].overlaps(self._chars[right]):
                    parted[left, right].append(pair)
                    yield left, right

        start = min(loop, default=0)
        together = {(state, state) for state in loop}
        after = _reached((start, start), pairs_after)
        meeting = set().union(*(_reached(pair, parted.__getitem__) for pair in together))
        return bool((after & meeting) - together)


def _reached(start: _T, following: Callable[[_T], Iterable[_T]]) -> set[_T]:
    """What is reached from the start in one step or more."""
    found: set[_T] = set()
    waiting = [start]
    while waiting:
        new = set(following(waiting.pop())) - found
        found |= new
        waiting += new
    return found


def _times(states: Mapping[int, int], ways: int) -> Counter[int]:
    return Counter({state: count * ways for state, count in states.items()} if ways else {})
