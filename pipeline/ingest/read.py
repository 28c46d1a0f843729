"""Reads log files into events and quarantined lines: each line is in exactly one of the two."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.ingest import json_log, kafka_log

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


class Ingested(NamedTuple):
    """The tables `pipeline.schemas.events` and `pipeline.schemas.quarantine`."""

    events: DataFrame
    quarantine: DataFrame


def read(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    cluster: str,
    form: Form | None = None,
    zone: tzinfo = UTC,
) -> Ingested:
    """Return what log files say, by `parse`.

    ``paths``: files, directories (with all below them) or URLs that Spark has a connector for;
    what ends in ``.gz`` is decompressed. ``form``: None for that of the first line.

    Raises IngestError if a path does not exist, or nothing says which form it is.
    """
    lines = read_lines(spark, paths)
    return parse(lines, cluster=cluster, form=form or _form(lines, paths), zone=zone)


def read_lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return the columns ``line`` and ``source_file``. Raises IngestError as `read` does."""
    if not paths:
        raise IngestError("no input was named")
    try:
        text = spark.read.options(**READER_OPTIONS).text(list(paths))
        return lines_of(text)
    except AnalysisException as error:
        raise IngestError(f"the input cannot be read: {error.getMessage() or error}") from error


def lines_of(text: DataFrame) -> DataFrame:
    """Return the columns that `parse` needs of files read as text with `READER_OPTIONS`."""
    return text.select(
        F.col("value").alias("line"), F.col("_metadata.file_path").alias("source_file")
    )


def parse(lines: DataFrame, *, cluster: str, form: Form, zone: tzinfo = UTC) -> Ingested:
    """Return the events and the quarantined lines of ``lines``, which may be a stream.

    ``cluster``: the name for lines that do not name their cluster, which are those of Kafka and
    the quarantined. ``zone``: that of the broker's clock, for Kafka's log; a `ZoneInfo`.
    """
    rows = parsed(lines, cluster=cluster, form=form, zone=zone)
    return Ingested(
        _table(rows.where(F.col("reason").isNull()), schemas.events()),
        _table(
            rows.where(F.col("reason").isNotNull())
            .withColumn("cluster", F.lit(cluster))
            .withColumn("line", F.make_valid_utf8("line")),
            schemas.quarantine(),
        ),
    )


def parsed(lines: DataFrame, *, cluster: str, form: Form, zone: tzinfo = UTC) -> DataFrame:
    """Return a row for each line: the columns of both tables.

    ``reason`` is null for an event. Who needs both tables at once, and can afford to keep the rows,
    reads the input only once so.
    """
    line = F.col("line")
    if form is Form.JSONL:
        staged = lines.withColumn("_record", json_log.parsed(line))
        columns = json_log.fields(line, F.col("_record"))
    else:
        staged = lines.withColumn("_part", kafka_log.parts(line))
        columns = kafka_log.fields(line, F.col("_part"), zone)
        columns["cluster"] = F.lit(cluster)
    columns["day"] = F.to_date(columns["timestamp"])
    return staged.select("line", "source_file", *(c.alias(name) for name, c in columns.items()))


def _table(rows: DataFrame, schema: StructType) -> DataFrame:
    return rows.select(*(F.col(field.name).cast(field.dataType) for field in schema))


def _form(lines: DataFrame, paths: Sequence[str]) -> Form:
    first = lines.where(F.length(F.trim("line")) > 0).select("line").first()
    if first is None:
        raise IngestError(f"nothing is in {', '.join(paths)}")
    return Form.JSONL if first["line"].startswith("{") else Form.KAFKA
