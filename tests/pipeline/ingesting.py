"""What is found in a log: the one place of these tests that knows how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.ingest.read import Form, Reading, events, lines, usage_of
from tests.pipeline.audited_kafka import ZONE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Found(NamedTuple):
    """The rows of events, the same as a table of usage, and the lines in quarantine."""

    events: list[dict[str, Any]]
    usage: DataFrame
    quarantine: list[str]


def found_in(spark: SparkSession, log: Path) -> Found:
    """Read a Kafka's log whose clock has the zone of `audited_kafka`."""
    read = events(lines(spark, [str(log)]), Reading(Form.KAFKA, "kafka", ZONE))
    quarantined = [row.line for row in read.quarantine.collect()]
    rows = [row.asDict() for row in read.events.collect()]
    return Found(rows, usage_of(read.events), quarantined)
