"""Finds positions in a long list by keys of 64 bits, in 12 bytes of memory for each.

Keys are added, and none is removed: who finds a position looks whether it is still so.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Numbers = NDArray[np.uint32]

_RUN: Final = 1 << 14
"""So many keys are sorted together; fewer lie in a dictionary."""

_LARGE: Final = 1 << 21
"""Sorted keys of which there are so many are not sorted together with others any more."""


class Positions:
    """Positions by keys, several for a key."""

    def __init__(self) -> None:
        self._runs: list[tuple[Keys, Numbers]] = []
        self._recent: dict[int, list[int]] = {}
        self._count = 0

    def add(self, keys: Keys, positions: Numbers) -> None:
        """Add positions, each by the key at its place."""
        if len(keys) >= _RUN:
            self._add_run(keys, positions)
            return
        for key, position in zip(keys.tolist(), positions.tolist(), strict=True):
            self._recent.setdefault(key, []).append(position)
        self._count += len(keys)
        if self._count >= _RUN:
            sizes = [len(each) for each in self._recent.values()]
            recent = np.repeat(np.fromiter(self._recent, np.uint64, len(sizes)), sizes)
            numbers = [position for each in self._recent.values() for position in each]
            self._recent, self._count = {}, 0
            self._add_run(recent, np.array(numbers, np.uint32))

    def find(self, keys: Keys) -> list[list[int]]:
        """Return the positions of each key."""
        found = [list(self._recent.get(key, ())) for key in keys.tolist()]
        for run, positions in self._runs:
            first, end = np.searchsorted(run, keys), np.searchsorted(run, keys, "right")
            for number in np.flatnonzero(first < end).tolist():
                found[number] += positions[first[number] : end[number]].tolist()
        return found

    def _add_run(self, keys: Keys, positions: Numbers) -> None:
        # As many runs of each size as digits of a binary number: each key is sorted a few times.
        while self._runs and len(self._runs[-1][0]) < min(2 * len(keys), _LARGE):
            more = self._runs.pop()
            keys = np.concatenate((more[0], keys))
            positions = np.concatenate((more[1], positions))
        order = np.argsort(keys, kind="stable")
        self._runs.append((keys[order], positions[order]))
