"""Where lines of a log can be cut: the places of two bytes that stand between their parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import BLOCK, Codes, Flags, Lines, places_of


class Cuts:
    """Where two bytes stand in lines, one behind the other: so many ``counts`` in each of them.

    ``others``: how often the pair ``other`` stands in all of them, which begins with the same byte.
    ``apart``: see `memory.places_of`.
    """

    def __init__(self, lines: Lines, pair: bytes, other: bytes = b"", *, apart: int = 8) -> None:
        last = int(lines.ends[-1])
        self.others = 0
        found: list[Codes] = []
        for start, is_first, behind in _blocks(lines, pair[0]):
            if other:
                self.others += int(np.count_nonzero(is_first & (behind == other[1])))
            is_first &= behind == pair[1]
            found.append((places_of(is_first, apart) + start).astype(np.int32))
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


def _blocks(lines: Lines, byte: int) -> Iterator[tuple[int, Flags, NDArray[np.uint8]]]:
    """Yield block by block of lines where it begins, which bytes are one, and those behind them."""
    first, last = int(lines.starts[0]), int(lines.ends[-1])
    for start in range(first, last, BLOCK):
        end = min(start + BLOCK, last)
        # There is a byte behind the last line.
        yield start, lines.codes[start:end] == byte, lines.codes[start + 1 : end + 1]
