"""The table of usage (`pipeline.schemas.usage`), wherever its rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.spark.tasks import busy_tasks
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.packing import decoded, unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

KEYS: Final = (
    *("cluster", "day", "listener", "principal", "other_principals", "host", "operation"),
    *("resource_type", "resource_name", "api", "allowed", "rule", "quiet"),
)
"""The columns by which events are counted."""

COUNTS: Final[Mapping[str, str]] = {
    "events": "sum",
    "reference_count": "sum",
    "first_seen": "min",
    "last_seen": "max",
}
"""The other columns, and how those of two rows become one."""

Tables = Iterator[pa.Table]
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of usage: those of some clusters and days (None for all), with some values."""

    clusters: tuple[str, ...] | None
    since: date | None
    until: date | None
    values: Mapping[str, str | bool]

    @property
    def columns(self) -> set[str]:
        """The columns that tell which rows these are."""
        found = set(self.values)
        if self.clusters is not None:
            found.add("cluster")
        if self.since is not None or self.until is not None:
            found.add("day")
        return found

    def of_rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a table of Spark's."""
        if self.clusters is not None:
            rows = rows.where(F.col("cluster").isin(list(self.clusters)))
        for name, value in self.values.items():
            rows = rows.where(F.col(name) == value)
        return of_days(rows, self.since, self.until)

    def of_table(self, table: pa.Table) -> pa.Table:
        """Return the rows of a table of Arrow's."""
        if self.clusters is not None:
            table = _where(table, _are_among(table["cluster"], self.clusters))
        for name, value in self.values.items():
            table = _where(table, pc.equal(table[name], value))
        if self.since is not None:
            table = _where(table, pc.greater_equal(table["day"], self.since))
        if self.until is not None:
            table = _where(table, pc.less_equal(table["day"], self.until))
        return table


def _where(table: pa.Table, wanted: pa.ChunkedArray) -> pa.Table:
    """Return some rows of a table; mostly these are all, and nothing is copied."""
    return table if pc.all(wanted, skip_nulls=False).as_py() else table.filter(wanted)


def _are_among(column: pa.ChunkedArray, values: Sequence[str]) -> pa.ChunkedArray:
    """Tell which texts, dictionary-encoded or not, are among some others."""
    wanted = pa.array(values, pa.string())
    found = [
        pc.is_in(chunk.dictionary, value_set=wanted).take(chunk.indices)
        if pa.types.is_dictionary(chunk.type)
        else pc.is_in(chunk, value_set=wanted)
        for chunk in column.chunks
    ]
    return pa.chunked_array(found, pa.bool_())


def of_days(rows: DataFrame, since: date | None, until: date | None) -> DataFrame:
    """Return the rows of some days; those without a day are in all of them."""
    day = F.col("day")
    if since is not None:
        rows = rows.where(day.isNull() | (day >= F.lit(since)))
    if until is not None:
        rows = rows.where(day.isNull() | (day <= F.lit(until)))
    return rows


class Usage:
    """Rows of usage. Several can have the same keys, and count together.

    Made of Spark's ``rows``, or of ``tables`` that workers bring from elsewhere: rows with a column
    ``packed``, a table of `pipeline.usage.packing` or null, or with ``path``, a local Parquet file,
    and its ``cluster`` and ``day``. If both are given, they hold the same.
    """

    def __init__(
        self,
        rows: DataFrame | None = None,
        tables: DataFrame | None = None,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self._rows = rows
        self._tables = tables
        self._parts = parts

    def part(
        self,
        clusters: Iterable[str] | None = None,
        since: date | None = None,
        until: date | None = None,
        **values: str | bool,
    ) -> Usage:
        """Return the rows of some clusters, of the days from ``since`` to ``until``.

        ``values``: what some columns have in these rows.
        """
        part = Part(None if clusters is None else tuple(clusters), since, until, values)
        rows = None if self._rows is None else part.of_rows(self._rows)
        return Usage(rows, self._tables, (*self._parts, part))

    def and_also(self, other: Usage) -> Usage:
        """Return the rows of both, neither of which may be a `part`."""
        tables = None
        if self._tables is not None and other._tables is not None:
            tables = self._tables.unionByName(other._tables)
        if tables is not None and self._rows is None and other._rows is None:
            return Usage(tables=tables)
        return Usage(self.rows.unionByName(other.rows), tables)

    @property
    def rows(self) -> DataFrame:
        """The rows, for Spark."""
        if self._rows is None:
            self._rows = self.map(iter, schemas.usage())
        return self._rows

    def map(
        self,
        function: Callable[[Tables], Tables],
        schema: StructType,
        columns: Sequence[str] = (*KEYS, *COUNTS),
    ) -> DataFrame:
        """Return what a function makes of the rows in workers.

        It is given some of them at a time, all of a task one after the other, as tables with
        ``columns`` at least, whose texts may be dictionary-encoded; so may those that it returns,
        which have the columns of ``schema``.
        """
        work = partial(_mapped, function, self._parts, columns, schemas.arrow(schema))
        if self._tables is None:
            return self.rows.select(*columns).mapInArrow(work, schema)
        tables = self._tables
        if "packed" in tables.columns:
            tables = tables.select("packed").where("packed is not null")
            # To start a task costs more than to read one of these: a task gets several.
            busy = busy_tasks(tables.sparkSession)
            tables = tables if busy is None else tables.coalesce(busy)
        return tables.mapInArrow(work, schema)

    def by(self, *keys: str) -> DataFrame:
        """Return the usage counted by some of its columns only: several rows can have the same."""
        from aclbroker.pipeline.frames.types import StructType

        usage = schemas.usage()
        schema = StructType([usage[name] for name in (*keys, *COUNTS)])
        return self.map(partial(_counted_by, keys), schema, (*keys, *COUNTS))

    @property
    def spark(self) -> SparkSession:
        """The session that the rows are of."""
        found = self._rows if self._tables is None else self._tables
        assert found is not None  # noqa: S101 - one of the two was given
        return found.sparkSession


def _mapped(
    function: Callable[[Tables], Tables],
    parts: Sequence[Part],
    columns: Sequence[str],
    schema: pa.Schema,
    batches: Batches,
) -> Batches:
    with uncollected():
        for table in function(_tables(batches, parts, columns)):
            yield from decoded(table, schema).to_batches()


def _tables(batches: Batches, parts: Sequence[Part], columns: Sequence[str]) -> Tables:
    for batch in batches:
        if "packed" in batch.schema.names:
            for table in unpacked(batch.column("packed")):
                yield _parted(table, parts)
        elif "path" in batch.schema.names:
            needed = {*columns, *(name for part in parts for name in part.columns)}
            for row in batch.to_pylist():
                for table in _stored(**row, columns=[name for name in _ALL if name in needed]):
                    yield _parted(table, parts)
        else:
            yield pa.Table.from_batches([batch])


_ALL: Final = (*KEYS, *COUNTS)
_OUTSIDE: Final = ("cluster", "day")
_NO_TEXTS: Final = (*_OUTSIDE, "allowed", "quiet")
_AT_ONCE: Final = 200_000


def _stored(path: str, cluster: str, day: date, columns: Sequence[str]) -> Tables:
    """Yield the columns of a Parquet file; the cluster and the day are not in it."""
    metadata = pq.read_metadata(path)
    # Where texts differ too much to be numbered in the file, few are needed in the end.
    texts = [name for name in KEYS if name not in {*_NO_TEXTS, *_unnumbered(metadata)}]
    with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
        stored = [name for name in columns if name not in _OUTSIDE]
        for batch in file.iter_batches(_AT_ONCE, columns=stored, use_threads=False):
            firsts = np.zeros(batch.num_rows, np.int32)
            known = {
                "cluster": pa.DictionaryArray.from_arrays(firsts, [cluster]),
                "day": pa.repeat(pa.scalar(day), batch.num_rows),
            }
            found = [known[name] if name in known else batch.column(name) for name in columns]
            yield pa.table(found, columns)


def _unnumbered(metadata: pq.FileMetaData) -> set[str]:
    """Return the columns of a Parquet file that it does not keep as numbers of their values."""
    found = set()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            if not any("DICTIONARY" in encoding for encoding in column.encodings):
                found.add(column.path_in_schema)
    return found


def _parted(table: pa.Table, parts: Sequence[Part]) -> pa.Table:
    for part in parts:
        table = part.of_table(table)
    return table


def _counted_by(keys: Sequence[str], tables: Tables) -> Tables:
    return counted((table.select([*keys, *COUNTS]) for table in tables), keys, COUNTS)
