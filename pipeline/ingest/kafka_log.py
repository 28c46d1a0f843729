"""Kafka's authorizer log, many lines at a time: what `kafka_line` says of one.

What stands behind the time is the same in many lines, so each such text is read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, tzinfo
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.ingest import kafka_line
from pipeline.ingest.kafka_line import Reason
from pipeline.ingest.parsed import MICROSECOND, Parsed, Rejected, microseconds, records_table
from pipeline.ingest.record import Record

_MOST_REMEMBERED: Final = 300_000
_LINE_END: Final = 1 << 31

_LONGEST_RECORD: Final = 1 << 16
"""In bytes: how far apart the pieces of one record can be, since Kafka's texts have 32,767 each."""


class Piece(NamedTuple):
    """A part of a file: the byte at which it starts, and whether it is the last part."""

    source_file: str
    start: int
    is_last: bool


class KafkaLog:
    """Reads lines of one cluster's log in their order, piece of a file by piece of a file.

    ``zone``: that of the brokers' clocks. A line that is cut off was broken by a line break in what
    a client asked for, as a rule, and the lines after it are that client's text until the rest of
    the record comes: all these are quarantined. So lines are held back until that is settled.
    """

    def __init__(self, cluster: str, zone: tzinfo) -> None:
        self._cluster = cluster
        self._zone = zone
        self._known: dict[bytes, Record | Reason] = {}
        self._piece: Piece | None = None
        self._held = pa.array([], pa.binary())
        self._unsettled = 0
        """How many bytes ago the piece began, if it may begin within a broken record."""

    def parse(self, lines: pa.Array, piece: Piece) -> Iterator[Parsed]:
        """Yield what is settled of binary ``lines`` and of those before them."""
        if piece != self._piece:
            yield from self.finish()
            self._piece = piece
            self._unsettled = 0 if piece.start == 0 else _LONGEST_RECORD
        yield from self._settle(pa.concat_arrays([self._held, lines]), at_end=False)

    def finish(self) -> Iterator[Parsed]:
        """Yield what is left of the last piece."""
        if self._piece is not None:
            yield from self._settle(self._held, at_end=True)
        self._piece = None

    def _settle(self, lines: pa.Array, at_end: bool) -> Iterator[Parsed]:
        if not len(lines):
            return
        found = self._read(lines)
        until = len(lines)
        if found.rejected or self._unsettled:
            until = self._quarantine_between(lines, found.rejected, at_end)
        self._held = lines[until:]
        if until:
            yield self._parsed(lines, found, until)

    def _read(self, lines: pa.Array) -> _Read:
        heads = pc.binary_slice(lines, 0, kafka_line.TIME_LENGTH)
        has_time = pc.match_substring_regex(heads, f"^{kafka_line.TIME}$")
        rests = pc.binary_slice(lines, kafka_line.TIME_LENGTH, _LINE_END).dictionary_encode()
        says = [self._says(rest) for rest in rests.dictionary.to_pylist()]
        rows = np.cumsum([isinstance(each, Record) for each in says]) - 1
        codes = rests.indices.to_numpy()
        micros = self._microseconds(pc.if_else(has_time, heads, None))
        wrong = {code: each for code, each in enumerate(says) if isinstance(each, Reason)}
        suspects = np.flatnonzero(np.isin(codes, list(wrong)) | np.isnat(micros))
        is_timed = has_time.to_numpy(zero_copy_only=False)
        return _Read(
            records_table(each for each in says if isinstance(each, Record)),
            rows[codes] if len(rows) else codes,
            micros,
            {
                int(line): wrong.get(codes[line], Reason.TIME) if is_timed[line] else Reason.HEAD
                for line in suspects
            },
        )

    def _says(self, rest: bytes) -> Record | Reason:
        known = self._known.get(rest)
        if known is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            known = self._known[rest] = kafka_line.parse_rest(rest, self._cluster)
        return known

    def _microseconds(self, heads: pa.Array) -> NDArray[np.datetime64]:
        """Return the times in UTC; NaT where there is none."""
        times: NDArray[np.datetime64] = microseconds(
            pc.binary_slice(heads, 1, 24).cast(pa.string()),
            lambda minute: kafka_line.second_of(f"{minute}:00", self._zone),
        ).to_numpy(zero_copy_only=False)
        return times

    def _quarantine_between(
        self, lines: pa.Array, rejected: dict[int, Reason], at_end: bool
    ) -> int:
        """Reject the lines between the pieces of broken records; return how many are settled."""
        starts = np.cumsum(pc.binary_length(lines).to_numpy()) + np.arange(1, len(lines) + 1)
        size = int(starts[-1])
        starts = np.concatenate(([0], starts[:-1]))
        ends = [n for n in sorted(rejected) if _ends_as_record(lines[n].as_py())]
        cuts = [n for n in sorted(rejected) if rejected[n] is Reason.CUT_OFF]
        if self._unsettled:
            first = next(iter(ends), len(lines))
            if (
                first < len(lines)
                and starts[first] <= self._unsettled
                and not any(cut < first for cut in cuts)
            ):
                _reject(rejected, range(first))
            elif size < self._unsettled and not cuts and not at_end:
                return 0
            self._unsettled = 0
        after = -1
        for cut in cuts:
            if cut <= after:
                continue
            limit = starts[cut] + _LONGEST_RECORD
            end = next((n for n in ends if n > cut), len(lines))
            if end < len(lines) and starts[end] <= limit:
                _reject(rejected, range(cut + 1, end))
                after = end
            elif size <= limit and not at_end:
                return cut
            elif size <= limit and self._piece is not None and not self._piece.is_last:
                _reject(rejected, range(cut + 1, len(lines)))
                break
        return len(lines)

    def _parsed(self, lines: pa.Array, found: _Read, until: int) -> Parsed:
        source_file = self._piece.source_file if self._piece else ""
        rejected = [
            Rejected(source_file, lines[n].as_py(), reason.value, _day(found.micros[n]))
            for n, reason in found.rejected.items()
            if n < until
        ]
        good = np.ones(until, dtype=bool)
        good[[n for n in found.rejected if n < until]] = False
        index = pa.array(found.rows[:until][good], pa.int64())
        timestamp = pa.array(found.micros[:until][good]).cast(pa.int64()).cast(MICROSECOND)
        return Parsed(found.records, index, timestamp, rejected)


class _Read(NamedTuple):
    """What lines say by themselves: of each its row of ``records`` and its time."""

    records: pa.Table
    rows: NDArray[np.int64]
    micros: NDArray[np.datetime64]
    rejected: dict[int, Reason]


def _ends_as_record(line: bytes) -> bool:
    return line.removesuffix(b"\r").endswith(kafka_line.TAIL.encode())


def _reject(rejected: dict[int, Reason], lines: range) -> None:
    for line in lines:
        rejected.setdefault(line, Reason.BETWEEN)


def _day(time: np.datetime64) -> date | None:
    return None if np.isnat(time) else time.astype("datetime64[D]").item()
