"""How far a log that is being written can be read: up to its last whole line, or record."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final

from aclbroker.pipeline.ingest.growth import SETTLED, EndOf, end_of_lines
from aclbroker.pipeline.ingest.kafka_line import LONGEST_RECORD
from aclbroker.pipeline.ingest.kafka_log import end_of_records
from aclbroker.pipeline.ingest.layouts import Layout
from aclbroker.pipeline.ingest.texts import HEAD, Text

_MOST_LOOKED_AT: Final = 1 << 26
"""The most bytes at the end of a log that are searched for a broken record."""

LayoutOf = Callable[[bytes, Iterable[bytes]], Layout | None]
"""Returns the layout of a log of Kafka by its beginning and more lines; None for our own form."""


def end_by(now: float, layout_of: LayoutOf) -> EndOf:
    """Return a function that returns up to which byte a log can be read.

    ``now`` is in seconds since 1970. A finished file can be read to its end: a compressed file, and
    a file without a change for an hour. In a log of Kafka, the lines behind a broken record wait
    for the record's rest.
    """

    def end_of(text: Text, start: int, size: int) -> int:
        if text.is_compressed or text.is_opaque or now - text.modified >= SETTLED:
            return size
        end = end_of_lines(text, start, size)
        lines = _last_lines(text, start, end, LONGEST_RECORD)
        layout = layout_of(text.at(0, HEAD), lines)
        if layout is None or not layout.is_breakable():
            return end
        return _before_broken(_last_records(text, start, end, layout), end, layout)

    return end_of


def _last_lines(text: Text, start: int, end: int, length: int) -> list[bytes]:
    """Return the whole lines in the last ``length`` bytes."""
    begin = max(start, end - length)
    data = text.at(begin, end)
    if begin > start:
        # The line that the piece begins in.
        data = data[data.find(b"\n") + 1 :]
    return data.split(b"\n")[:-1]


def _last_records(text: Text, start: int, end: int, layout: Layout) -> list[bytes]:
    """Return the last whole lines that have `LONGEST_RECORD` bytes by `Layout.size` at most.

    In the file they may have many times that: if the lines are short, most is envelopes.
    """
    length = LONGEST_RECORD
    while True:
        lines = _last_lines(text, start, end, length)
        behind = list(accumulate(layout.size(line) for line in reversed(lines)))
        near = bisect_right(behind, LONGEST_RECORD)
        if near < len(lines) or not length < min(end - start, _MOST_LOOKED_AT):
            return lines[len(lines) - near :]
        length *= 2


def _before_broken(lines: list[bytes], end: int, layout: Layout) -> int:
    waiting = lines[end_of_records(lines, layout) :]
    return end - sum(len(line) + 1 for line in waiting)
