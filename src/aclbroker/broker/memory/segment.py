"""A segment of a log: one array of bytes that never moves, and an index of 20 bytes a batch."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

from aclbroker.broker.memory.batch import Batch, read_batch

INDEX_ENTRY: Final = 20
"""How many bytes the index takes for a batch: its offset, its position and its time."""

_SMALLEST: Final = 4096
_LARGEST: Final = 1 << 20
_ALONE: Final = 4
"""A batch that takes more than this part of the next segment gets one of just its size."""


class Segment:
    """Batches in the order of their offsets, from ``base_offset`` on.

    Its array ``data`` has its size from the beginning, so that whoever reads can look at it for as
    long as it likes without a copy: nothing that was written changes. It may be the one batch that
    is to be in it.
    """

    __slots__ = (
        *("_data", "_latest", "_positions", "_view", "base_offset", "capacity", "created_ms"),
        *("end_offset", "max_timestamp", "offsets", "used"),
    )

    def __init__(self, base_offset: int, data: bytearray, created_ms: int) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.capacity = len(data)
        self.created_ms = created_ms
        self.used = 0
        self.max_timestamp = -1
        self.offsets = array("q")
        # Of each batch the latest time until then: these only grow.
        self._latest = array("q")
        self._positions = array("I")
        self._data = data
        self._view = memoryview(data).toreadonly()

    @property
    def count(self) -> int:
        """How many batches there are."""
        return len(self.offsets)

    def has_room(self, size: int) -> bool:
        """Tell whether a batch of that many bytes fits."""
        return self.used + size <= self.capacity

    def append(
        self, data: bytearray | memoryview, base_offset: int, last_offset: int, max_timestamp: int
    ) -> None:
        """Add a batch, for which there must be room."""
        end = self.used + len(data)
        if data is not self._data:
            self._data[self.used : end] = data
        self.max_timestamp = max(self.max_timestamp, max_timestamp)
        self.offsets.append(base_offset)
        self._positions.append(self.used)
        self._latest.append(self.max_timestamp)
        self.used = end
        self.end_offset = last_offset + 1

    def trimmed(self) -> Segment:
        """Return a copy that has room for nothing more."""
        made = Segment(self.base_offset, bytearray(self._view[: self.used]), self.created_ms)
        made._positions = self._positions
        made.offsets, made._latest = self.offsets, self._latest
        made.used, made.end_offset = self.used, self.end_offset
        made.max_timestamp = self.max_timestamp
        return made

    def batch(self, number: int) -> Batch:
        """Return the batch with a number."""
        return read_batch(self._view, self._positions[number])

    def batches(self) -> Iterator[Batch]:
        """Return all batches."""
        return map(self.batch, range(len(self.offsets)))

    def number_of(self, offset: int) -> int:
        """Return the number of the first batch that has this offset or a later one."""
        number = bisect_right(self.offsets, offset) - 1
        if number < 0:
            return 0
        return number if self.batch(number).last_offset >= offset else number + 1

    def number_at(self, timestamp: int) -> int:
        """Return the number of the first batch that has this time or a later one."""
        return bisect_left(self._latest, timestamp)

    def read(
        self, first: int, max_bytes: int, end_offset: int, *, whole: bool
    ) -> tuple[memoryview, int]:
        """Return whole batches from one with a number on, and the number behind the last of them.

        They take at most ``max_bytes``, but with ``whole`` the first is there in any case. They
        begin before ``end_offset``.
        """
        begin = self._positions[first]
        stop = bisect_left(self.offsets, end_offset)
        last = stop
        if self._end(stop) - begin > max_bytes:
            last = max(first, bisect_right(self._positions, begin + max_bytes) - 1)
            if last == first and whole and first < stop:
                last = first + 1
        return self._view[begin : self._end(last)], last

    def _end(self, number: int) -> int:
        """Return where the batch before a number ends."""
        return self._positions[number] if number < len(self._positions) else self.used


def capacity_for(size: int, held: int) -> int:
    """Return how many bytes a new segment has room for, whose first batch takes ``size``.

    It is as much as the log has ``held`` until now, within bounds, so that small logs take little.
    """
    capacity = min(_LARGEST, max(_SMALLEST, held))
    return size if size * _ALONE > capacity else capacity
