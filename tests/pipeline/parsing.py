"""What many lines say, in the form in which what a single one says can be compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from aclbroker.pipeline.ingest.memory import REACH, Lines
from aclbroker.pipeline.ingest.parsed import Parsed, Rejected
from aclbroker.pipeline.ingest.record import Record

Event = tuple[datetime, Record]


class Result(NamedTuple):
    """Events and lines that are none, in their order."""

    events: list[Event]
    rejected: list[Rejected]
    roll_ups: list[tuple[int, datetime]]
    """For each of the events, how many there are like it, and when the last of them was."""

    @property
    def days(self) -> dict[bytes, date | None]:
        """The day that each quarantined line claims."""
        return {each.line: each.day for each in self.rejected}

    @property
    def reasons(self) -> list[tuple[bytes, str]]:
        return [(each.line, each.reason) for each in self.rejected]


def collected(batches: Iterable[Parsed]) -> Result:
    """Return what is found in batches together."""
    result = Result([], [], [])
    for parsed in batches:
        rows = parsed.records.to_pylist()
        index = range(len(rows)) if parsed.index is None else parsed.index.to_pylist()
        times = parsed.timestamp.to_pylist()
        assert len(index) == len(times)
        counts, lasts = [1] * len(times), times
        if parsed.rolled_up is not None:
            counts, lasts = (column.to_pylist() for column in parsed.rolled_up)
        result.events.extend(
            (time.astimezone(UTC), Record(**rows[row]))
            for row, time in zip(index, times, strict=True)
        )
        roll_ups = zip(counts, (last.astimezone(UTC) for last in lasts), strict=True)
        result.roll_ups.extend(roll_ups)
        result.rejected.extend(parsed.rejected)
    return result


def binary(lines: Iterable[bytes]) -> Lines:
    """Return lines that follow one another in memory, as those that Spark read do."""
    return Lines.of(pa.array(list(lines), pa.binary()))


def in_text(lines: Sequence[bytes]) -> Lines:
    """Return lines that lie in memory as in a file, with line feeds behind them."""
    sizes = np.array([len(line) for line in lines], np.int64)
    starts = np.cumsum(sizes + 1) - (sizes + 1)
    text = b"".join(line + b"\n" for line in lines) + bytes(REACH)
    return Lines(np.frombuffer(text, np.uint8), starts, starts + sizes)
