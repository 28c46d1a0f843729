"""What is found in a log: the one place of these tests that knows how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.read import LogForm, Reading, events
from aclbroker.pipeline.ingest.sources import lines
from aclbroker.pipeline.usage.table import COUNTS, KEYS
from tests.pipeline.audited_kafka import ZONE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Found(NamedTuple):
    """The rows of events, the same as a table of usage, and the lines in quarantine."""

    events: list[dict[str, Any]]
    usage: DataFrame
    quarantine: list[str]


def usage_of(found: DataFrame) -> DataFrame:
    """The table of usage that some events make, as Spark counts them."""
    times = {"first_seen": F.col("timestamp"), "last_seen": F.col("last_timestamp")}
    return added_up(found.withColumns(times))


def added_up(found: DataFrame) -> DataFrame:
    """Usage with one row a key."""
    functions = {"sum": F.sum, "min": F.min, "max": F.max}
    sums = [functions[how](name).alias(name) for name, how in COUNTS.items()]
    return found.groupBy(*KEYS).agg(*sums).select(*schemas.usage().fieldNames())


def found_in(spark: SparkSession, log: Path, pattern: str | None = None) -> Found:
    """Read a Kafka's log whose clock has the zone of `audited_kafka`."""
    reading = Reading(LogForm.KAFKA, "kafka", ZONE, pattern)
    read = events(lines(spark, [str(log)]), reading)
    quarantined = [row.line for row in read.quarantine.collect()]
    rows = [row.asDict() for row in read.events.collect()]
    return Found(rows, usage_of(read.events), quarantined)
