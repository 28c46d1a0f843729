"""Tables of Arrow as single values of Spark's rows.

On their way out of a Python worker, into its cache and back, Spark handles rows one by one and text
by text, which takes longer than all that jobs compute from them. A packed table is one value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyarrow import ipc
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_OPTIONS: Final = ipc.IpcWriteOptions(compression="lz4")


def packed(table: pa.Table) -> bytes:
    """Return a table as bytes."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(values: pa.Array) -> Iterator[pa.Table]:
    """Yield the tables that an array of binary holds."""
    for value in values:
        with ipc.open_stream(value.as_buffer()) as reader:
            yield reader.read_all()


def decoded(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table with the columns of a schema, whose texts are no longer encoded."""
    columns = [table[field.name].cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def parted(table: pa.Table, key: str, count: int) -> Iterator[pa.Table]:
    """Yield an `encoded` table as rows for `of_parts`: each of up to ``count`` parts packed.

    Rows with the same text in the column ``key`` are of one part, in whatever process; if there are
    no texts in it, all are.
    """
    parts = np.zeros(table.num_rows, np.int32)
    column = table[key].combine_chunks()
    if pa.types.is_dictionary(column.type):
        # Python's own hash of a text differs from process to process.
        of_text = [crc32(text.encode()) % count for text in column.dictionary.to_pylist()]
        parts = np.array([*of_text, 0], np.int32)[column.indices.fill_null(-1).to_numpy()]
    for part in range(count):
        rows = np.flatnonzero(parts == part)
        if len(rows):
            found = packed(compacted(table.take(pa.array(rows))))
            yield pa.table({"part": pa.array([part], pa.int32()), "packed": [found]})


def parts_type() -> StructType:
    """Return the columns of what `parted` yields."""
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    return StructType([StructField("part", IntegerType()), StructField("packed", BinaryType())])


def of_parts(rows: DataFrame, count: int) -> DataFrame:
    """Return what `parted` yielded, the column ``packed``, with each part in a task of its own."""
    return rows.repartitionById(count, F.col("part")).select("packed")


def compacted(table: pa.Table) -> pa.Table:
    """Return an `encoded` table whose dictionaries have no texts but those that occur in it."""
    columns = [_compact(column.combine_chunks()) for column in table.columns]
    return pa.table(columns, table.column_names)


def _compact(column: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(column.type):
        return column
    codes = column.indices
    filled = codes.fill_null(0).to_numpy()
    is_used = np.zeros(max(len(column.dictionary), 1), bool)
    is_used[codes.drop_null().to_numpy()] = True
    places = (np.cumsum(is_used) - 1).astype(np.int32)
    found = pa.array(places[filled], mask=codes.is_null().to_numpy(zero_copy_only=False))
    dictionary = column.dictionary.take(pa.array(np.flatnonzero(is_used[: len(column.dictionary)])))
    return pa.DictionaryArray.from_arrays(found, dictionary)
