"""Reads log files with Spark: each line is counted as an event, or quarantined, never both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.ingest.json_log import JsonLog
from pipeline.ingest.kafka_log import KafkaLog, Piece
from pipeline.ingest.parsed import Parsed, Rejected
from pipeline.ingest.usage import COUNTS, KEYS, Usage
from pipeline.spark.files import as_pattern
from pipeline.spark.workers import uncollected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

UTC: Final = ZoneInfo("UTC")

READER_OPTIONS: Final = {
    # A carriage return in a name must not begin a line that looks like a record.
    "lineSep": "\n",
    # A path such as cluster=a/ is a place, and adds no column.
    "recursiveFileLookup": "true",
}
"""How log files are to be read as text, at once or as a stream."""


class IngestError(Exception):
    """The input cannot be read; the message says what to do."""


class Form(StrEnum):
    """How the lines of an input are written.

    One input has one form. In a Kafka's log a client can forge any line, one of our form as well.
    """

    JSONL = "jsonl"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read lines.

    ``cluster``: the name for lines that do not name their cluster, which are those of Kafka and the
    quarantined. ``zone``: that of the brokers' clocks, for Kafka's log.
    """

    form: Form
    cluster: str
    zone: tzinfo = UTC


class Ingested(NamedTuple):
    """The tables `pipeline.schemas.events` (or ``usage``) and `pipeline.schemas.quarantine`.

    Both are of the rows ``kept``: who needs both lets Spark keep these (``persist``), so that the
    files are read once.
    """

    events: DataFrame
    quarantine: DataFrame
    kept: DataFrame


def form_of(spark: SparkSession, paths: Sequence[str]) -> Form:
    """Return the form of the first line. Raises IngestError if there is none, as `lines` does."""
    found = lines(spark, paths).where(F.length(F.trim("line")) > 0).select("line").first()
    if found is None:
        raise IngestError(f"nothing is in {', '.join(paths)}")
    return Form.JSONL if found["line"].startswith("{") else Form.KAFKA


def lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the lines of files, as `events` and `usage` take them.

    ``paths``: files, directories (with all below them, but for names that begin with ``.`` or
    ``_``), patterns of these, or URLs that Spark has a connector for; what ends in ``.gz`` or
    ``.zst`` is decompressed. Raises IngestError if one does not exist.
    """
    if not paths:
        raise IngestError("no input was named")
    try:
        found = [as_pattern(spark, path) for path in paths]
        return lines_of(spark.read.options(**READER_OPTIONS).text(found))
    except PySparkException as error:
        raise IngestError(f"the input cannot be read: {error.getMessage() or error}") from error
    except Py4JJavaError as error:  # for one, of a pattern that is none
        reason = error.java_exception.getMessage()
        raise IngestError(f"the input cannot be read: {reason}") from error


def lines_of(text: DataFrame) -> DataFrame:
    """Return the columns that are needed of files that were read as text with READER_OPTIONS."""
    return text.select(
        F.col("value").alias("line"),
        F.col("_metadata.file_path").alias("source_file"),
        F.col("_metadata.file_block_start").alias("start"),
    )


def events(found: DataFrame, reading: Reading) -> Ingested:
    """Return the events of `lines`, and the lines that are none."""
    rows = found.mapInArrow(partial(_event_batches, reading), _either(schemas.events()))
    return _parted(rows, schemas.events())


def usage(found: DataFrame, reading: Reading) -> Ingested:
    """Return the events of `lines`, counted, and the lines that are none; else as `events`."""
    rows = found.mapInArrow(partial(_usage_batches, reading), _either(schemas.usage()))
    return _parted(rows, schemas.usage())


def usage_of(found: DataFrame) -> DataFrame:
    """Return the table of `events`, counted."""
    ones = {"events": F.lit(1), "first_seen": F.col("timestamp"), "last_seen": F.col("timestamp")}
    return added_up(found.withColumns(ones))


def added_up(found: DataFrame) -> DataFrame:
    """Return usage with one row a key."""
    return found.groupBy(*KEYS).agg(*_sums()).select(*schemas.usage().fieldNames())


def _sums() -> list[F.Column]:
    functions = {"sum": F.sum, "min": F.min, "max": F.max}
    return [functions[how](name).alias(name) for name, how in COUNTS.items()]


_QUARANTINE: Final = ("source_file", "line", "reason")


def _either(schema: StructType) -> StructType:
    """The columns of a table, and those of quarantined lines, of which one or the other is null."""
    from pyspark.sql.types import StringType, StructField, StructType

    others = [StructField(name, StringType()) for name in _QUARANTINE]
    return StructType([*schema.fields, *others])


def _parted(rows: DataFrame, schema: StructType) -> Ingested:
    quarantined = rows.where(F.col("reason").isNotNull())
    return Ingested(
        rows.where(F.col("reason").isNull()).select(*schema.fieldNames()),
        quarantined.select(*schemas.quarantine().fieldNames()),
        rows,
    )


Batches = Iterator[pa.RecordBatch]


def _event_batches(reading: Reading, batches: Batches) -> Batches:
    schema = schemas.arrow(_either(schemas.events()))
    for parsed in _parsed(reading, batches):
        yield from _quarantined(parsed.rejected, reading, schema)
        if len(parsed.timestamp):
            records = parsed.records
            if parsed.index is not None:
                records = records.take(parsed.index)
            day = parsed.timestamp.cast(pa.date32())
            table = records.append_column("day", day)
            yield from _batches(table.append_column("timestamp", parsed.timestamp), schema)


def _usage_batches(reading: Reading, batches: Batches) -> Batches:
    schema = schemas.arrow(_either(schemas.usage()))
    counted = Usage()
    for parsed in _parsed(reading, batches):
        yield from _quarantined(parsed.rejected, reading, schema)
        table = counted.add(parsed)
        if table is not None:
            yield from _batches(table, schema)
    table = counted.rest()
    if table is not None:
        yield from _batches(table, schema)


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


def _parsed(reading: Reading, batches: Batches) -> Iterator[Parsed]:
    with uncollected():
        if reading.form is Form.JSONL:
            json_log = JsonLog()
            for batch in batches:
                yield from json_log.parse(_bytes(batch), batch.column("source_file"))
            return
        kafka_log = KafkaLog(reading.cluster, reading.zone)
        for batch in batches:
            for piece, start, end in _pieces(batch):
                yield from kafka_log.parse(_bytes(batch)[start:end], piece)
        yield from kafka_log.finish()


def _bytes(batch: pa.RecordBatch) -> pa.Array:
    """Return the lines as bytes: that they are UTF-8 is still to be seen."""
    line = batch.column("line")
    return line.cast(pa.binary()) if line.type == pa.string() else line.cast(pa.large_binary())


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[Piece, int, int]]:
    """Yield the pieces of files in a batch, and which of its rows are theirs."""
    source_file, start = batch.column("source_file"), batch.column("start")
    codes = source_file.dictionary_encode().indices.to_numpy()
    changes = np.diff(codes).astype(bool) | np.diff(start.to_numpy()).astype(bool)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
    for first, end in pairwise(bounds):
        if end > first:
            yield Piece(source_file[first].as_py(), start[first].as_py()), first, end
