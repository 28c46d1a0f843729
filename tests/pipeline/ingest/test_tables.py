"""The tables that logs are gathered in: every file once, whatever happens on the way."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline import schemas
from aclbroker.pipeline.ingest import tables
from aclbroker.pipeline.ingest.read import LogForm, Reading, events, usage
from aclbroker.pipeline.ingest.sources import IngestError, lines
from tests.pipeline.ingesting import added_up
from tests.pipeline.kafka_lines import allowed_line, line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READING = Reading(LogForm.KAFKA, "eu")

# Ended where it stands, it is started again with the same arguments.
_INGEST = """
import sys
from aclbroker.pipeline.ingest import tables
from aclbroker.pipeline.ingest.read import LogForm, Reading
from aclbroker.pipeline.spark.session import open_session

spark = open_session(
    "local[2]",
    {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "1",
    },
)
reading = Reading(LogForm.KAFKA, "eu")
tables.ingest(spark, [sys.argv[1]], reading, sys.argv[2], options={"maxFilesPerTrigger": "1"})
"""


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    directory = tmp_path / "landing"
    directory.mkdir()
    return directory


def land(landing: Path, day: int) -> None:
    """Put a day's log there whole, as whoever rotates a log does."""
    date = f"2026-11-{day:02}"
    log = [
        allowed_line(head=f"[{date} 07:00:00,000] DEBUG", principal="User:alice"),
        allowed_line(head=f"[{date} 08:00:00,000] DEBUG", principal="User:alice"),
        line(head=f"[{date} 23:59:59,999] INFO", principal=f"User:of-day-{day}"),
        f"a line of day {day} that is no record",
    ]
    hidden = landing / f".{date}"
    hidden.write_text("".join(f"{each}\n" for each in log))
    hidden.rename(landing / f"{date}.log")


def rows(found: "DataFrame") -> Counter[Any]:
    return Counter(tuple(row) for row in found.collect())


def assert_are_those_of_the_files(spark: "SparkSession", place: Path, landing: Path) -> None:
    """The tables hold what reading all files at once gives."""
    found = lines(spark, [str(landing)])
    at_once = events(found, READING)
    stored = {name: tables.read_table(spark, str(place), name) for name in TABLES}
    assert rows(stored["events"]) == rows(at_once.events)
    assert rows(stored["quarantine"]) == rows(at_once.quarantine)
    columns = schemas.usage().fieldNames()
    expected = rows(usage(found, READING).usage.rows.select(*columns))
    assert rows(added_up(stored["usage_daily"]).select(*columns)) == expected


TABLES = ("events", "quarantine", "usage_daily")


def test_a_file_is_read_once_however_often_ingest_runs(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tables"
    land(landing, 1)
    told: list[tables.BatchProgress] = []

    def ingest() -> None:
        tables.ingest(spark, [str(landing)], READING, str(place), told=told.append)

    ingest()
    ingest()
    land(landing, 2)
    ingest()

    assert told == [tables.BatchProgress(0, 4), tables.BatchProgress(1, 4)]
    assert_are_those_of_the_files(spark, place, landing)


def test_tables_are_parted_by_cluster_and_day(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    land(landing, 1)
    tables.ingest(spark, [str(landing)], READING, str(tmp_path / "tables"))
    for name in ("events", "usage_daily"):
        parted = tmp_path / "tables" / name / "cluster=eu" / "day=2026-11-01"
        assert list(parted.rglob("*.parquet"))


def test_files_that_were_read_otherwise_before_are_refused(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    land(landing, 1)
    tables.ingest(spark, [str(landing)], READING, str(tmp_path / "tables"))
    with pytest.raises(IngestError, match="cluster 'eu', now 'us'"):
        tables.ingest(spark, [str(landing)], Reading(LogForm.KAFKA, "us"), str(tmp_path / "tables"))


@contextlib.contextmanager
def ingesting(landing: Path, place: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of its own, with its JVM, that is killed at the end if it still runs."""
    with (place.parent / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _INGEST, str(landing), str(place)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(process: "subprocess.Popen[bytes]", place: Path, patterns: Iterable[str]) -> None:
    """Return as soon as there is a file of one of the patterns."""
    while not any(next(place.glob(pattern), None) for pattern in patterns):
        assert process.poll() is None, (place.parent / "errors").read_text()
        time.sleep(0.005)


@pytest.mark.apart
def test_killed_twice_it_ends_with_the_same_tables(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tables"
    for day in range(1, 4):
        land(landing, day)
    # In the midst of a batch: its events are written, its usage is not or only just.
    with ingesting(landing, place) as process:
        wait_for(process, place, ["events/cluster=eu/day=*/batch=*-000000"])
    # Between a batch and the next, or in the next.
    with ingesting(landing, place) as process:
        wait_for(process, place, ["_checkpoints/*/commits/1"])
    assert not list(place.glob("_checkpoints/*/commits/2"))

    with ingesting(landing, place) as process:
        assert process.wait() == 0, (tmp_path / "errors").read_text()

    assert_are_those_of_the_files(spark, place, landing)


def test_a_topic_needs_a_connector_that_pyspark_does_not_bring(
    spark: "SparkSession", tmp_path: Path
) -> None:
    place = str(tmp_path / "tables")
    reading = Reading(LogForm.JSONL, "eu")
    with pytest.raises(IngestError, match="spark-sql-kafka-0-10_2"):
        tables.ingest(spark, ["kafka://127.0.0.1:9092/audit"], reading, place)
    with pytest.raises(IngestError, match=r"expected kafka://HOST:PORT/TOPIC$"):
        tables.ingest(spark, ["kafka://127.0.0.1:9092"], reading, place)
