"""How much an engine that backtracks may have to do with a text, counted before it begins.

It follows ways through the expression's automaton, from character to character, and takes each way
at most once. How many ways a beginning of the text has into each state is counted here by going
through the text once, for all ways together. So the count costs little where the engine would take
a minute, and it ends at the limit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice

from aclbroker.broker.auth.mapping.java_regex.charset import CharSet


class Effort:
    """The ways through an automaton whose states are ``chars``.

    ``following`` has for each state the states after it, with how many ways lead there; ``first``
    has those that an expression begins with.
    """

    def __init__(
        self,
        chars: Sequence[CharSet],
        following: Sequence[Mapping[int, int]],
        first: Mapping[int, int],
    ) -> None:
        self._chars = chars
        self._following = [tuple(each.items()) for each in following]
        self._first = tuple(first.items())
        ranges = [each for state in chars for each in state.ranges]
        self._edges = sorted({first for first, _ in ranges} | {last + 1 for _, last in ranges})
        self._accepting: dict[int, frozenset[int]] = {}

    def exceeds(self, limit: int, text: str, position: int = 0, *, anywhere: bool = False) -> bool:
        """Whether more than ``limit`` characters may have to be looked at from a position on.

        With ``anywhere`` the engine begins at each place that follows, too.
        """
        looked_at = 0
        current: dict[int, int] = {}
        for index, char in enumerate(islice(text, position, None)):
            accepting = self._accepting_states(ord(char))
            entered: dict[int, int] = {}
            if anywhere or index == 0:
                looked_at += len(self._first)
                for state, ways in self._first:
                    if state in accepting:
                        entered[state] = ways
            for state, ways in current.items():
                looked_at += ways * len(self._following[state])
                for target, more in self._following[state]:
                    if target in accepting:
                        entered[target] = entered.get(target, 0) + ways * more
            if looked_at > limit:
                return True
            current = entered
            if not current and not anywhere:
                return False
        return False

    def _accepting_states(self, code: int) -> frozenset[int]:
        # No state tells the characters between two edges apart, so there are few answers.
        between = bisect_right(self._edges, code)
        found = self._accepting.get(between)
        if found is None:
            found = self._accepting[between] = frozenset(
                state
                for state, chars in enumerate(self._chars)
                if any(first <= code <= last for first, last in chars.ranges)
            )
        return found
