"""What is found in a log: the one place of these tests that knows how it is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.ingest.read import Form, Reading, events, lines
from tests.pipeline.audited_kafka import ZONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Found(NamedTuple):
    """The rows of events, and the lines in quarantine."""

    events: list[dict[str, Any]]
    quarantine: list[str]


def found_in(spark: SparkSession, log: Path) -> Found:
    """Read a Kafka's log whose clock has the zone of `audited_kafka`."""
    read = events(lines(spark, [str(log)]), Reading(Form.KAFKA, "kafka", ZONE))
    quarantined = [row.line for row in read.quarantine.collect() for _ in range(row.lines)]
    return Found([row.asDict() for row in read.events.collect()], quarantined)
