"""The file of a ledger: what a commit changes is written behind what is there.

When more was written behind than there was, the file is made anew beside the old one, and takes its
place in one step. So a commit costs what it changes, and the file is never more than about three
times as large as what it tells. At a URL, where nothing can be written behind, each makes it anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol
from zlib import crc32

from aclbroker.pipeline.ingest.ledger import Change, Ledger
from aclbroker.pipeline.ingest.ledger_lines import (
    Whole,
    all_lines,
    commit_lines,
    is_old,
    loaded,
    loaded_old,
    whole,
)
from aclbroker.pipeline.ingest.sources import IngestError
from aclbroker.pipeline.spark.files import local_path, replace_text, replaced_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME: Final = "ledger.json"
"""What the file of a ledger is called, as when it was JSON: older programs must not miss it."""

SMALL: Final = 1 << 20
"""So many bytes are always written behind what is there before the file is made anew."""


class LedgerFile(Protocol):
    """Where a ledger is kept. What is raised for a damaged one is IngestError."""

    def load(self) -> Ledger | None:
        """Return the ledger, None if there is none yet."""
        ...

    def batch(self) -> int | None:
        """Return the number of the next batch, None if there is no ledger yet."""
        ...

    def commit(self, ledger: Ledger, change: Change) -> None:
        """Change the ledger that was loaded, or a new one, here and in the file."""
        ...


def ledger_file(spark: SparkSession, place: str) -> LedgerFile:
    """Return where the ledger of the tables is kept whose checkpoints are at ``place``."""
    local = local_path(spark, place)
    return RemoteFile(spark, f"{place}/{NAME}") if local is None else LocalFile(local / NAME)


class LocalFile:
    """A ledger in a file of this machine, which is `LedgerFile`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = path.with_name(f"{path.name}.new")
        # Of what is whole; 0 if all is to be written.
        self._size = self._checksum = 0
        # Of what was written at once.
        self._at_once = 0

    def load(self) -> Ledger | None:
        """Return the ledger, None if there is none yet. Raises IngestError if it is damaged."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return None
        # Of a run that was killed while it made the file anew.
        self._new.unlink(missing_ok=True)
        with file:
            part, ledger = _read(file, str(self._path))
        if part is not None:
            self._size, self._checksum, self._at_once = part.size, part.checksum, part.first
        return ledger

    def batch(self) -> int | None:
        """Return the number of the next batch, None if there is no ledger yet."""
        try:
            with self._path.open("rb") as file:
                return _batch(file, str(self._path))
        except FileNotFoundError:
            return None

    def commit(self, ledger: Ledger, change: Change) -> None:
        """Change the ledger that was loaded, or a new one, here and in the file."""
        if self._size and not ledger.changes(change):
            return
        if not self._size:
            ledger.apply(change)
            self._write_anew(ledger)
            return
        with self._path.open("r+b") as file:
            # What a killed commit left.
            file.truncate(self._size)
            file.seek(self._size)
            self._size, self._checksum = _write(
                file, commit_lines(change, self._checksum), self._size, self._checksum
            )
        ledger.apply(change)
        if self._size - self._at_once > max(self._at_once, SMALL):
            self._write_anew(ledger)

    def _write_anew(self, ledger: Ledger) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._new.unlink(missing_ok=True)
        with self._new.open("xb") as file:
            size, checksum = _write(file, all_lines(ledger), 0, 0)
        self._new.replace(self._path)
        directory = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._size, self._checksum, self._at_once = size, checksum, size


class RemoteFile:
    """A ledger in a file at a URL, which is `LedgerFile`."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._spark = spark
        self._url = url
        self._is_there = False

    def load(self) -> Ledger | None:
        """Return the ledger, None if there is none yet. Raises IngestError if it is damaged."""
        file = self._file()
        if file is None:
            return None
        part, ledger = _read(file, self._url)
        self._is_there = part is not None
        return ledger

    def batch(self) -> int | None:
        """Return the number of the next batch, None if there is no ledger yet."""
        file = self._file()
        return None if file is None else _batch(file, self._url)

    def commit(self, ledger: Ledger, change: Change) -> None:
        """Change the ledger that was loaded, or a new one, here and in the file."""
        if self._is_there and not ledger.changes(change):
            return
        ledger.apply(change)
        text = b"".join(all_lines(ledger)).decode()
        replace_text(self._spark, self._url, text)
        self._is_there = True

    def _file(self) -> IO[bytes] | None:
        text = replaced_text(self._spark, self._url)
        return None if text is None else BytesIO(text.encode())


def _read(file: IO[bytes], name: str) -> tuple[Whole | None, Ledger]:
    """Return a ledger and which part of the file tells it, None if that is of the first version."""
    try:
        if is_old(file.readline()):
            file.seek(0)
            return None, loaded_old(file.read())
        file.seek(0)
        part = whole(file)
        file.seek(0)
        return part, loaded(file, part)
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name, error) from error


def _batch(file: IO[bytes], name: str) -> int:
    try:
        if is_old(file.readline()):
            file.seek(0)
            return loaded_old(file.read()).batch
        file.seek(0)
        return whole(file).batch
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name, error) from error


def _damaged(name: str, error: Exception) -> IngestError:
    return IngestError(
        f"{name}, which tells what the tables hold, is damaged ({error}): "
        "gather the logs into another output"
    )


def _write(file: IO[bytes], lines: Iterable[bytes], size: int, checksum: int) -> tuple[int, int]:
    """Write lines, and return the size and the checksum of the file with them."""
    for line in lines:
        file.write(line)
        size += len(line)
        checksum = crc32(line, checksum)
    file.flush()
    os.fsync(file.fileno())
    return size, checksum
