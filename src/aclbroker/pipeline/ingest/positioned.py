"""The events of a log, counted by the position of the ACLs that decided, too.

There are more of these rows than of usage, which most jobs need: so they are made for those alone
that ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.ingest.parsed import Parsed
from aclbroker.pipeline.ingest.stored import EVENTS, read_table, table_tasks
from aclbroker.pipeline.ingest.usage import usage_rows
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.packing import packed
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POSITIONS: Final = ("first_acls", "acls")
"""The columns of positions, both null in logs without them."""

MARK: Final = "mark"
"""A column with a text, or null, that whoever asks for the rows wants to tell events apart by."""

Mark = Callable[[pa.Table], pa.Array]
"""Returns the column `MARK` of events, which have all the other columns."""

KEYS: Final = (
    *("cluster", "day", "listener", "principal", "other_principals", "host", "operation"),
    *("resource_type", "resource_name", "allowed", "rule"),
    *POSITIONS,
    MARK,
)
"""The columns by which events are counted here; those of positions are dictionary-encoded."""

COUNTS: Final[Mapping[str, str]] = {"events": "sum", "first_seen": "min", "last_seen": "max"}
"""The other columns, and how those of two rows become one."""

_UNMARKED: Final = KEYS[:-1]
_AT_ONCE: Final = 100_000
_OUTSIDE: Final = ("cluster", "day")
_IN_EVENTS: Final = {"first_seen": "timestamp", "last_seen": "last_timestamp"}
_ENCODED: Final = pa.dictionary(pa.int32(), pa.int64())

Batches = Iterator[pa.RecordBatch]


def positioned_rows(parsed: Parsed) -> pa.Table:
    """Return rows with the columns `KEYS` and `COUNTS`, to be added up, for some events."""
    found = usage_rows(parsed)
    for name in POSITIONS:
        # With an index they are of a Kafka's log, which has no positions.
        column = (
            parsed.records[name].cast(pa.int64()).dictionary_encode()
            if parsed.index is None
            else pa.nulls(len(found), _ENCODED)
        )
        found = found.append_column(name, column)
    return found.select([*_UNMARKED, *COUNTS])


def packed_rows(tables: Iterable[pa.Table], mark: Mark) -> Batches:
    """Yield tables of `positioned_rows`, marked and counted, as rows with the column ``packed``."""
    marked = (each.append_column(MARK, mark(each)) for each in tables)
    for found in counted(marked, KEYS, COUNTS):
        yield pa.RecordBatch.from_pydict({"packed": pa.array([packed(found)], pa.binary())})


def read_positioned(spark: SparkSession, place: str, mark: Mark) -> Usage:
    """Return the events that `ingest` gathered at a place, counted."""
    tasks = table_tasks(spark, place, EVENTS)
    if tasks is not None:
        return Usage(tables=tasks.mapInArrow(partial(_of_files, mark), "packed binary"))
    rows = read_table(spark, place, EVENTS)
    columns = [*_UNMARKED, "events", *_IN_EVENTS.values()]
    return Usage(tables=rows.select(*columns).mapInArrow(partial(_of_rows, mark), "packed binary"))


def _of_files(mark: Mark, batches: Batches) -> Batches:
    with uncollected():
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from packed_rows((table for row in rows for table in _stored(**row)), mark)


def _of_rows(mark: Mark, batches: Batches) -> Batches:
    with uncollected():
        tables = (_of_events(pa.Table.from_batches([batch])) for batch in batches)
        yield from packed_rows(tables, mark)


def _stored(path: str, cluster: str, day: date) -> Iterator[pa.Table]:
    """Yield the rows of a file of events; the cluster and the day are not in it."""
    texts = [name for name in _UNMARKED if name not in (*_OUTSIDE, *POSITIONS, "allowed")]
    read: dict[str, Any] = {"read_dictionary": texts, "coerce_int96_timestamp_unit": "us"}
    with pq.ParquetFile(path, **read) as file:
        # Earlier versions wrote no positions.
        there = {*file.schema_arrow.names}
        wanted = [*_UNMARKED, "events", *_IN_EVENTS.values()]
        columns = [name for name in wanted if name in there and name not in _OUTSIDE]
        for batch in file.iter_batches(_AT_ONCE, columns=columns, use_threads=False):
            table = pa.Table.from_batches([batch])
            for name, value in (("cluster", cluster), ("day", day)):
                table = table.append_column(name, pa.repeat(pa.scalar(value), len(table)))
            yield _of_events(table)


def _of_events(table: pa.Table) -> pa.Table:
    columns: dict[str, Any] = {}
    for name in (*_UNMARKED, *COUNTS):
        stored = _IN_EVENTS.get(name, name)
        if name in POSITIONS:
            is_there = name in table.column_names
            column = table[name] if is_there else pa.nulls(len(table), pa.int64())
            columns[name] = column.cast(pa.int64()).dictionary_encode()
        elif stored == name:
            columns[name] = table[name]
        else:
            columns[name] = table[stored].cast(pa.timestamp("us", tz="UTC"))
    return pa.table(columns)
