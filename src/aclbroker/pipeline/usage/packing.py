"""Tables of Arrow as single values of Spark's rows.

On their way out of a Python worker, into its cache and back, Spark handles rows one by one and text
by text, which takes longer than all that jobs compute from them. A packed table is one value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ipc

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.spark.tasks import busy_tasks
from aclbroker.pipeline.usage.grouping import as_integers
from aclbroker.pipeline.usage.narrowing import narrowed, widened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_CODEC: Final = pa.Codec("zstd", compression_level=2)
_SIZE: Final = struct.Struct("<Q")


def packed(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    table = narrowed(table)
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = sink.getvalue()
    # Arrow would compress each column, and leave 5 KB of their description as they are.
    compressed: bytes = _CODEC.compress(stream, asbytes=True)
    return _SIZE.pack(len(stream)) + compressed


def unpacked(values: Iterable[pa.Scalar]) -> Iterator[pa.Table]:
    """Yield the tables that an array of binary holds."""
    for value in values:
        buffer = value.as_buffer()
        (size,) = _SIZE.unpack(buffer[: _SIZE.size])
        with ipc.open_stream(_CODEC.decompress(buffer[_SIZE.size :], size)) as reader:
            yield widened(reader.read_all())


def decoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema, whose texts are no longer encoded."""
    columns = [table[field.name].cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def parted(
    table: pa.Table, keys: Sequence[str], count: int, together: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """Yield an `encoded` table as rows for `of_parts`: each of up to ``count`` parts packed.

    Rows that are equal in ``keys`` are of one part, in whatever process. Those equal in
    ``together``, which are some of the keys, are in half of the parts at most. So work on what
    belongs together is seldom done twice where there are few parts; and if one principal asks a
    third of all questions, the largest part has but a third more rows than the average.
    """
    if not table.num_rows:
        return
    values = {key: _numbers(table[key]) for key in keys}
    parts = _hashes(values[key] for key in keys)
    if together:
        theirs = _hashes(values[key] for key in together)
        parts = parts % np.uint32(max(count // 2, 1)) + theirs % np.uint32(count)
    parts = parts % np.uint32(count)
    order = np.argsort(parts, kind="stable")
    starts = np.flatnonzero(np.diff(parts[order], prepend=np.uint32(count)))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        found = packed(compacted(table.take(pa.array(order[start:end]))))
        part = int(parts[order[start]])
        yield pa.table({"part": pa.array([part], pa.int32()), "packed": [found]})


def _numbers(column: pa.ChunkedArray) -> NDArray[np.uint32]:
    """Return a number for each value of a column that depends on nothing else."""
    values = column.combine_chunks()
    if not pa.types.is_dictionary(values.type):
        numbers: NDArray[np.int64] = as_integers(values).fill_null(-1).to_numpy()
        return numbers.astype(np.uint32)
    # Python's own hash of a text differs from process to process.
    texts = [crc32(text.encode()) for text in values.dictionary.to_pylist()]
    found: NDArray[np.uint32] = np.array([*texts, 0], np.uint32)[
        values.indices.fill_null(-1).to_numpy()
    ]
    return found


def _hashes(columns: Iterable[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Return a number for each row that depends on nothing but its numbers in some columns."""
    found = np.zeros(1, np.uint32)
    for values in columns:
        # FNV's prime; the last step brings what the upper bits know into the lower ones.
        found = found * np.uint32(16_777_619) ^ values
    mixed: NDArray[np.uint32] = found ^ (found >> np.uint32(16))
    return mixed


def parts_type() -> StructType:
    """Return the columns of what `parted` yields."""
    from aclbroker.pipeline.frames.types import BinaryType, IntegerType, StructField, StructType

    return StructType([StructField("part", IntegerType()), StructField("packed", BinaryType())])


def of_parts(rows: DataFrame, count: int) -> DataFrame:
    """Return what `parted` yielded, each part in one task, in no more tasks than keep cores busy.

    The rows of a part follow one another, for `parts_of`.
    """
    found = rows.repartitionById(count, F.col("part"))
    busy = busy_tasks(rows.sparkSession)
    return found if busy is None or busy >= count else found.coalesce(busy)


_AT_ONCE: Final = 200_000


def parts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the parts that a task has of `of_parts`, as tables that hold some of them as a whole.

    Small parts are put together up to so many rows that work on them at once is worth while.
    """
    tables: list[pa.Table] = []
    rows, last = 0, None
    for batch in batches:
        numbers = batch.column("part").to_pylist()
        for part, table in zip(numbers, unpacked(batch.column("packed")), strict=True):
            if part != last and rows >= _AT_ONCE:
                yield pa.concat_tables(tables)
                tables, rows = [], 0
            tables.append(table)
            rows, last = rows + table.num_rows, part
    if tables:
        yield pa.concat_tables(tables)


def compacted(table: pa.Table) -> pa.Table:
    """Return an `encoded` table whose dictionaries have no texts but those that occur in it."""
    columns = [compact(column.combine_chunks()) for column in table.columns]
    return pa.table(columns, table.column_names)


def compact(column: pa.Array) -> pa.Array:
    """Return a column whose dictionary, if it has one, has no texts but those that occur in it."""
    if not pa.types.is_dictionary(column.type):
        return column
    codes, size = column.indices, len(column.dictionary)
    filled, valid = codes.fill_null(0).to_numpy(), codes.drop_null().to_numpy()
    if len(codes) < size // 8:
        # Few rows of a large table: the time must not follow the size of its dictionary.
        used = np.unique(valid)
        places = np.searchsorted(used, filled).astype(np.int32)
    else:
        is_used = np.zeros(max(size, 1), bool)
        is_used[valid] = True
        used = np.flatnonzero(is_used[:size])
        places = (np.cumsum(is_used) - 1).astype(np.int32)[filled]
    found = pa.array(places, mask=codes.is_null().to_numpy(zero_copy_only=False))
    return pa.DictionaryArray.from_arrays(found, column.dictionary.take(pa.array(used)))
