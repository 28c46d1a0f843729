"""Reads log files with Spark: each line is counted as an event, or quarantined, never both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.columns import Columns
from aclbroker.pipeline.ingest.conversion_pattern import compiled
from aclbroker.pipeline.ingest.envelopes import Envelope
from aclbroker.pipeline.ingest.foreign_files import rows_of
from aclbroker.pipeline.ingest.hours import broker_of, hours_rows
from aclbroker.pipeline.ingest.json_log import JsonLog
from aclbroker.pipeline.ingest.kafka_log import KafkaLog, Piece
from aclbroker.pipeline.ingest.layout_search import layout_of, own_envelope
from aclbroker.pipeline.ingest.layouts import OWN, Layout, TextLayout
from aclbroker.pipeline.ingest.memory import Lines
from aclbroker.pipeline.ingest.parsed import Parsed, Rejected
from aclbroker.pipeline.ingest.positioned import Mark, packed_rows, positioned_rows
from aclbroker.pipeline.ingest.sources import worker_lines
from aclbroker.pipeline.ingest.usage import usage_rows
from aclbroker.pipeline.spark.tasks import busy_tasks
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.counting import Counting
from aclbroker.pipeline.usage.hours import HOURS_COUNTS, HOURS_KEYS, HOURS_SCHEMA, added_up
from aclbroker.pipeline.usage.packing import packed, unpacked
from aclbroker.pipeline.usage.summary import Summary, combined
from aclbroker.pipeline.usage.table import COUNTS, KEYS, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

UTC: Final = ZoneInfo("UTC")


class LogForm(StrEnum):
    """How the lines of a file are written.

    One file has one form. A client can forge any line of a Kafka's log, and so a line of our form
    as well.
    """

    JSONL = "jsonl"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read lines.

    ``form``: that of all files; None if each file tells by its first line. ``cluster``: the name
    for lines that do not name their cluster, which are those of Kafka and the quarantined.
    ``zone``: that of the brokers' clocks, for Kafka's log. ``pattern``: the conversion pattern of
    Kafka's log, if it is told. ``first``: the beginning of the first file, by which those are read
    whose own beginning a task does not see, which are parts of large files at URLs. ``columns``:
    those of a table that somebody else wrote; then the rest is of no use, but ``cluster``, and
    ``zone`` for times without one.
    """

    form: LogForm | None
    cluster: str
    zone: tzinfo = UTC
    pattern: str | None = None
    first: bytes = b""
    columns: Columns | None = None

    def layout_of(self, head: bytes, more: Iterable[bytes] = ()) -> Layout | None:
        """Return the layout of a log of Kafka by its beginning; None for our own form.

        ``more`` are further lines to search if the beginning has no record.
        """
        if self.form is LogForm.JSONL:
            return None
        found = layout_of(head, more, self.pattern)
        if found is None and self.form is LogForm.KAFKA:
            return OWN if self.pattern is None else TextLayout(compiled(self.pattern))
        return found


class Ingested(NamedTuple):
    """The tables `pipeline.schemas.events` and `pipeline.schemas.quarantine`."""

    events: DataFrame
    quarantine: DataFrame


_Together = Callable[[Iterable[pa.Table]], Iterator[pa.Table]]


class Counted(NamedTuple):
    """The tables of usage and of quarantined lines, and which files had events.

    All are of the rows ``kept``: who needs several lets Spark keep these (``persist``), so that the
    files are read once. ``read`` has the column ``source_file``.
    """

    usage: Usage
    quarantine: DataFrame
    kept: DataFrame
    read: DataFrame

    def summary(self) -> pa.Table:
        """Return what `usage.summary` has of all that was read."""
        return pa.concat_tables([Summary().table(), *self._packed("summary", combined)])

    def hours(self) -> pa.Table:
        """Return the numbers of events by broker and hour (`usage.hours`)."""
        return pa.concat_tables([HOURS_SCHEMA.empty_table(), *self._packed("hours", added_up)])

    def _packed(self, name: str, together: _Together) -> Iterator[pa.Table]:
        """Yield the tables in a column. In the tasks, ``together`` merges many tables into few."""
        rows = self.kept.where(F.col(name).isNotNull()).select(name)
        # What comes to the driver must not grow with the tasks that read the log.
        busy = busy_tasks(rows.sparkSession)
        rows = rows if busy is None else rows.coalesce(busy)
        found = rows.mapInArrow(partial(_combined_batches, name, together), f"{name} binary")
        return unpacked(found.toArrow()[name])


def events(found: DataFrame, reading: Reading) -> Ingested:
    """Return the events of `lines`, and the lines that are none."""
    schema = schemas.events()
    rows = found.mapInArrow(partial(_event_batches, reading), _either(schema))
    events = rows.where(F.col("reason").isNull()).select(*schema.fieldNames())
    return Ingested(events, _quarantine(rows))


def usage(found: DataFrame, reading: Reading) -> Counted:
    """Return the events of `lines`, counted, and the lines that are none."""
    rows = found.mapInArrow(partial(_usage_batches, reading), _either(_packed()))
    read = rows.where(F.col("reason").isNull() & F.col("source_file").isNotNull())
    return Counted(Usage(tables=rows), _quarantine(rows), rows, read.select("source_file"))


def positioned(found: DataFrame, reading: Reading, mark: Mark) -> Usage:
    """Return the events of `lines`, counted by `positioned.KEYS`."""
    rows = found.mapInArrow(partial(_positioned_batches, reading, mark), "packed binary")
    return Usage(tables=rows)


_QUARANTINE: Final = ("source_file", "line", "reason")


def _either(schema: StructType) -> StructType:
    """The columns of a table and those of quarantined lines; in each row, one kind is null."""
    from aclbroker.pipeline.frames.types import StringType, StructField, StructType

    others = [StructField(name, StringType()) for name in _QUARANTINE]
    return StructType([*schema.fields, *others])


def _packed() -> StructType:
    """Return columns for packed usage, summaries and hours, and for quarantined lines."""
    from aclbroker.pipeline.frames.types import BinaryType, StructField, StructType

    quarantine = schemas.quarantine()
    return StructType(
        [
            *(quarantine["cluster"], quarantine["day"]),
            *(StructField(name, BinaryType()) for name in ("packed", "summary", "hours")),
        ]
    )


def _quarantine(rows: DataFrame) -> DataFrame:
    quarantined = rows.where(F.col("reason").isNotNull())
    return quarantined.select(*schemas.quarantine().fieldNames())


Batches = Iterator[pa.RecordBatch]


def _event_batches(reading: Reading, batches: Batches) -> Batches:
    schema = schemas.arrow(_either(schemas.events()))
    for _, parsed in _parsed(reading, batches):
        yield from _quarantined(parsed.rejected, reading, schema)
        if len(parsed.timestamp):
            records = parsed.records
            if parsed.index is not None:
                records = records.take(parsed.index)
            ones = pa.repeat(pa.scalar(1, pa.int64()), len(parsed.timestamp))
            count, last = parsed.rolled_up or (ones, parsed.timestamp)
            columns = {
                "day": parsed.timestamp.cast(pa.date32()),
                "timestamp": parsed.timestamp,
                "events": count,
                "last_timestamp": last,
            }
            for name, column in columns.items():
                records = records.append_column(name, column)
            yield from _batches(records, schema)


def _usage_batches(reading: Reading, batches: Batches) -> Batches:
    schema = schemas.arrow(_either(_packed()))
    counting, summary = Counting(KEYS, COUNTS), Summary()
    hours = Counting(HOURS_KEYS, HOURS_COUNTS)
    read: set[str] = set()
    for source_file, parsed in _parsed(reading, batches):
        yield from _quarantined(parsed.rejected, reading, schema)
        summary.add_lines((each.day, each.reason) for each in parsed.rejected)
        if len(parsed.timestamp):
            read.add(source_file)
            # The files of a table are parts of it, so they do not stand for brokers.
            broker = broker_of(source_file) if reading.columns is None else None
            early = hours.add(hours_rows(parsed, broker))
            if early is not None:
                yield from _batches(_packed_column("hours", early), schema)
            found = counting.add(usage_rows(parsed))
            if found is not None:
                summary.add(found)
                yield from _batches(_packed_column("packed", found), schema)
    found = counting.rest()
    if found is not None:
        summary.add(found)
        yield from _batches(_packed_column("packed", found), schema)
    yield from _batches(_packed_column("summary", summary.table()), schema)
    of_hours = hours.rest()
    if of_hours is not None:
        yield from _batches(_packed_column("hours", of_hours), schema)
    if read:
        yield from _batches(pa.table({"source_file": pa.array(sorted(read))}), schema)


def _positioned_batches(reading: Reading, mark: Mark, batches: Batches) -> Batches:
    parsed = (each for _, each in _parsed(reading, batches) if len(each.timestamp))
    yield from packed_rows(map(positioned_rows, parsed), mark)


def _combined_batches(name: str, together: _Together, batches: Batches) -> Batches:
    tables = (table for batch in batches for table in unpacked(batch.column(name)))
    for found in together(tables):
        yield from _packed_column(name, found).to_batches()


def _packed_column(name: str, table: pa.Table) -> pa.Table:
    return pa.table({name: pa.array([packed(table)], pa.binary())})


def _quarantined(rejected: Sequence[Rejected], reading: Reading, schema: pa.Schema) -> Batches:
    if not rejected:
        return
    texts = [each.line.decode(errors="replace") for each in rejected]
    columns = {
        "cluster": pa.repeat(reading.cluster, len(rejected)),
        "day": pa.array([each.day for each in rejected], pa.date32()),
        "source_file": pa.array([each.source_file for each in rejected]),
        "line": pa.array(texts, pa.string()),
        "reason": pa.array([each.reason for each in rejected]),
    }
    yield from _batches(pa.table(columns), schema)


def _batches(table: pa.Table, schema: pa.Schema) -> Batches:
    """Yield a table in the schema's columns; those that it does not have are null."""
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    yield from pa.Table.from_arrays(columns, schema=schema).to_batches()


def _parsed(reading: Reading, batches: Batches) -> Iterator[tuple[str, Parsed]]:
    """Yield what lines, or rows, say, and of which file."""
    if reading.columns is not None:
        with uncollected():
            yield from rows_of(batches, reading.columns, reading.cluster, reading.zone)
        return
    json_log = JsonLog()
    kafka_logs: dict[Layout, KafkaLog] = {}
    kafka_log: KafkaLog | None = None
    envelope: Envelope | None = None
    piece = Piece("", -1)
    with uncollected():
        for found, lines in worker_lines(batches):
            if found != piece:
                if kafka_log is not None:
                    yield from _of(piece, kafka_log.finish())
                some = (lines.line(row) for row in range(len(lines)))
                beginning = _beginning(found, lines, reading)
                layout = reading.layout_of(beginning, some)
                envelope = own_envelope(beginning) if layout is None else None
                piece, kafka_log = found, None
                if layout is not None:
                    new = KafkaLog(reading.cluster, reading.zone, layout)
                    kafka_log = kafka_logs.setdefault(layout, new)
            if kafka_log is None:
                own = lines if envelope is None else _opened(lines, envelope)
                yield from _of(piece, json_log.parse(own, piece.source_file))
            else:
                yield from _of(piece, kafka_log.parse(lines, piece))
        if kafka_log is not None:
            yield from _of(piece, kafka_log.finish())


def _opened(lines: Lines, envelope: Envelope) -> Lines:
    """Return the lines inside an envelope. A line without the envelope stays as it is."""
    texts = (lines.line(row) for row in range(len(lines)))
    opened = (text if (inner := envelope.opened(text)) is None else inner for text in texts)
    return Lines.of(pa.array(opened, pa.binary()))


def _of(piece: Piece, found: Iterable[Parsed]) -> Iterator[tuple[str, Parsed]]:
    return ((piece.source_file, each) for each in found)


def _beginning(piece: Piece, lines: Lines, reading: Reading) -> bytes:
    """Return the beginning of the file that a piece is of, or of one that is to be like it."""
    if piece.head is not None:
        return piece.head
    if piece.start:
        return reading.first
    return b"\n".join(lines.line(row) for row in range(min(len(lines), 100)))
