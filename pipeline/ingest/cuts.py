"""Where lines of a log can be cut: the places of two bytes that stand between their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import Codes, Flags, Lines

_BLOCK: Final = 1 << 18
"""So many bytes are looked through at once that they stay in the processor's cache."""


def _hits(lines: Lines, pair: bytes) -> Iterator[tuple[int, Flags]]:
    """Yield, block by block of lines, at which bytes two bytes stand, and where the block is."""
    first, last = int(lines.starts[0]), int(lines.ends[-1])
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        hits = lines.codes[start:end] == pair[0]
        # There is a byte behind the last line.
        hits &= lines.codes[start + 1 : end + 1] == pair[1]
        yield start, hits


def count_pairs(lines: Lines, pair: bytes) -> int:
    """Return how often two bytes stand in lines, one behind the other."""
    return sum(int(np.count_nonzero(hits)) for _, hits in _hits(lines, pair))


class Cuts:
    """Where two bytes stand in lines, one behind the other: so many ``counts`` in each of them."""

    def __init__(self, lines: Lines, pair: bytes) -> None:
        last = int(lines.ends[-1])
        found = [
            (np.flatnonzero(hits) + start).astype(np.int32) for start, hits in _hits(lines, pair)
        ]
        # One more, so that there is one behind those of the last line.
        self._places: Codes = np.concatenate([*found, np.full(1, last, np.int32)])
        bounds = np.searchsorted(self._places[:-1], np.append(lines.starts, last).astype(np.int32))
        self._first = bounds[:-1]
        self.counts: NDArray[np.int64] = np.diff(bounds)

    def at(self, number: int | NDArray[np.int64], rows: NDArray[np.int64]) -> Codes:
        """Return the place of one of the cuts, counted from 0, in lines that have so many.

        It may be another one in each line.
        """
        found: Codes = self._places[self._first[rows] + number]
        return found
