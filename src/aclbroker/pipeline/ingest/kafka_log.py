"""Kafka's authorizer log, many lines at a time: what `kafka_line` says of one.

`kafka_form` reads most lines. What stands behind the time in others is the same in many, so each
such text is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, tzinfo
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.broken_records import Marks
from aclbroker.pipeline.ingest.kafka_form import KafkaForm
from aclbroker.pipeline.ingest.kafka_line import NOT_DECISIONS, KafkaReason
from aclbroker.pipeline.ingest.kafka_records import said
from aclbroker.pipeline.ingest.layouts import OWN, Layout
from aclbroker.pipeline.ingest.memory import Lines
from aclbroker.pipeline.ingest.parsed import MICROSECOND, Parsed, Rejected, microseconds
from aclbroker.pipeline.ingest.repeated_hour import RepeatedHour
from aclbroker.pipeline.usage.grouping import encoded

_LINE_END: Final = 1 << 31


class Piece(NamedTuple):
    """A part of a file, and the byte at which it starts.

    ``is_whole``: no record goes on from what is before. Without it, only the beginning of a file is
    known for that. ``head`` is the beginning of the file, None if it is not known here.
    """

    source_file: str
    start: int
    is_whole: bool | None = None
    head: bytes | None = None


class KafkaLog:
    """Reads the lines of one cluster's log in their order, one piece of a file after the other.

    ``zone`` is the zone of the brokers' clocks, and ``layout`` is the layout of the lines.

    Usually a line is cut off because a client asked for a name with a line break. Then the next
    lines are that client's text, up to the record's rest: a line that is no record but ends as one.
    All lines before the rest are quarantined. If no such line comes within reach, a line that looks
    like a record may contain the rest (`broken_records`). Then all lines up to the last candidate
    are quarantined. Reading goes on behind them.
    """

    def __init__(self, cluster: str, zone: tzinfo, layout: Layout = OWN) -> None:
        self._cluster = cluster
        self._given_zone = zone
        self._zone = layout.zone(zone)
        self._layout = layout
        self._form = KafkaForm(cluster)
        self._repeated = RepeatedHour(self._zone)
        self._piece: Piece | None = None
        self._held: Lines | None = None
        self._unsettled = False
        """Whether it is not known yet if the piece begins in a record: its lines are held back."""
        self._carried = 0
        """The number of held-back lines, from the first one on, that are the text of a client."""

    def parse(self, lines: Lines, piece: Piece) -> Iterator[Parsed]:
        """Yield what ``lines`` say, and those before them that were held back."""
        if piece != self._piece:
            yield from self.finish()
            self._piece = piece
            self._unsettled = piece.start > 0 and not piece.is_whole and self._layout.is_breakable()
            self._carried = 0
            self._repeated.begin()
        if self._held is not None:
            lines = Lines.of(pa.concat_arrays([self._held.array, lines.array]))
        yield from self._settle(lines, at_end=False)

    def finish(self) -> Iterator[Parsed]:
        """Yield what is left of the last piece."""
        if self._held is not None:
            yield from self._settle(self._held, at_end=True)
        self._piece = None

    def _settle(self, lines: Lines, at_end: bool) -> Iterator[Parsed]:
        if not len(lines):
            return
        texts = _brought(self._layout, lines, self._given_zone)
        found = self._read(texts)
        self._held = None
        if self._layout.is_breakable() and (found.rejected or self._unsettled):
            marks = _marks(_sizes(self._layout, lines), texts, found.rejected)
            if self._unsettled and not (at_end or marks.settle):
                self._held = lines
                return
            first_open = None if at_end else marks.first_open
            self._quarantine(marks, found.rejected, first_open)
            if first_open is not None:
                # The end of the client's text is in later lines. These lines are read again then.
                self._held = Lines.of(lines.some(np.arange(first_open, len(lines))))
                found = found.before(first_open)
        yield self._parsed(lines, found)

    def _quarantine(
        self, marks: Marks, rejected: dict[int, KafkaReason], first_open: int | None
    ) -> None:
        """Reject the lines between the pieces of broken records.

        Lines from ``first_open`` on are judged later, when they are read again.
        """
        before = self._carried
        if self._unsettled and marks.begin_broken:
            before = max(before, marks.ends[0])
        self._unsettled, self._carried = False, 0
        count = len(marks.starts) if first_open is None else first_open
        for between in (range(before), *marks.between(count)):
            self._carried = max(self._carried, between.stop - count)
            for line in between:
                if rejected.get(line, KafkaReason.OTHER) in NOT_DECISIONS:
                    rejected[line] = KafkaReason.BETWEEN

    def _read(self, lines: Lines) -> _Read:
        """Return what lines say by themselves: those of the common form and the others."""
        formed = self._form.read(lines, self._zone)
        if formed is None:
            return self._read_others(lines.array)
        is_other = np.ones(len(lines), bool)
        is_other[formed.rows] = False
        others = np.flatnonzero(is_other)
        times = np.empty(len(lines), "datetime64[us]")
        times[formed.rows] = formed.micros.view("datetime64[us]")
        is_event, rows = ~is_other, np.arange(len(lines))
        if not len(others):
            return _Read(formed.records, rows, times, {}, is_event)
        found = self._read_others(lines.some(others))
        records = pa.concat_tables([formed.records, encoded(found.records)])
        rows[formed.rows] = np.arange(len(formed.rows))
        rows[others] = found.rows + len(formed.rows)
        times[others], is_event[others] = found.micros, found.is_event
        rejected = {int(others[line]): reason for line, reason in found.rejected.items()}
        return _Read(records, rows, times, rejected, is_event)

    def _read_others(self, lines: pa.Array) -> _Read:
        heads = pc.binary_slice(lines, 0, kafka_line.TIME_LENGTH)
        has_time = pc.match_substring_regex(heads, f"^{kafka_line.TIME}$")
        rests = pc.binary_slice(lines, kafka_line.TIME_LENGTH, _LINE_END).dictionary_encode()
        records, rows, wrong, is_event = said(rests.dictionary, self._cluster)
        codes = rests.indices.to_numpy()
        micros = self._microseconds(pc.if_else(has_time, heads, None))
        suspects = np.flatnonzero(np.isin(codes, list(wrong)) | np.isnat(micros))
        is_timed = has_time.to_numpy(zero_copy_only=False)
        rejected = {
            line: wrong.get(codes[line], KafkaReason.TIME)
            if is_timed[line]
            else kafka_line.without_head(lines[line].as_py())
            for line in suspects.tolist()
        }
        return _Read(records, rows[codes], micros, rejected, is_event[codes])

    def _microseconds(self, heads: pa.Array) -> NDArray[np.datetime64]:
        """Return the times in UTC; NaT where there is none."""
        times: NDArray[np.datetime64] = microseconds(
            pc.binary_slice(heads, 1, 24).cast(pa.string()),
            lambda minute: kafka_line.second_of(f"{minute}:00", self._zone),
        ).to_numpy(zero_copy_only=False)
        return times

    def _parsed(self, lines: Lines, found: _Read) -> Parsed:
        found = found._replace(micros=self._repeated.corrected(found.micros))
        source_file = self._piece.source_file if self._piece else ""
        rejected = [
            Rejected(source_file, lines.line(line), reason.value, _day(found.micros[line]))
            for line, reason in found.rejected.items()
        ]
        good = found.is_event.copy()
        good[list(found.rejected)] = False
        rows = found.rows[good]
        is_each = found.records.num_rows == len(rows) and bool((np.diff(rows) == 1).all())
        index = None if is_each else pa.array(rows, pa.int64())
        timestamp = pa.array(found.micros[good]).cast(pa.int64()).cast(MICROSECOND)
        return Parsed(found.records, index, timestamp, rejected)


def end_of_records(lines: list[bytes], layout: Layout = OWN) -> int:
    """Return how many of the last lines of a log can be read before more is written to it.

    ``lines``: the last ones; the broker wrote at least `kafka_line.LONGEST_RECORD` bytes in them.
    A broken record is not read, nor what is behind it, until its rest has come: what follows it may
    be forged.
    """
    lines = [layout.brought(line, UTC) for line in lines]
    last_rest = max((n for n, line in enumerate(lines) if _ends_broken(line)), default=-1)
    for number in range(last_rest + 1, len(lines)):
        if kafka_line.parse(lines[number], "") is KafkaReason.CUT_OFF:
            return number
    return len(lines)


def _ends_broken(line: bytes) -> bool:
    is_no_record = isinstance(kafka_line.parse(line, ""), KafkaReason)
    return is_no_record and kafka_line.ends_as_record(line)


def _brought(layout: Layout, lines: Lines, given: tzinfo) -> Lines:
    """Return lines of a layout in Kafka's own layout, which `kafka_line` reads."""
    if layout == OWN:
        return lines
    each = (layout.brought(lines.line(row), given) for row in range(len(lines)))
    return Lines.of(pa.array(each, pa.binary()))


class _Read(NamedTuple):
    """What lines say by themselves: of each its row of ``records`` and its time.

    One that is neither rejected nor ``is_event`` records no decision.
    """

    records: pa.Table
    rows: NDArray[np.int64]
    micros: NDArray[np.datetime64]
    rejected: dict[int, KafkaReason]
    is_event: NDArray[np.bool_]

    def before(self, count: int) -> _Read:
        """Return the same for the first ``count`` lines alone."""
        rejected = {line: reason for line, reason in self.rejected.items() if line < count}
        is_event = self.is_event.copy()
        is_event[count:] = False
        micros = self.micros.copy()
        micros[count:] = np.datetime64("NaT")
        return self._replace(rejected=rejected, is_event=is_event, micros=micros)


def _sizes(layout: Layout, lines: Lines) -> NDArray[np.int64]:
    """Return the `Layout.size` of each line."""
    if layout == OWN and not pc.any(pc.match_substring(lines.array, kafka_line.REPLACED)).as_py():
        return (lines.ends - lines.starts + 1).astype(np.int64)
    return np.array([layout.size(lines.line(row)) for row in range(len(lines))], np.int64)


def _marks(sizes: NDArray[np.int64], texts: Lines, rejected: dict[int, KafkaReason]) -> Marks:
    after = np.cumsum(sizes)
    is_record = np.ones(len(sizes), bool)
    is_record[list(rejected)] = False
    doubtful = sorted(line for line, reason in rejected.items() if reason not in NOT_DECISIONS)
    return Marks(
        after - sizes,
        int(after[-1]),
        [line for line in doubtful if rejected[line] is KafkaReason.CUT_OFF],
        [line for line in doubtful if kafka_line.ends_as_record(texts.line(line))],
        np.flatnonzero(is_record),
        texts.line,
    )


def _day(time: np.datetime64) -> date | None:
    return None if np.isnat(time) else time.astype("datetime64[D]").item()
