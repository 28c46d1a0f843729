"""The tables that logs are gathered in: every line once, whatever happens on the way."""

import contextlib
import gzip
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline import schemas
from aclbroker.pipeline.ingest import compaction, stored, tables
from aclbroker.pipeline.ingest.gathering import alone
from aclbroker.pipeline.ingest.growth import plan
from aclbroker.pipeline.ingest.layout_search import layout_of
from aclbroker.pipeline.ingest.ledger import Ledger
from aclbroker.pipeline.ingest.ledger_file import LocalFile
from aclbroker.pipeline.ingest.read import LogForm, Reading, events, usage
from aclbroker.pipeline.ingest.settling import end_by
from aclbroker.pipeline.ingest.sources import IngestError, lines, planned_lines
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.pipeline.ingesting import added_up
from tests.pipeline.json_lines import record
from tests.pipeline.kafka_lines import allowed_line, line
from tests.support.client import Client
from tests.support.process import wait_for as wait_for_event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import StartBroker

READING = Reading(LogForm.KAFKA, "eu")

# Ended where it stands, it is started again with the same arguments.
_INGEST = """
import sys
from aclbroker.pipeline.ingest import stored, tables
from aclbroker.pipeline.ingest.read import LogForm, Reading
from aclbroker.pipeline.spark.session import open_session

spark = open_session(
    "local[2]",
    {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "1",
    },
)
reading = Reading(LogForm(sys.argv[3]), "eu")
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
    kept = {name: stored.read_table(spark, str(place), name) for name in TABLES}
    assert rows(kept["events"]) == rows(at_once.events)
    assert rows(kept["quarantine"]) == rows(at_once.quarantine)
    columns = schemas.usage().fieldNames()
    expected = rows(usage(found, READING).usage.rows.select(*columns))
    assert rows(added_up(kept["usage_daily"]).select(*columns)) == expected


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

    assert told == [tables.BatchProgress(0, 4, []), tables.BatchProgress(1, 4, [])]
    assert_are_those_of_the_files(spark, place, landing)


def test_many_short_runs_leave_few_files_with_the_same_rows(
    spark: "SparkSession", landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "MOST_FILES", 2)
    place = tmp_path / "tables"
    log = landing / "audit.jsonl"
    for number in range(3):
        with log.open("a") as file:
            file.write(records(number, number + 1))
        tables.ingest(spark, [str(landing)], JSONL, str(place))
    (events,) = (place / "events").glob("cluster=*/day=*/batch=*/*.parquet")
    assert events.parent.name == "batch=compacted"
    names = [row.resource_name for row in stored.read_table(spark, str(place), "events").collect()]
    assert sorted(names) == [f"topic-{number}" for number in range(3)]
    counted = stored.read_usage(spark, str(place)).by("resource_name").collect()
    assert sorted((row.resource_name, row.events) for row in counted) == [
        (name, 1) for name in sorted(names)
    ]
    # A killed run's leftovers are removed also if nothing is new.
    stale = place / "events" / "cluster=eu" / "day=2026-11-09" / "batch=files-000003"
    shutil.copytree(events.parent, stale)
    (place / "_checkpoints" / "begun").write_text("files-000003")
    tables.ingest(spark, [str(landing)], JSONL, str(place))
    assert not stale.exists()
    assert stored.read_table(spark, str(place), "events").count() == 3


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
def ingesting(
    landing: Path, place: Path, form: LogForm = LogForm.KAFKA
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of its own, with its JVM, that is killed at the end if it still runs."""
    with (place.parent / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _INGEST, str(landing), str(place), form.value],
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


def wait_for(process: "subprocess.Popen[bytes]", place: Path, is_so: Callable[[], object]) -> None:
    """Return as soon as something is so."""
    while not is_so():
        assert process.poll() is None, (place.parent / "errors").read_text()
        time.sleep(0.005)


def batches(place: Path) -> int:
    """How many batches the ledger knows."""
    return LocalFile(place / "_checkpoints" / "ledger.json").batch() or 0


@pytest.mark.apart
@pytest.mark.thorough
@pytest.mark.engines("spark")
def test_killed_twice_it_ends_with_the_same_tables(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tables"
    for day in range(1, 4):
        land(landing, day)
    # In the midst of a batch: its usage is written, its events are not or only just.
    with ingesting(landing, place) as process:
        written = "usage_daily/cluster=eu/day=*/batch=*-000000"
        wait_for(process, place, lambda: next(place.glob(written), None))
    # Between a batch and the next, or in the next.
    with ingesting(landing, place) as process:
        wait_for(process, place, lambda: batches(place) >= 2)
    assert batches(place) == 2
    # What a batch that is no more was to be must not stay beside what it is now.
    stale = place / "events" / "cluster=eu" / "day=2026-11-09" / "batch=files-000002"
    stale.mkdir(parents=True)
    shutil.copy(next(place.glob("events/**/*.parquet")), stale)
    (place / "_checkpoints" / "begun").write_text("files-000002")

    with ingesting(landing, place) as process:
        assert process.wait() == 0, (tmp_path / "errors").read_text()

    assert_are_those_of_the_files(spark, place, landing)


def test_a_file_that_grows_and_is_rotated_is_read_on(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    log = landing / "audit.jsonl"
    places = [str(tmp_path / name) for name in ("of-directory", "of-file")]
    notes: list[str] = []

    def counts() -> list[int]:
        for place, given in zip(places, (landing, log), strict=True):
            tables.ingest(spark, [str(given)], JSONL, place, noted=notes.append)
        found = [stored.read_table(spark, place, "events").collect() for place in places]
        for rows in found:
            assert len({row.resource_name for row in rows}) == len(rows)
        return [len(rows) for rows in found]

    log.write_text(records(0, 5))
    # Not asked for where the input is the other file, although it is no older.
    (landing / "audit.jsonl.7").write_text(f"{record(resource_name='older')}\n")
    os.utime(log, (9, 9))
    os.utime(landing / "audit.jsonl.7", (9, 9))
    assert counts() == [6, 5]
    os.utime(landing / "audit.jsonl.7", (8, 8))
    with log.open("a") as file:
        file.write(records(5, 500))
        file.write(record(resource_name="half")[:-9])
    assert counts() == [501, 500]
    assert [note.partition(": ")[2] for note in notes] == [
        f"the last {len(record(resource_name='half')) - 9} bytes, no whole line, "
        "wait for the next run"
    ] * 2
    with log.open("a") as file:
        log.rename(landing / "audit.jsonl.1")
        file.write(record(resource_name="half")[-9:] + "\n" + records(500, 510))
    log.write_text(records(510, 520))
    assert counts() == [522, 521]
    renamed = (landing / "audit.jsonl.1").read_bytes()
    (landing / "audit.jsonl.2.gz").write_bytes(gzip.compress(renamed))
    log.rename(landing / "audit.jsonl.1")
    log.write_text(records(520, 521))
    assert counts() == [523, 522]


JSONL = Reading(LogForm.JSONL, "eu")


def records(first: int, last: int) -> str:
    return "".join(f"{record(resource_name=f'topic-{n}')}\n" for n in range(first, last))


def test_a_file_that_is_rotated_while_it_is_read_is_read_where_it_lies_then(
    spark: "SparkSession", landing: Path
) -> None:
    """As if it happened between the plan and the work of a task."""
    log = landing / "audit.jsonl"
    log.write_text(records(0, 50))
    found = plan(Ledger(), [str(log)], end_by(time.time(), layout_of))
    planned = planned_lines(spark, found.reads)
    log.rename(landing / "audit.jsonl.1")
    log.write_text(records(100, 200))
    names = {row.resource_name for row in events(planned, JSONL).events.collect()}
    assert names == {f"topic-{number}" for number in range(50)}
    os.truncate(landing / "audit.jsonl.1", 0)
    with pytest.raises(Exception, match=r"MovedError|was rotated"):
        events(planned, JSONL).events.collect()


def test_following_reads_on_until_it_is_interrupted(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    log, place = landing / "audit.jsonl", str(tmp_path / "tables")
    log.write_text(records(0, 5))

    def told(progress: tables.BatchProgress) -> None:
        if progress.batch == 2:
            raise KeyboardInterrupt
        with log.open("a") as file:
            log.rename(landing / f"audit.jsonl.{progress.batch}")
            file.write(records(5 + progress.batch, 6 + progress.batch))

    with pytest.raises(KeyboardInterrupt):
        tables.follow(spark, [str(landing)], JSONL, place, told=told, interval=0.1)
    found = stored.read_table(spark, place, "events").collect()
    assert Counter(row.resource_name for row in found) == Counter(f"topic-{n}" for n in range(7))


def test_two_cannot_gather_into_the_same_tables(
    spark: "SparkSession", landing: Path, tmp_path: Path
) -> None:
    land(landing, 1)
    place = tmp_path / "tables"
    with alone(spark, f"{place}/_checkpoints"), pytest.raises(IngestError, match="another ingest"):
        tables.ingest(spark, [str(landing)], READING, str(place))
    tables.ingest(spark, [str(landing)], READING, str(place))


def test_a_damaged_ledger_is_an_error(spark: "SparkSession", landing: Path, tmp_path: Path) -> None:
    place = tmp_path / "tables"
    (place / "_checkpoints").mkdir(parents=True)
    land(landing, 1)
    for text in ("", "{}", '{"version":2}', '{"version":1,"batch":0,"newest":{},"files":[{}]}'):
        (place / "_checkpoints" / "ledger.json").write_text(text)
        with pytest.raises(IngestError, match=r"ledger\.json, .* is damaged .*another output"):
            tables.ingest(spark, [str(landing)], READING, str(place))


@pytest.mark.apart
@pytest.mark.thorough
def test_every_record_of_a_broker_that_rotates_its_log_is_there_once(
    spark: "SparkSession", start_broker: "StartBroker", tmp_path: Path
) -> None:
    """While it writes; rotated files are compressed, and a run is killed."""
    directory, place = tmp_path / "log", tmp_path / "tables"
    directory.mkdir()
    broker = start_broker(
        {
            "aclbroker.audit.level": "all",
            "aclbroker.audit.file": str(directory / "audit.jsonl"),
            "aclbroker.audit.file.max.bytes": str(1 << 20),
            "aclbroker.audit.max.bytes.per.second": "0",
            "aclbroker.audit.rollup.seconds": "0",
        }
    )
    asked = Asking(broker.listeners["PLAINTEXT"])
    asked.start()
    try:
        rotated = directory.glob
        wait_for_event("rotation", lambda: len([*rotated("audit.jsonl.*")]) > 1 or None, 60)
        for killed in (False, True):
            if killed:
                begun = place / "_checkpoints" / "begun"
                with ingesting(directory, place, LogForm.JSONL) as process:
                    wait_for(process, place, begun.exists)
            else:
                tables.ingest(spark, [str(directory)], JSONL, str(place))
            plain = (each for each in rotated("audit.jsonl.*") if each.suffix != ".gz")
            for oldest in sorted(plain)[:2]:
                packed = oldest.with_name(f"{oldest.name}.gz")
                packed.write_bytes(gzip.compress(oldest.read_bytes()))
                oldest.unlink()
    finally:
        asked.stop()
    broker.terminate()
    tables.ingest(spark, [str(directory)], JSONL, str(place))
    rows = stored.read_table(spark, str(place), "events").collect()
    names = Counter(row.resource_name for row in rows if row.resource_type == "TOPIC")
    assert names == Counter(map(name_of, range(asked.answered)))
    assert stored.read_table(spark, str(place), "quarantine").count() == 0
    counted = stored.read_usage(spark, str(place)).by("cluster").collect()
    assert sum(row.events for row in counted) == len(rows)


class Asking(threading.Thread):
    """A client that asks for topics, each of another name, until it is told to stop.

    ``answered`` is how many names it has asked for: `name_of` has each by its number. The broker
    rotates its log every few seconds of it.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._told = threading.Event()
        self.answered = 0

    def run(self) -> None:
        with Client(self._address) as client:
            while not self._told.wait(0.05) and self.answered < 500_000:
                names = map(name_of, range(self.answered, self.answered + 10))
                topics = [MetadataRequestTopic(bytes(16), name) for name in names]
                client.ask(ApiKey.METADATA, 12, MetadataRequest(topics))
                self.answered += len(topics)

    def stop(self) -> None:
        self._told.set()
        self.join()


def name_of(number: int) -> str:
    return f"topic-{number}-{'x' * 200}"


@pytest.mark.engines("spark")
def test_a_topic_needs_a_connector_that_pyspark_does_not_bring(
    spark: "SparkSession", tmp_path: Path
) -> None:
    place = str(tmp_path / "tables")
    reading = Reading(LogForm.JSONL, "eu")
    with pytest.raises(IngestError, match="spark-sql-kafka-0-10_2"):
        tables.ingest(spark, ["kafka://127.0.0.1:9092/audit"], reading, place)
    with pytest.raises(IngestError, match=r"expected kafka://HOST:PORT/TOPIC$"):
        tables.ingest(spark, ["kafka://127.0.0.1:9092"], reading, place)
