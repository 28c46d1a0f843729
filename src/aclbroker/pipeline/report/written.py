"""Reads the tables that jobs wrote, for the report, and writes them as CSV beside the Parquet.

Tables on a local disk are read by pyarrow in pieces, so that a table larger than memory does no
harm; those at URLs through Spark.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import csv

from aclbroker.pipeline.report.content import Column, WrittenTable
from aclbroker.pipeline.spark.files import is_local, path_of
from aclbroker.terminal import csv_cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_ROWS: Final = 50_000
"""How many rows of a table are kept for the report."""

MOST_CSV_ROWS: Final = 1_048_575
"""How many rows a CSV file has at most: with its head as many as spreadsheets open."""

_FIRST: Final = ("removable", "taken", "entire", "flipped_events", "events", "rights")
"""The rows with the highest values of the first of these columns matter most."""

_RAW: Final = frozenset(["matrix/decisions"])
"""For programs alone: it names ACLs by their ids."""


def read_written(spark: SparkSession, place: str, names: Iterable[str]) -> dict[str, WrittenTable]:
    """Return those of the outputs ``names`` below ``place`` that are tables, and write their CSV.

    Of a table with more than `MOST_ROWS` rows those that matter most are returned. One with more
    than `MOST_CSV_ROWS` has no CSV, and its first rows are returned; one at a URL has no CSV.
    """
    tables = [name for name in names if "." not in name.rpartition("/")[2] and name not in _RAW]
    if not tables or not is_local(spark, place):
        return {name: _of_url(spark, f"{place}/{name}") for name in tables}
    root = Path(path_of(place) if "://" in place or place.startswith("file:") else place)
    return {name: read_directory(root, name) for name in tables}


def read_directory(root: Path, name: str) -> WrittenTable:
    """Return the table ``name`` of a local directory, and write its CSV; see `read_written`."""
    rows = _dataset(root / name)
    file = root / f"{name}.csv"
    if rows is None:
        file.unlink(missing_ok=True)
        return WrittenTable((), 0)
    total = rows.count_rows()
    if total > MOST_CSV_ROWS:
        file.unlink(missing_ok=True)
        return WrittenTable(_columns(rows.head(MOST_ROWS)), total)
    best = _Best(rows.schema)
    kinds = [(each.name, _kind(each.type)) for each in rows.schema]
    with csv.CSVWriter(file, pa.schema(kinds)) as out:
        for batch in rows.to_batches():
            best.add(pa.Table.from_batches([batch]))
            out.write_batch(_for_csv(batch))
    return WrittenTable(_columns(best.rows), total, file.name)


def _dataset(directory: Path) -> ds.Dataset | None:
    files = sorted(directory.rglob("*.parquet"))
    if not files:
        return None
    inner = files[0].relative_to(directory).parts[:-1]
    # A cluster called 007 is no number.
    fields = [(part.partition("=")[0], pa.string()) for part in inner]
    partitioning = ds.partitioning(pa.schema(fields), flavor="hive")
    return ds.dataset(
        [str(each) for each in files],
        format="parquet",
        partitioning=partitioning,
        partition_base_dir=str(directory),
    )


def _of_url(spark: SparkSession, url: str) -> WrittenTable:
    rows = spark.read.parquet(url)
    total = rows.count()
    by = next((name for name in _FIRST if name in rows.columns), None)
    best = rows if by is None else rows.orderBy(by, ascending=False)
    return WrittenTable(_columns(best.limit(MOST_ROWS).toArrow()), total)


class _Best:
    """The rows that matter most of those that were added."""

    def __init__(self, schema: pa.Schema) -> None:
        self.rows = schema.empty_table()
        self._by = next((name for name in _FIRST if name in schema.names), None)

    def add(self, more: pa.Table) -> None:
        rows = pa.concat_tables([self.rows, more])
        if self._by is not None:
            values = pc.cast(rows[self._by], pa.int64())
            order = pc.sort_indices(values, [("", "descending")])
            rows = rows.take(order[:MOST_ROWS])
        self.rows = rows.slice(0, MOST_ROWS)


def _columns(rows: pa.Table) -> list[Column]:
    return [_column(name, rows[name]) for name in rows.column_names]


def _column(name: str, values: pa.ChunkedArray) -> Column:
    encoded = _plain(values).combine_chunks()
    if not isinstance(encoded, pa.DictionaryArray):
        encoded = encoded.dictionary_encode(null_encoding="encode")
    codes = array("i", encoded.indices.to_pylist())
    return Column(name, encoded.dictionary.to_pylist(), codes)


def _kind(kind: pa.DataType) -> pa.DataType:
    """What values of a type are shown as: numbers, flags or texts."""
    is_plain = pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return kind if is_plain else pa.string()


def _plain(values: Any) -> Any:
    kind = values.type
    if pa.types.is_list(kind):
        return pc.binary_join(pc.cast(values, pa.list_(pa.string())), "; ")
    if pa.types.is_timestamp(kind):
        seconds = pc.cast(values, pa.timestamp("s", kind.tz), safe=False)
        return pc.strftime(seconds, "%Y-%m-%d %H:%M:%S")
    return pc.cast(values, _kind(kind))


def _for_csv(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [_plain(column) for column in batch.columns]
    columns = [_safe(each) if pa.types.is_string(each.type) else each for each in columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _safe(texts: pa.Array) -> pa.Array:
    encoded = texts.dictionary_encode()
    values = pa.array(map(csv_cell, encoded.dictionary.to_pylist()), pa.string())
    return values.take(encoded.indices)
