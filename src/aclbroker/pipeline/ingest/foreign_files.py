"""Reads tables that somebody else wrote: local Parquet in workers themselves, others by Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aclbroker.pipeline.ingest.column_places import located, partition
from aclbroker.pipeline.ingest.columns import Columns
from aclbroker.pipeline.ingest.foreign import parsed
from aclbroker.pipeline.ingest.parsed import Parsed, Rejected, records_table, timestamps
from aclbroker.pipeline.ingest.texts import Text

_ROWS: Final = 1 << 16
"""How many rows are read at a time."""


def rows_in_file(path: str, columns: Columns) -> int:
    """Return how many rows a local file has; one without a byte has none.

    Raises ValueError, which says why, if it is no whole Parquet file or has not these columns, and
    OSError if it cannot be read.
    """
    with Text(path) as text:
        if not text.size():
            return 0
        file = _opened(text)
        located(columns, file.schema_arrow, path)
        return int(file.metadata.num_rows)


def rows_of(
    batches: Iterator[pa.RecordBatch], columns: Columns, cluster: str, zone: tzinfo
) -> Iterator[tuple[str, Parsed]]:
    """Yield what rows say, and of which file they are; in a worker.

    ``batches`` are those of `pipeline.ingest.sources.lines`, which say where pieces of local files
    are, or rows that Spark read (`pipeline.ingest.foreign_tables`). A file that is no Parquet, or
    has not these columns, is quarantined as a whole. Raises OSError for one whose rows are damaged.
    """
    for batch in batches:
        if "path" not in batch.schema.names:
            yield from _of_spark(batch, cluster, zone)
            continue
        for piece in batch.to_pylist():
            name = piece["source_file"]
            try:
                for found in _of_piece(piece["path"], piece["start"], piece["end"], columns):
                    yield name, parsed(found, name, cluster, zone)
            except ValueError as error:
                # Each piece of it would say so.
                if piece["start"] == 0:
                    rejected = [Rejected(name, b"", str(error), None)]
                    yield name, Parsed(records_table(()), None, timestamps(()), rejected)


def _of_spark(batch: pa.RecordBatch, cluster: str, zone: tzinfo) -> Iterator[tuple[str, Parsed]]:
    if not batch.num_rows:
        return
    names = batch.column("source_file")
    changes = np.flatnonzero(np.diff(names.dictionary_encode().indices.to_numpy())) + 1
    for first, end in pairwise([0, *changes.tolist(), batch.num_rows]):
        part = batch.slice(first, end - first)
        found = {what: part.column(what) for what in part.schema.names if what != "source_file"}
        yield names[first].as_py(), parsed(found, names[first].as_py(), cluster, zone)


def _opened(text: Text) -> pq.ParquetFile:
    """Open a Parquet file. Raises ValueError if it is none."""
    try:
        return pq.ParquetFile(pa.PythonFile(text.stream(0), "r"))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"no whole Parquet file: {error}") from error


def _of_piece(
    path: str, start: int, end: int, columns: Columns
) -> Iterator[Mapping[str, pa.Array]]:
    """Yield the columns of the row groups that begin in a piece of a file."""
    with Text(path) as text:
        file = _opened(text)
        places = located(columns, file.schema_arrow, path)
        groups = [each for each in range(file.num_row_groups) if start <= _begin(file, each) < end]
        if not groups:
            return
        read = sorted({".".join(place) for place in places.values() if place})
        try:
            for batch in file.iter_batches(_ROWS, groups, read, use_threads=False):
                yield {
                    what: _column(batch, place)
                    if place
                    else pa.repeat(partition(path, columns.of(what) or ""), batch.num_rows)
                    for what, place in places.items()
                }
        except (pa.ArrowException, OSError) as error:
            raise OSError(f"{path}: damaged Parquet file: {error}") from error


def _begin(file: pq.ParquetFile, group: int) -> int:
    """Return the byte at which a row group begins."""
    column = file.metadata.row_group(group).column(0)
    return int(column.dictionary_page_offset or column.data_page_offset)


def _column(batch: pa.RecordBatch, place: tuple[str, ...]) -> pa.Array:
    found = batch.column(place[0])
    for name in place[1:]:
        # Of a null the fields are null, too.
        found = pc.struct_field(found, name)
    return found
