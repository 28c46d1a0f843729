"""Finds log files: workers read those of a local disk themselves, Spark all others as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.errors import LogError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.kafka_log import Piece
from aclbroker.pipeline.ingest.memory import Lines
from aclbroker.pipeline.ingest.pieces import read_lines
from aclbroker.pipeline.ingest.reads import Read
from aclbroker.pipeline.ingest.texts import HEAD, OPAQUE, Prefix, is_compressed, opened
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.pipeline.spark.files import as_pattern, is_local, path_of
from aclbroker.pipeline.spark.tasks import in_tasks, task_size

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A path such as cluster=a/ is a place, and adds no column.
_FILES: Final = {"recursiveFileLookup": "true"}
# A carriage return in a name must not begin a line that looks like a record.
_TEXT: Final = {**_FILES, "lineSep": "\n"}
_LINES: Final = (
    "line string, source_file string, start long, path string, end long, "
    "prefix_length long, prefix_digest string, is_whole boolean"
)


_NO_INPUT: Final = "no input was named"


class IngestError(Exception):
    """The input cannot be read; the message says what to do."""


class _File(NamedTuple):
    url: str
    path: str
    size: int


def head(spark: SparkSession, paths: Sequence[str], *, may_be_empty: bool = False) -> bytes:
    """Return the beginning of the first file that is not blank.

    Raises IngestError if there is none, unless all of them ``may_be_empty``.
    """
    found = b""
    if isinstance(spark, LocalSession):
        found = next(filter(bytes.strip, map(_head, _found(spark, paths))), b"")
        return _checked(found, paths, may_be_empty)
    with read_errors_told():
        patterns = _patterns(spark, paths)
        paths_of_files = [path_of(url) for url in _urls(spark, patterns)]
        are_local = all(is_local(spark, each) for each in patterns)
        if are_local and not any(each.endswith(OPAQUE) for each in paths_of_files):
            heads = (_head(each) for each in sorted(paths_of_files))
            found = next((each for each in heads if each.strip()), b"")
        else:
            text = _text(spark, patterns)
            rows = text.where(F.length(F.trim("line")) > 0).select("line").take(_LINES_OF_HEAD)
            found = "".join(f"{row['line']}\n" for row in rows).encode()
    return _checked(found, paths, may_be_empty)


def _checked(found: bytes, paths: Sequence[str], may_be_empty: bool) -> bytes:
    if not found and not may_be_empty:
        raise IngestError(f"nothing is in {', '.join(paths)}")
    return found


_LINES_OF_HEAD: Final = 100


def _head(path: str) -> bytes:
    try:
        with opened(path) as text:
            return text.at(0, HEAD)
    except FileNotFoundError:  # rotated right now
        return b""


def lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Return where the lines of files are, for `worker_lines`.

    ``paths``: files, directories (with all below them, but for names that begin with ``.`` or
    ``_``), patterns of these, or URLs that Spark has a connector for; what ends in ``.gz``,
    ``.zst`` or ``.bz2`` is decompressed. Raises IngestError if one does not exist.
    """
    if isinstance(spark, LocalSession):
        return _of_files(spark, _files(Path(each).as_uri() for each in _found(spark, paths)), [])
    with read_errors_told():
        patterns = _patterns(spark, paths)
        local = [each for each in patterns if is_local(spark, each)]
        others = [each for each in patterns if each not in local]
        # If one does not exist, these raise an error that says so.
        text = _text(spark, others) if others else None
        if text is not None and not local:
            return text
        files = _files(_urls(spark, local))
    return _of_files(spark, files, others)


def local_files(spark: SparkSession, path: str) -> list[str] | None:
    """Return the paths of the files that one of the ``paths`` of `lines` stands for.

    None if they are not on a file system of this machine. Raises IngestError as `lines` does.
    """
    if isinstance(spark, LocalSession):
        return _found(spark, [path])
    with read_errors_told():
        pattern = as_pattern(spark, path)
        if not is_local(spark, pattern):
            return None
        return sorted({path_of(url) for url in _urls(spark, [pattern])})


def _found(session: LocalSession, paths: Sequence[str]) -> list[str]:
    if not paths:
        raise IngestError(_NO_INPUT)
    try:
        found = [path for each in paths for path in session.files_of(each)]
    except LogError as error:
        raise IngestError(f"the input cannot be read: {error}") from error
    return sorted({str(Path(each).absolute()) for each in found})


def planned_lines(spark: SparkSession, reads: Sequence[Read]) -> DataFrame:
    """Return, for `worker_lines`, where the lines are that were found to be new in local files."""
    size = task_size(spark, [read.end - read.start for read in reads])
    rows: list[tuple[Any, ...]] = []
    for read in reads:
        if read.path.endswith(OPAQUE):
            continue
        # A compressed file would be decompressed from its beginning for each piece.
        step = read.end - read.start if is_compressed(read.path) else size
        for start in range(read.start, read.end, step):
            end = min(start + step, read.end)
            url = Path(read.path).as_uri()
            rows.append((None, url, start, read.path, end, *read.prefix, start == read.start))
    pieces = in_tasks(spark, rows, [row[4] - row[2] for row in rows], _LINES)
    others = [as_pattern(spark, each.path) for each in reads if each.path.endswith(OPAQUE)]
    return pieces.unionByName(_text(spark, others)) if others else pieces


def stream(spark: SparkSession, path: str, options: Mapping[str, str]) -> DataFrame:
    """Return the lines of files that are not local as they appear, for `worker_lines`.

    ``options``: Spark's for file streams.
    """
    return _of_text(spark.readStream.options(**_TEXT, **options).text(as_pattern(spark, path)))


def worker_lines(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Piece, Lines]]:
    """Yield lines, and which piece of which file they are of; in a worker.

    Those of a piece follow each other in their order. Raises OSError for a file that cannot be
    read, MovedError for one that is no longer what was planned, and LineTooLongError.
    """
    for batch in batches:
        for number, path in enumerate(batch.column("path").to_pylist()):
            if path is not None:
                row = batch.slice(number, 1).to_pylist()[0]
                prefix = row["prefix_digest"] and Prefix(row["prefix_length"], row["prefix_digest"])
                with opened(path, prefix) as text:
                    head = text.at(0, HEAD)
                piece = Piece(row["source_file"], row["start"], row["is_whole"], head)
                for lines in read_lines(path, row["start"], row["end"], prefix):
                    yield piece, lines
        yield from _read_by_spark(batch.filter(pc.is_null(batch.column("path"))))


def _read_by_spark(batch: pa.RecordBatch) -> Iterator[tuple[Piece, Lines]]:
    if not batch.num_rows:
        return
    line, source_file, start = (batch.column(name) for name in ("line", "source_file", "start"))
    # Whether they are UTF-8 is checked where they are parsed.
    lines = line.cast(pa.binary() if line.type == pa.string() else pa.large_binary())
    codes = source_file.dictionary_encode().indices.to_numpy()
    changes = np.diff(codes).astype(bool) | np.diff(start.to_numpy()).astype(bool)
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), batch.num_rows]
    for first, end in pairwise(bounds):
        piece = Piece(source_file[first].as_py(), start[first].as_py())
        yield piece, Lines.of(lines[first:end])


@contextmanager
def read_errors_told() -> Iterator[None]:
    """Raise IngestError, which tells why an input cannot be read, for Spark's errors."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise IngestError(f"the input cannot be read: {error.getMessage() or error}") from error
    except Py4JJavaError as error:  # such as for an invalid pattern
        reason = error.java_exception.getMessage()
        raise IngestError(f"the input cannot be read: {reason}") from error


def _patterns(spark: SparkSession, paths: Sequence[str]) -> list[str]:
    if not paths:
        raise IngestError(_NO_INPUT)
    return [as_pattern(spark, path) for path in paths]


def _urls(spark: SparkSession, patterns: list[str]) -> list[str]:
    found: list[str] = spark.read.options(**_TEXT).text(patterns).inputFiles()
    return found


def _text(spark: SparkSession, patterns: list[str]) -> DataFrame:
    return _of_text(spark.read.options(**_TEXT).text(patterns))


def _of_text(text: DataFrame) -> DataFrame:
    return text.select(
        F.col("value").alias("line"),
        F.col("_metadata.file_path").alias("source_file"),
        F.col("_metadata.file_block_start").alias("start"),
        *no_piece(),
    )


def no_piece() -> list[Column]:
    """Return the columns of `worker_lines` that say which piece of a file a worker shall read."""
    from aclbroker.pipeline.frames.types import StructType

    schema = StructType.fromDDL(_LINES)
    names = [name for name in schema.fieldNames() if name not in ("line", "source_file", "start")]
    return [F.lit(None).cast(schema[name].dataType).alias(name) for name in names]


def _files(urls: Iterable[str]) -> list[_File]:
    """Return local files in the order of their names, each once."""
    paths = sorted({Path(path_of(url)) for url in urls})
    return [_File(path.as_uri(), str(path), path.stat().st_size) for path in paths]


def _of_files(spark: SparkSession, files: Sequence[_File], others: Sequence[str]) -> DataFrame:
    """Return where the lines of local files are, and those of other patterns."""
    for_spark = [each for each in files if each.path.endswith(OPAQUE)]
    pieces = _pieces(spark, [each for each in files if each not in for_spark])
    text = [*others, *(as_pattern(spark, each.path) for each in for_spark)]
    return pieces.unionByName(_text(spark, text)) if text else pieces


def _pieces(spark: SparkSession, files: Sequence[_File]) -> DataFrame:
    """Return pieces of files."""
    size = task_size(spark, [file.size for file in files])
    rows: list[tuple[Any, ...]] = []
    for file in files:
        if is_compressed(file.path):
            rows.append((file.size, None, file.url, 0, file.path, None, *_AS_IT_IS, True))
            continue
        for start in range(0, file.size, size):
            end = min(start + size, file.size)
            row = (None, file.url, start, file.path, end, *_AS_IT_IS, start == 0)
            rows.append((end - start, *row))
    return in_tasks(spark, [row[1:] for row in rows], [row[0] for row in rows], _LINES)


_AS_IT_IS: Final = (None, None)
"""The prefix of a file that is read whatever it holds."""
