"""Reads log files with Spark: each line is counted as an event, or quarantined, never both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import functions as F

from aclbroker.pipeline import schemas
from aclbroker.pipeline.ingest.json_log import JsonLog
from aclbroker.pipeline.ingest.kafka_log import KafkaLog
from aclbroker.pipeline.ingest.parsed import Parsed, Rejected
from aclbroker.pipeline.ingest.sources import first_line, worker_lines
from aclbroker.pipeline.ingest.usage import usage_rows
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.counting import Counting
from aclbroker.pipeline.usage.packing import packed
from aclbroker.pipeline.usage.table import COUNTS, KEYS, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

UTC: Final = ZoneInfo("UTC")


class LogForm(StrEnum):
    """How the lines of an input are written.

    One input has one form. A client can forge any line of a Kafka's log, and so a line of our form
    as well.
    """

    JSONL = "jsonl"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read lines.

    ``cluster``: the name for lines that do not name their cluster, which are those of Kafka and the
    quarantined. ``zone``: that of the brokers' clocks, for Kafka's log.
    """

    form: LogForm
    cluster: str
    zone: tzinfo = UTC


class Ingested(NamedTuple):
    """The tables `pipeline.schemas.events` and `pipeline.schemas.quarantine`."""

    events: DataFrame
    quarantine: DataFrame


class Counted(NamedTuple):
    """The tables of usage and of quarantined lines.

    Both are of the rows ``kept``: who needs both lets Spark keep these (``persist``), so that the
    files are read once.
    """

    usage: Usage
    quarantine: DataFrame
    kept: DataFrame


def form_of(spark: SparkSession, paths: Sequence[str]) -> LogForm:
    """Return the form of the first line. Raises IngestError if there is none, as `lines` does."""
    return LogForm.JSONL if first_line(spark, paths).startswith("{") else LogForm.KAFKA


def events(found: DataFrame, reading: Reading) -> Ingested:
    """Return the events of `lines`, and the lines that are none."""
    schema = schemas.events()
    rows = found.mapInArrow(partial(_event_batches, reading), _either(schema))
    events = rows.where(F.col("reason").isNull()).select(*schema.fieldNames())
    return Ingested(events, _quarantine(rows))


def usage(found: DataFrame, reading: Reading) -> Counted:
    """Return the events of `lines`, counted, and the lines that are none."""
    rows = found.mapInArrow(partial(_usage_batches, reading), _either(_packed()))
    return Counted(Usage(tables=rows), _quarantine(rows), rows)


_QUARANTINE: Final = ("source_file", "line", "reason")


def _either(schema: StructType) -> StructType:
    """The columns of a table and those of quarantined lines; in each row, one kind is null."""
    from pyspark.sql.types import StringType, StructField, StructType

    others = [StructField(name, StringType()) for name in _QUARANTINE]
    return StructType([*schema.fields, *others])


def _packed() -> StructType:
    """A column for packed usage, and those of quarantined lines beside `_QUARANTINE`."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    quarantine = schemas.quarantine()
    return StructType(
        [quarantine["cluster"], quarantine["day"], StructField("packed", BinaryType())]
    )


def _quarantine(rows: DataFrame) -> DataFrame:
    quarantined = rows.where(F.col("reason").isNotNull())
    return quarantined.select(*schemas.quarantine().fieldNames())


Batches = Iterator[pa.RecordBatch]


def _event_batches(reading: Reading, batches: Batches) -> Batches:
    schema = schemas.arrow(_either(schemas.events()))
    for parsed in _parsed(reading, batches):
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
    counting = Counting(KEYS, COUNTS)
    for parsed in _parsed(reading, batches):
        yield from _quarantined(parsed.rejected, reading, schema)
        if len(parsed.timestamp):
            yield from _packed_batches(counting.add(usage_rows(parsed)), schema)
    yield from _packed_batches(counting.rest(), schema)


def _packed_batches(found: pa.Table | None, schema: pa.Schema) -> Batches:
    if found is not None:
        yield from _batches(pa.table({"packed": pa.array([packed(found)], pa.binary())}), schema)


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
        if reading.form is LogForm.JSONL:
            json_log = JsonLog()
            for piece, lines in worker_lines(batches):
                yield from json_log.parse(lines, piece.source_file)
            return
        kafka_log = KafkaLog(reading.cluster, reading.zone)
        for piece, lines in worker_lines(batches):
            yield from kafka_log.parse(lines, piece)
        yield from kafka_log.finish()
