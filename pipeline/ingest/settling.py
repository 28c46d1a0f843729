"""How far a log that is being written can be read: up to its last whole line, or record."""

from __future__ import annotations

from collections.abc import Callable

from aclbroker.pipeline.ingest.growth import SETTLED, EndOf, end_of_lines
from aclbroker.pipeline.ingest.kafka_log import LONGEST_RECORD, end_of_records
from aclbroker.pipeline.ingest.layouts import Layout
from aclbroker.pipeline.ingest.texts import HEAD, Text


def end_by(now: float, layout_of: Callable[[bytes], Layout | None]) -> EndOf:
    """Return what tells how far a log can be read at a time, in seconds since 1970.

    ``layout_of`` returns the layout of a Kafka's log by its beginning, None for our own. A finished
    file is read to its end: a compressed one, and one that nobody has written to for an hour. In a
    Kafka's log, what follows a broken record waits for the record's rest.
    """

    def end_of(text: Text, start: int, size: int) -> int:
        if text.is_compressed or text.is_opaque or now - text.modified >= SETTLED:
            return size
        end = end_of_lines(text, start, size)
        layout = layout_of(text.at(0, HEAD))
        if layout is None or not layout.is_breakable():
            return end
        return _before_broken(text, start, end, layout)

    return end_of


def _before_broken(text: Text, start: int, end: int, layout: Layout) -> int:
    begin = max(start, end - LONGEST_RECORD)
    data = text.at(begin, end)
    if begin > start:
        # The line that the piece begins in.
        data = data[data.find(b"\n") + 1 :]
    lines = data.split(b"\n")[:-1]
    waiting = lines[end_of_records(lines, layout) :]
    return end - sum(len(line) + 1 for line in waiting)
