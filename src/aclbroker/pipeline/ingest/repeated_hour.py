"""Corrects the hour that clocks show twice at the end of summer time, in a log without a zone.

The lines of a log are in the order of time. So a time in such an hour that is far before the latest
one belongs to the second pass of that hour.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.datetime64]

_BLOCK: Final = 30 * 60_000_000
"""In microseconds. Every zone sets its clock back by at least this, and at such a boundary."""

_JITTER: Final = 60_000_000
"""In microseconds. Threads write out of order by less than this."""

_APART: Final = 6 * 3_600_000_000
_MOST_BLOCKS: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RepeatedHour:
    """Corrects the times of a file's lines in their order.

    Every time is given as if it belonged to the first pass of a repeated hour.
    """

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._is_steady = isinstance(zone, timezone) or str(zone) == "UTC"
        self._shifts: dict[int, int] = {}
        self.begin()

    def begin(self) -> None:
        """Begin a new file."""
        self._latest: int | None = None
        self._is_second = False

    def corrected(self, times: Times) -> Times:
        """Return the times in UTC, in microseconds, with the second pass moved to its real time."""
        micros = times.astype("datetime64[us]").view(np.int64)
        known = micros[~np.isnat(times)]
        if self._is_steady or not len(known):
            return times
        first, last = int(known.min()) // _BLOCK, int(known.max()) // _BLOCK
        is_short = last - first < _MOST_BLOCKS
        blocks: Any = range(first, last + 1) if is_short else np.unique(known // _BLOCK).tolist()
        repeated = [block for block in blocks if self._shift(block)]
        if not repeated:
            return times
        found = micros.copy()
        for row in np.flatnonzero(np.isin(micros // _BLOCK, repeated)).tolist():
            found[row] += self._later(int(micros[row]))
        return found.view("datetime64[us]")

    def _later(self, time: int) -> int:
        """Return how much to add to a time in a repeated hour; 0 in the first pass."""
        if self._latest is None or abs(time - self._latest) > _APART:
            self._latest, self._is_second = time, False
        self._is_second = self._is_second or time < self._latest - _JITTER
        if self._is_second:
            return self._shift(time // _BLOCK)
        self._latest = max(self._latest, time)
        return 0

    def _shift(self, block: int) -> int:
        """Return how far the clock is set back after a block; 0 if the block is not repeated."""
        if block not in self._shifts:
            begin = _EPOCH + timedelta(microseconds=block * _BLOCK)
            shown = begin.astimezone(self._zone)
            first, second = (shown.replace(fold=fold).astimezone(UTC) - _EPOCH for fold in (0, 1))
            shift = max(second - first, timedelta())
            self._shifts[block] = shift // timedelta(microseconds=1)
        return self._shifts[block]
