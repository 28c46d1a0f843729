r"""Regular expressions that choose topics, in RE2's syntax, matched in time linear in the name.

Kafka has them matched by RE2/J against whole names. Names of topics are ASCII, so a set of
characters is a number of 128 bits here, and what is not ASCII matches nothing. Whether a whole name
matches does not depend on greediness, so lazy repetition is the same as any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from aclbroker.broker.memory.groups.topic_regex_syntax import (
    Alternatives,
    Chars,
    Edge,
    Node,
    RegexError,
    Repeat,
    Sequence,
    parse,
)
from aclbroker.turns import pause

_MOST_STATES: Final = 3_000
"""Of how many states an expression may consist: x{1000} has a thousand."""

_MOST_STEPS: Final = 4 * _MOST_STATES
"""How many nodes an expression may have with its repetitions: (){1000} has a thousand."""

_MOST_KEPT: Final = 100_000
"""How many states are kept in sets, so that names that are alike are matched by a look-up."""


class _State(NamedTuple):
    """Goes on with a character of ``chars`` to ``then``; without ``chars`` at once to all of them.

    An ``edge`` is passed only at places that it holds at.
    """

    chars: int
    then: list[int]
    edge: Edge | None = None


class TopicRegex:
    """A regular expression, compiled. Raises RegexError if it is none, or too large."""

    def __init__(self, pattern: str) -> None:
        self._states: list[_State] = []
        self._steps = 0
        node = parse(pattern)
        self._end = self._state(0, [])
        self._start = self._compile(node, self._end)
        self._has_edges = any(each.edge for each in self._states)
        self._after: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._kept = 0

    def matches(self, name: str) -> bool:
        """Tell whether the whole of a name matches; this may pause."""
        current = self._closed([self._start], "", name[:1])
        for at, char in enumerate(name):
            following = name[at + 1 : at + 2]
            # What comes next matters to edges alone.
            key = (current, char + following if self._has_edges else char)
            reached = self._after.get(key)
            if reached is None:
                pause()
                reached = self._step(current, char, following)
                if self._kept < _MOST_KEPT:
                    self._kept += 1 + len(reached)
                    self._after[key] = reached
            current = reached
            if not current:
                return False
        return self._end in current

    def _step(self, current: frozenset[int], char: str, following: str) -> frozenset[int]:
        bit = 1 << ord(char) if char.isascii() else 0
        reached = [
            state
            for each in current
            if self._states[each].chars & bit
            for state in self._states[each].then
        ]
        return self._closed(reached, char, following)

    def _closed(self, states: Iterable[int], before: str, after: str) -> frozenset[int]:
        """Return the states, and those that are reached from them without a character."""
        found, waiting = set[int](), list(states)
        while waiting:
            number = waiting.pop()
            if number in found:
                continue
            found.add(number)
            state = self._states[number]
            if not state.chars and (state.edge is None or state.edge.holds(before, after)):
                waiting.extend(state.then)
        return frozenset(found)

    def _state(self, chars: int, then: list[int], edge: Edge | None = None) -> int:
        if len(self._states) >= _MOST_STATES:
            raise RegexError("expression too large")
        self._states.append(_State(chars, then, edge))
        return len(self._states) - 1

    def _compile(self, node: Node, then: int) -> int:
        """Return the state at which a node begins that goes on with another state."""
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise RegexError("expression too large")
        if isinstance(node, Chars):
            # What matches nothing must not look like what goes on without a character.
            return self._state(node.mask or 1 << 128, [then])
        if isinstance(node, Edge):
            return self._state(0, [then], node)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Alternatives):
            return self._state(0, [self._compile(each, then) for each in node.parts])
        return self._repeated(node, then)

    def _repeated(self, node: Repeat, then: int) -> int:
        if node.most is None:
            loop = self._state(0, [])
            self._states[loop].then.extend((self._compile(node.part, loop), then))
            then = loop
        else:
            for _ in range(node.most - node.least):
                # Each may be left out with all that follow.
                then = self._state(0, [self._compile(node.part, then), then])
        for _ in range(node.least):
            then = self._compile(node.part, then)
        return then
