"""Which prefixes of each of many groups a name begins with: for names and groups by the thousand.

In order, all that begins with a prefix stands behind it without a gap. So a prefix is two numbers,
its own place and that of the last one that begins with it, and a name is one: the place of the
longest prefix that it begins with.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

NONE: Final = -1
"""The place of no prefix."""


class Prefixes:
    """Prefixes, ``in_order``, each once. ``last`` has for each the last that begins with it."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self.in_order = sorted(set(prefixes))
        self._shorter: list[int] = []
        for place, prefix in enumerate(self.in_order):
            self._shorter.append(self._longest(prefix, place - 1))
        last = list(range(len(self.in_order)))
        for place in reversed(last[:]):
            shorter = self._shorter[place]
            if shorter != NONE:
                last[shorter] = max(last[shorter], last[place])
        self.last: Numbers = np.array(last, np.int64)

    def longest(self, names: Iterable[str]) -> Numbers:
        """Return the place of the longest prefix that each name begins with, `NONE` without one."""
        in_order = self.in_order
        found = (self._longest(name, bisect_right(in_order, name) - 1) for name in names)
        return np.fromiter(found, np.int64)

    def _longest(self, name: str, before: int) -> int:
        """Return the longest prefix of a name, of which the one ``before`` it in order is known.

        That one begins with the longest prefix of the name, as all do that stand between the two.
        """
        while before != NONE and not name.startswith(self.in_order[before]):
            before = self._shorter[before]
        return before


class PrefixBits:
    """Bits for prefixes in groups: ``places`` are those of `Prefixes`, ``last`` is theirs.

    ``groups`` are numbers from 0. If a group has a prefix twice, the bits of both count.
    """

    def __init__(self, groups: Numbers, places: Numbers, bits: Numbers, last: Numbers) -> None:
        self._size = len(last)
        keys, bits = summed(groups * self._size + places, bits)
        self._keys = keys
        of_keys, places = np.divmod(keys, max(self._size, 1))
        self._last = last[places]
        shorter: list[int] = []
        of_all: list[int] = []
        rows = zip(of_keys.tolist(), places.tolist(), bits.tolist(), strict=True)
        for number, (group, place, its_bits) in enumerate(rows):
            before = number - 1
            while before != NONE and (of_keys[before] != group or self._last[before] < place):
                before = shorter[before]
            shorter.append(before)
            of_all.append(its_bits | (0 if before == NONE else of_all[before]))
        self._shorter: Numbers = np.array(shorter, np.int64)
        # One more, which is in no group and says nothing, for those without a prefix.
        self._groups = np.append(of_keys, NONE)
        self._bits: Numbers = np.array([*of_all, 0], np.int64)

    def bits(self, groups: Numbers, longest: Numbers) -> Numbers:
        """Return the bits of all prefixes of a group that a name begins with.

        ``longest``: what `Prefixes.longest` returned for the names.
        """
        found = np.searchsorted(self._keys, groups * self._size + longest, "right") - 1
        found[self._groups[found] != groups] = NONE
        pending = np.flatnonzero(found != NONE)
        while len(pending := pending[self._last[found[pending]] < longest[pending]]):
            found[pending] = self._shorter[found[pending]]
            pending = pending[found[pending] != NONE]
        of_all: Numbers = self._bits[found]
        return of_all


def summed(keys: Numbers, bits: Numbers) -> tuple[Numbers, Numbers]:
    """Return each key once, in order, with the bits of all its rows."""
    order = np.argsort(keys, kind="stable")
    keys, bits = keys[order], bits[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return keys[starts], np.bitwise_or.reduceat(bits, starts) if len(starts) else bits
