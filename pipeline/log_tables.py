"""The log as tables: read from logs and written once, or as an earlier run wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from pyspark.sql import functions as F

from pipeline import schemas
from pipeline.ingest.read import Form, Reading, form_of, lines, usage
from pipeline.inputs import InputError
from pipeline.options import AuditOptions
from pipeline.output import Output
from pipeline.window import of_days

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

USAGE: Final = "usage_daily"
QUARANTINE: Final = "quarantine"
"""The names of the tables below the output."""

UNNAMED_CLUSTER: Final = "kafka"
"""What the cluster of a Kafka's log is called if nobody names it."""


class LogTables(NamedTuple):
    """The tables `pipeline.schemas.usage` and ``quarantine``, of the days asked for.

    ``is_read`` tells that logs were read for them, ``written`` what was written, with what it is.
    """

    usage: DataFrame
    quarantine: DataFrame
    is_read: bool
    written: Mapping[str, str]


def load(
    spark: SparkSession, options: AuditOptions, output: Output, named_cluster: str | None
) -> LogTables:
    """Return the tables of the inputs; those of logs are first written below the output.

    ``named_cluster`` is what a Kafka's log is called unless the options say.

    Raises InputError if the inputs are of both kinds, IngestError if one cannot be read.
    """
    are_tables = [_exists(spark, f"{path.rstrip('/')}/{USAGE}") for path in options.inputs]
    if all(are_tables):
        counted = _table(spark, options.inputs, USAGE, schemas.usage())
        quarantine = _table(spark, options.inputs, QUARANTINE, schemas.quarantine())
        written = {}
    elif any(are_tables):
        raise InputError("--input: either logs or directories that the job ingest wrote, not both")
    else:
        _check_apart(options.inputs, options.output)
        counted, quarantine = _ingested(spark, options, output, named_cluster)
        written = {
            USAGE: "events counted by day, principal, host, operation, resource and decision",
            QUARANTINE: "lines that are no events, with the reason",
        }
    if options.cluster is not None:
        counted = counted.where(F.col("cluster") == options.cluster)
    days = options.since, options.until
    return LogTables(
        of_days(counted, *days), of_days(quarantine, *days), not all(are_tables), written
    )


def _ingested(
    spark: SparkSession, options: AuditOptions, output: Output, named_cluster: str | None
) -> tuple[DataFrame, DataFrame]:
    form = Form(options.form) if options.form else form_of(spark, options.inputs)
    cluster = options.cluster or named_cluster or UNNAMED_CLUSTER
    found = usage(lines(spark, options.inputs), Reading(form, cluster, ZoneInfo(options.zone)))
    return output.table(USAGE, found.events), output.table(QUARANTINE, found.quarantine)


def _table(spark: SparkSession, paths: Sequence[str], name: str, schema: StructType) -> DataFrame:
    found: DataFrame | None = None
    for path in paths:
        # A schema, since Spark would take the cluster 007 in the name of a directory for a number.
        each = spark.read.schema(schema).parquet(f"{path.rstrip('/')}/{name}")
        found = each if found is None else found.unionByName(each)
    if found is None:
        raise InputError("no input was named")
    return found.select(*schema.fieldNames())


def _exists(spark: SparkSession, place: str) -> bool:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)
    found: bool = path.getFileSystem(spark._jsc.hadoopConfiguration()).exists(path)
    return found


def _check_apart(inputs: Sequence[str], output: str) -> None:
    """Refuse an output that the next run would take for a part of the log."""
    for each in inputs:
        if "://" not in each and "://" not in output:
            place = Path(output).resolve()
            if Path(each).resolve() in (place, *place.parents):
                raise InputError(
                    f"--output {output} lies within --input {each}: what is written there would "
                    "be read as a log the next time"
                )
