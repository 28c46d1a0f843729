"""Makes few files of the many small ones that short runs of `ingest` leave in a table.

What is rewritten is a day of a cluster in a table: its directory is made anew beside the tables,
and then changes places with the old one, which Linux and macOS do in one step. So whoever lists the
directory finds all rows once, at any moment, and whatever a killed run leaves lies in a directory
that no reader looks into, and that the next run removes. Jobs that are reading hold it off, since
files that they have listed are removed (`reading`).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.spark.files import unlinked

MOST_FILES: Final = 8
"""How many small files a day of a table may have before they become one."""

SETTLED: Final = 86_400.0
"""After how many seconds without a new file those of a day become one, however few they are."""

READERS: Final = "readers"
"""The file that jobs lock while they read the tables; it is empty."""

LARGE: Final = 64 << 20
"""A file of so many bytes stays as it is."""

_MADE: Final = 4 * LARGE
_WORK: Final = "_compacting"
_BATCH: Final = "batch=compacted"
_ROWS: Final = 1 << 16


def compact(place: Path, tables: Mapping[str, pa.Schema], checkpoints: Path, now: float) -> int:
    """Make the small files of each day of some tables one; return how many days were rewritten.

    ``tables`` are the columns of those below ``place``, by name. ``checkpoints`` is where readers
    are noted (`reading`): while there are some, nothing is done, nor where the file system cannot
    let directories change places. ``now`` is in seconds since 1970.

    The caller sees to it that nobody writes into the tables, and that every file in them belongs
    to a finished batch. Raises OSError if a file cannot be read or written.
    """
    work = place / _WORK
    shutil.rmtree(work, ignore_errors=True)
    rewritten = 0
    for name, schema in tables.items():
        for day in sorted((place / name).glob("cluster=*/day=*")):
            small, kept = _files(day)
            if not _is_due(small, now):
                continue
            with _no_readers(checkpoints) as is_alone:
                if not is_alone or not (rewritten or _can_exchange(work)):
                    return rewritten
            made = work / day.relative_to(place)
            _merge(day, small, kept, made, schema)
            with _no_readers(checkpoints) as is_alone:
                is_done = is_alone and _exchanged(made, day)
                # What was there before, or what nobody needs now.
                shutil.rmtree(work)
            if not is_done:
                return rewritten
            rewritten += 1
    return rewritten


def sweep(place: Path, tables: Iterable[str], batches: int | None) -> None:
    """Remove what killed runs left in and beside tables.

    The caller sees to it that none is going on. ``batches`` is how many batches of local files the
    ledger knows: what others wrote is removed; None if there is no ledger.
    """
    shutil.rmtree(place / _WORK, ignore_errors=True)
    for name in tables:
        # Spark's, while it writes.
        left = [*(place / name).glob(".spark-staging-*"), place / name / "_temporary"]
        if batches is not None:
            left += [
                each
                for each in (place / name).glob("cluster=*/day=*/batch=files-*")
                if int(each.name.rpartition("-")[2]) >= batches
            ]
        for each in left:
            shutil.rmtree(each, ignore_errors=True)


def reading(checkpoints: Path) -> int | None:
    """Note that somebody reads the tables; return the descriptor of a file that keeps the note.

    It is kept until `os.close` of that, or the end of the process.

    Waits while files are being removed. None if readers cannot be noted, since nobody has compacted
    here, or the file system is read-only.
    """
    try:
        descriptor = os.open(checkpoints / READERS, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def _no_readers(checkpoints: Path) -> Iterator[bool]:
    """Yield whether nobody reads; then nobody begins to until it is over."""
    with open(checkpoints / READERS, "ab", opener=unlinked) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _files(day: Path) -> tuple[list[Path], list[Path]]:
    """Return the small files of a day, in the order of their names, and the others."""
    found: tuple[list[Path], list[Path]] = ([], [])
    for each in sorted(day.glob("batch=*/*.parquet")):
        if each.name[0] not in "._":
            found[each.stat().st_size >= LARGE].append(each)
    return found


def _is_due(small: Sequence[Path], now: float) -> bool:
    if len(small) > MOST_FILES:
        return True
    return len(small) > 1 and now - max(each.stat().st_mtime for each in small) > SETTLED


def _merge(
    day: Path, small: Sequence[Path], kept: Sequence[Path], made: Path, schema: pa.Schema
) -> None:
    """Write what a day's directory is to be."""
    for each in kept:
        place = made / each.relative_to(day)
        place.parent.mkdir(parents=True, exist_ok=True)
        # The same file: it has two names until the old directory is removed.
        os.link(each, place)
    directory = made / _BATCH
    directory.mkdir(parents=True, exist_ok=True)
    before = (int(each.stem) for each in day.glob(f"{_BATCH}/[0-9]*.parquet"))
    for number, group in enumerate(_groups(small), 1 + max(before, default=-1)):
        path = directory / f"{number:06}.parquet"
        with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for each in group:
                for batch in _batches(each, schema):
                    writer.write_batch(batch)
        _sync(path)
    for each in (*made.iterdir(), made):
        _sync(each)


def _groups(small: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield files that are to become one, which has not much more than `_MADE` bytes then."""
    group: list[Path] = []
    size = 0
    for each in small:
        group.append(each)
        size += each.stat().st_size
        if size >= _MADE:
            yield group
            group, size = [], 0
    if group:
        yield group


def _batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        for batch in file.iter_batches(_ROWS, columns=schema.names, use_threads=False):
            # Tables of older versions have fewer columns.
            columns = [
                batch.column(each.name).cast(each.type)
                if each.name in batch.schema.names
                else pa.nulls(batch.num_rows, each.type)
                for each in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _can_exchange(work: Path) -> bool:
    """Tell whether the file system can let directories change places."""
    one, other = work / "one", work / "other"
    one.mkdir(parents=True)
    other.mkdir()
    try:
        return _exchanged(one, other)
    finally:
        shutil.rmtree(work)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two directories change places in one step; return False if the file system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        exchange = getattr(library, "renamex_np", None)
        arguments: tuple[object, ...] = (*names, _SWAP)
    else:
        exchange = getattr(library, "renameat2", None)
        arguments = (_HERE, names[0], _HERE, names[1], _SWAP)
    if exchange is None or exchange(*arguments) != 0:
        return False
    _sync(other.parent)
    return True


_HERE: Final = -100  # AT_FDCWD
_SWAP: Final = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
