"""Brings what is new in local log files into tables, batch by batch, each of them once.

A batch is what a ledger (`pipeline.ingest.ledger`) beside the tables does not have yet. It writes
partitions of its own, and the ledger tells of them when they are there. What a run that was killed
left of a batch is removed before the next one, which finds the same to be new.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from stat import S_ISREG
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.pipeline.ingest.growth import looked_since, plan, rotated_from
from aclbroker.pipeline.ingest.ledger import Ledger
from aclbroker.pipeline.ingest.ledger_file import ledger_file
from aclbroker.pipeline.ingest.listing import each_local_file
from aclbroker.pipeline.ingest.read import Reading
from aclbroker.pipeline.ingest.reads import Read
from aclbroker.pipeline.ingest.settling import end_by
from aclbroker.pipeline.ingest.sources import IngestError, planned_lines
from aclbroker.pipeline.ingest.texts import MovedError, is_there
from aclbroker.pipeline.ingest.unread import UnreadFile
from aclbroker.pipeline.spark.files import (
    exists,
    local_path,
    path_of,
    remove,
    replace_text,
    unlinked,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ATTEMPTS: Final = 10
"""How often in a row a batch is planned anew because files were rotated while it was read."""


class Written(NamedTuple):
    """How many lines a batch had, and which files are in quarantine as a whole."""

    lines: int
    unread: Sequence[UnreadFile]


_MOST_FILES: Final = 100_000
"""How many files a batch reads: while it is written a kilobyte of memory is held for each."""

WriteBatch = Callable[["DataFrame", str], Written]
"""Writes the tables of a batch, by its name, in place of what is there."""


class Limits(NamedTuple):
    """How much a batch reads: ``bytes`` of text and ``files`` at most, and one file at least."""

    bytes: int
    files: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Limits:
        """Return the limits in the words of Spark's file streams."""
        most = (
            options.get("maxBytesPerTrigger", 4 << 30),
            options.get("maxFilesPerTrigger", _MOST_FILES),
        )
        return cls(int(most[0]), int(most[1]))


class Gathering:
    """Local files of some inputs, and the ledger of the tables at ``place``.

    ``write`` writes the tables of a batch, ``remove_batch`` removes what there is of one, ``told``
    is given the number of a batch and what was written of it, and ``noted``, once each, a sentence
    for files that are not read to their end.
    """

    def __init__(
        self,
        spark: SparkSession,
        inputs: Sequence[str],
        reading: Reading,
        place: str,
        limits: Limits,
        *,
        write: WriteBatch,
        remove_batch: Callable[[str], None],
        told: Callable[[int, Written], None],
        noted: Callable[[str], None],
    ) -> None:
        self._spark = spark
        self._inputs = inputs
        self._reading = reading
        self._file = ledger_file(spark, place)
        self._begun = f"{place}/begun"
        self._limits = limits
        self._write = write
        self._remove_batch = remove_batch
        self._told = told
        self._noted = noted
        self._notes: set[str] = set()
        self._ledger = self._file.load() or Ledger()
        self._newest = dict(self._ledger.newest)

    def gather(self) -> None:
        """Read what is new, up to what there is at the beginning.

        Raises IngestError if files are rotated again and again while they are read, and what Spark
        raises.
        """
        if exists(self._spark, self._begun):
            # What a killed run left: no reader should find it, although nothing may be new.
            self._remove_batch(self._batch_name)
            remove(self._spark, self._begun)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if self._round():
                    return
            except MovedError as error:
                if attempt == _ATTEMPTS:
                    raise IngestError(f"the input cannot be read: {error}") from error

    def _round(self) -> bool:
        """Read what is new; tell whether no file vanished while it was looked for."""
        times = dict(self._times())
        before = self._newest
        paths = (path for each in self._inputs for path in self._paths(each, before))
        self._newest = {**times, **before}
        found = plan(self._ledger, paths, end_by(time.time(), self._reading.layout_of))
        for note in found.notes:
            if note not in self._notes:
                self._notes.add(note)
                self._noted(note)
        for reads in _batches(found.reads, self._limits):
            self._batch(reads)
        # Only now: what was rotated meanwhile is looked for by these times.
        self._newest = looked_since(self._newest, times, found.waiting)
        self._file.commit(self._ledger, self._ledger.saw(found.seen, self._newest))
        return not found.has_vanished

    def _times(self) -> Iterator[tuple[str, float]]:
        """Yield those inputs that are one file, and when these were written to last."""
        for each in self._inputs:
            path = self._absolute(each)
            with suppress(OSError):
                status = os.stat(path)
                if S_ISREG(status.st_mode):
                    yield path, status.st_mtime

    def _paths(self, name: str, since: Mapping[str, float]) -> Iterator[str]:
        """Yield the files of an input; of one file also what it was rotated to since a time."""
        path = self._absolute(name)
        try:
            yield from each_local_file(self._spark, name)
        except IngestError:
            # A log that is rotated right now; that it is there at all was looked for before.
            if path not in since:
                raise
        if path in since:
            yield from rotated_from(path, since[path])

    def _absolute(self, name: str) -> str:
        return str(local_path(self._spark, name))

    def _batch(self, reads: Sequence[Read]) -> None:
        name = self._batch_name
        if exists(self._spark, self._begun):
            self._remove_batch(name)
        replace_text(self._spark, self._begun, name)
        try:
            written = self._write(planned_lines(self._spark, reads), name)
        except Exception as error:
            # Spark tells what failed in a worker as a text alone. The files tell why.
            if all(is_there(read.path, read.prefix, read.end) for read in reads):
                raise
            raise MovedError("files are rotated faster than they are read") from error
        changes = ((read.position, read.after) for read in reads)
        self._file.commit(self._ledger, self._ledger.read(changes, self._newest))
        remove(self._spark, self._begun)
        # Of a file that was read before only a few lines may be new, and these no events.
        new = {read.path for read in reads if read.start == 0}
        unread = [each for each in written.unread if path_of(each.source_file) in new]
        self._told(self._ledger.batch - 1, written._replace(unread=unread))

    @property
    def _batch_name(self) -> str:
        return f"files-{self._ledger.batch:06}"


def batches_known(spark: SparkSession, place: str) -> int | None:
    """Return how many batches of local files the ledger at ``place`` knows, None if there is none.

    Raises IngestError if it is damaged.
    """
    return ledger_file(spark, place).batch()


def _batches(reads: Sequence[Read], limits: Limits) -> Iterator[list[Read]]:
    batch: list[Read] = []
    size = 0
    for read in reads:
        size += read.end - read.start
        if batch and (size > limits.bytes or len(batch) == limits.files):
            yield batch
            batch, size = [], read.end - read.start
        batch.append(read)
    if batch:
        yield batch


@contextmanager
def alone(spark: SparkSession, place: str) -> Iterator[None]:
    """Keep others from gathering into the same place, if it is on a file system of this machine.

    Raises IngestError if somebody does.
    """
    path = local_path(spark, place)
    if path is None:
        yield
        return
    path.mkdir(parents=True, exist_ok=True)
    with open(path / "lock", "ab", opener=unlinked) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise IngestError(f"another ingest is writing to {path.parent}") from error
        yield
