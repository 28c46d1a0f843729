"""Tables of Arrow as single values of Spark's rows.

What Spark does to rows, one by one and text by text, on their way out of a Python worker, into its
cache and back takes longer than all that is made of them. A packed table is one value to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import ipc

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


def parted(table: pa.Table, parts: np.ndarray, count: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield, of an `encoded` table, the rows whose part is 0, 1 and so on; parts without are not.

    What is encoded in the columns of a part is what stands there.
    """
    for part in range(count):
        rows = np.flatnonzero(parts == part)
        if len(rows):
            found = table.take(pa.array(rows))
            yield (
                part,
                pa.table(
                    [_compact(column.combine_chunks()) for column in found.columns],
                    found.column_names,
                ),
            )


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
