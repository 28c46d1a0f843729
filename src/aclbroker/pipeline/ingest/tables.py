"""The tables that logs are gathered in: each line once, however often and wherever it stops.

A batch writes partitions of its own, and writes them anew if it was interrupted. A ledger knows
which lines of local files are in the tables (`pipeline.ingest.gathering`). At URLs Spark's file
stream keeps in a checkpoint which files belong to which batch: there a file is read once, whole.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.compaction import READERS, compact, sweep
from aclbroker.pipeline.ingest.gathering import Gathering, Limits, Written, alone, batches_known
from aclbroker.pipeline.ingest.listing import is_of_this_machine
from aclbroker.pipeline.ingest.read import Reading, events, usage
from aclbroker.pipeline.ingest.sources import IngestError, lines, stream
from aclbroker.pipeline.ingest.stored import (
    CHECKPOINTS,
    EVENTS,
    HOURS,
    QUARANTINE,
    USAGE,
    schema_of,
    stop_reading,
)
from aclbroker.pipeline.ingest.topic import is_topic, topic_lines
from aclbroker.pipeline.ingest.unread import UnreadFile, unread_files
from aclbroker.pipeline.spark.files import (
    exists,
    local_path,
    matching,
    read_text,
    remove,
    write_text,
)
from aclbroker.pipeline.usage.hours import as_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_TABLES: Final = (USAGE, HOURS, QUARANTINE, EVENTS)
_PARTITIONS: Final = ("cluster", "day", "batch")

# Spark forgets files that are a week older than the newest: they would be left out silently.
_STREAM_OPTIONS: Final = {"maxFileAge": "3650d"}
_BATCH: Final = {"maxBytesPerTrigger": str(4 << 30)}
"""How much a batch reads: it is kept on disk while it is worked on."""


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """A batch that is in the tables: its number within its input, and how many lines it had.

    ``unread`` are files of it that are in quarantine as a whole.
    """

    batch: int
    lines: int
    unread: Sequence[UnreadFile] = ()


def ingest(
    spark: SparkSession,
    paths: Sequence[str],
    reading: Reading,
    place: str,
    *,
    told: Callable[[BatchProgress], None] = lambda progress: None,
    noted: Callable[[str], None] = lambda note: None,
    options: Mapping[str, str] | None = None,
    client: Mapping[str, str] | None = None,
) -> None:
    """Bring what is new in files into the tables at ``place``, a directory or URL.

    ``paths`` as in `pipeline.ingest.sources.lines`, or topics (`pipeline.ingest.topic`), for which
    ``client`` has the properties of a Kafka client. Local files may grow and be rotated; files at
    URLs must be complete: what is added to one that was read already is not seen. ``told`` is
    called after each batch, ``noted`` with what is left for the next time. ``options`` are Spark's
    for file streams that say how much a batch reads, such as ``maxFilesPerTrigger``.

    Raises IngestError for an input that cannot be read, or one that was read otherwise before.
    """
    work = _Work(spark, reading, place, told, noted, options or _BATCH, client or {})
    with work.gathering(paths) as (local, others):
        if local is not None:
            local.gather()
        for path in others:
            _await(work.query(path, {"availableNow": True}))
        work.compact()


def follow(
    spark: SparkSession,
    paths: Sequence[str],
    reading: Reading,
    place: str,
    *,
    told: Callable[[BatchProgress], None] = lambda progress: None,
    noted: Callable[[str], None] = lambda note: None,
    interval: float = 10,
    client: Mapping[str, str] | None = None,
) -> None:
    """Bring lines into the tables as they appear, until interrupted; else as `ingest`.

    ``interval``: how many seconds pass from one look at the inputs to the next.
    """
    work = _Work(spark, reading, place, told, noted, _BATCH, client or {})
    with work.gathering(paths) as (local, others):
        queries: list[StreamingQuery] = []
        try:
            for path in others:
                queries.append(work.query(path, {"processingTime": f"{interval} seconds"}))
            while local is not None or queries:
                began = time.monotonic()
                if local is not None:
                    local.gather()
                    if not queries:
                        work.compact()
                for query in queries:
                    if not query.isActive:
                        _await(query)
                time.sleep(max(0.0, began + interval - time.monotonic()))
        finally:
            for query in queries:
                query.stop()


@dataclass(frozen=True, slots=True)
class _Work:
    """What one call of `ingest` or `follow` has in common."""

    spark: SparkSession
    reading: Reading
    place: str
    told: Callable[[BatchProgress], None]
    noted: Callable[[str], None]
    options: Mapping[str, str]
    client: Mapping[str, str]

    @contextmanager
    def gathering(self, paths: Sequence[str]) -> Iterator[tuple[Gathering | None, list[str]]]:
        """Yield what gathers the local files among inputs, if there are any, and the other inputs.

        Nobody else gathers into the same tables meanwhile.
        """
        # A path that does not exist is an error here and none to a stream.
        files = [path for path in paths if not is_topic(path)]
        local = [path for path in files if is_of_this_machine(self.spark, path)]
        if remote := [path for path in files if path not in local]:
            lines(self.spark, remote)
        with alone(self.spark, self._checkpoints):
            for path in paths:
                file = f"{self._checkpoints}/{_source(path)}.json"
                _same_reading(self.spark, file, path, self.reading)
            self._sweep()
            yield (
                self._gathering(local) if local else None,
                [path for path in paths if path not in local],
            )

    def compact(self) -> None:
        """Make few files of many small ones, in tables on a file system of this machine."""
        place = local_path(self.spark, self.place)
        if place is None or not all(map(_is_committed, (place / CHECKPOINTS).iterdir())):
            return
        columns = {name: schemas.arrow(schema_of(name)) for name in _TABLES}
        parted = {"cluster", "day"}
        compact(
            place,
            {
                name: pa.schema([each for each in schema if each.name not in parted])
                for name, schema in columns.items()
            },
            place / CHECKPOINTS,
            time.time(),
        )

    def _sweep(self) -> None:
        place = local_path(self.spark, self.place)
        if place is not None:
            stop_reading(place)
            (place / CHECKPOINTS / READERS).touch()
            sweep(place, _TABLES, batches_known(self.spark, self._checkpoints))

    @property
    def _checkpoints(self) -> str:
        return f"{self.place}/{CHECKPOINTS}"

    def _gathering(self, paths: Sequence[str]) -> Gathering:
        return Gathering(
            self.spark,
            paths,
            self.reading,
            self._checkpoints,
            Limits.of(self.options),
            write=lambda found, batch: _write(found, self.reading, self.place, batch),
            remove_batch=lambda batch: _remove_batch(self.spark, self.place, batch),
            told=lambda number, written: self.told(BatchProgress(number, *written)),
            noted=self.noted,
        )

    def query(self, path: str, trigger: dict[str, Any]) -> StreamingQuery:
        """Begin to read an input as a stream of Spark's."""
        if is_topic(path):
            found = topic_lines(self.spark, path, self.client)
        else:
            found = stream(self.spark, path, {**_STREAM_OPTIONS, **self.options})

        def write(batch: DataFrame, number: int) -> None:
            name = f"{_source(path)}-{number:06}"
            self.told(BatchProgress(number, *_write(batch, self.reading, self.place, name)))

        writer = found.writeStream.foreachBatch(write)
        located = writer.option("checkpointLocation", f"{self._checkpoints}/{_source(path)}")
        return located.trigger(**trigger).start()


def _is_committed(checkpoint: Path) -> bool:
    """Tell whether no batch of a stream's has begun and not ended: Spark would write it anew."""
    offsets, commits = (
        {each.name for each in (checkpoint / name).glob("[0-9]*")}
        for name in ("offsets", "commits")
    )
    return offsets <= commits


def _source(path: str) -> str:
    """Return a short name for an input."""
    return hashlib.sha256(path.rstrip("/").encode()).hexdigest()[:8]


def _remove_batch(spark: SparkSession, place: str, batch: str) -> None:
    for table in _TABLES:
        for each in matching(spark, f"{place}/{table}", f"cluster=*/day=*/batch={batch}"):
            remove(spark, each)


def _write(found: DataFrame, reading: Reading, place: str, batch: str) -> Written:
    """Write the partitions of a batch."""
    counted = usage(found, reading)
    kept = counted.kept.persist()
    try:
        tables = {
            USAGE: counted.usage.rows,
            HOURS: found.sparkSession.createDataFrame(as_stored(counted.hours())),
            QUARANTINE: counted.quarantine,
            # To read the lines once more takes less time than to keep what they say.
            EVENTS: events(found, reading).events,
        }
        for name, table in tables.items():
            table.withColumn("batch", F.lit(batch)).write.mode("overwrite").option(
                "compression", "zstd"
            ).partitionBy(*_PARTITIONS).parquet(f"{place}/{name}")
        read = sum(row["events"] for row in counted.usage.by("cluster").collect())
        quarantined = counted.quarantine.count()
        unread = unread_files(counted.quarantine, counted.read) if quarantined else []
        return Written(int(read + quarantined), unread)
    finally:
        kept.unpersist()


def _await(query: StreamingQuery) -> None:
    from pyspark.errors import StreamingQueryException

    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise IngestError(f"the input cannot be read: {error}") from error


def _same_reading(spark: SparkSession, file: str, path: str, reading: Reading) -> None:
    """Note how an input is read, so that the tables do not come to hold it read in two ways."""
    wanted = {
        "input": path,
        "form": reading.form and reading.form.value,
        "pattern": reading.pattern,
        "cluster": reading.cluster,
        "zone": str(reading.zone),
    }
    if not exists(spark, file):
        write_text(spark, file, json.dumps(wanted))
        return
    before = json.loads(read_text(spark, file))
    if before != wanted:
        changed = ", ".join(
            f"{key} {before.get(key)!r}, now {value!r}"
            for key, value in wanted.items()
            if before.get(key) != value
        )
        raise IngestError(
            f"{path} was read into these tables before with {changed}: "
            "use the same options, or another output"
        )
