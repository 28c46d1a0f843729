"""Where batches of a log begin and end, by which records are acquired together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter

from aclbroker.broker.memory.share.in_flight import Acquired

Bounds = Sequence[tuple[int, int]]
"""The first and the last offset of each batch of a log that was read, in order."""


def last_of_batch_with(bounds: Bounds, offset: int) -> int:
    """Return the last offset of the batch that has one, or of the batch before it."""
    found = bounds[0][1]
    for first, last in bounds:
        if first > offset:
            break
        found = last
    return found


def parted(bounds: Bounds, first: int, last: int, size: int) -> list[tuple[int, int]]:
    """Return records in parts of at least ``size``, which begin where batches of the log do."""
    parts = []
    begin = first
    if last - first + 1 > size:
        for base, _ in bounds:
            if base > last:
                break
            if base - begin >= max(1, size):
                parts.append((begin, base - 1))
                begin = base
    return [*parts, (begin, last)]


def overlapping_bounds(bounds: Bounds, first: int, last: int) -> Bounds:
    """Return those of some bounds that have offsets between two, both included."""
    begin = bisect_left(bounds, first, key=itemgetter(1))
    return bounds[begin : bisect_right(bounds, last, key=itemgetter(0))]


def outside(acquired: Acquired, ranges: Bounds) -> Iterator[Acquired]:
    """Yield what of acquired records is in none of some ranges, which are in order."""
    begin = acquired.first
    for first, last in ranges:
        if last < begin or first > acquired.last:
            continue
        if first > begin:
            yield Acquired(begin, first - 1, acquired.deliveries)
        begin = last + 1
    if begin <= acquired.last:
        yield Acquired(begin, acquired.last, acquired.deliveries)
