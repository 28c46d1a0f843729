"""Tables of Arrow whose numbers have no more bytes than they need.

Most of what a table of usage holds are the places of texts in dictionaries, and small counts. Each
byte that is left out need not be compressed, which is the longest part of packing one.
"""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_FEW: Final = 1_000
"""Of so few rows it is not worth while."""

_NARROW: Final = b"narrow"
"""What tells, in the metadata of a table, which of its columns were changed."""


def narrowed(table: pa.Table) -> pa.Table:
    """Return a table from which `widened` makes the same one again."""
    if table.num_rows < _FEW:
        return table
    columns = [_narrow(column) for column in table.columns]
    fields = list(zip(table.schema, columns, strict=True))
    changed = [field.name for field, column in fields if field.type != column.type]
    return _table(table, columns, {_NARROW: json.dumps(changed)})


def widened(table: pa.Table) -> pa.Table:
    """Return the table that was `narrowed`, or any other as it is."""
    changed = (table.schema.metadata or {}).get(_NARROW)
    if changed is None:
        return table
    names = set(json.loads(changed))
    columns = [
        _wide(column) if name in names else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return _table(table, columns, {})


def _table(like: pa.Table, columns: list[pa.ChunkedArray], metadata: dict[bytes, str]) -> pa.Table:
    """Return a table that is like another but for the types of its columns."""
    fields = [
        field.with_type(column.type) for field, column in zip(like.schema, columns, strict=True)
    ]
    kept = {key: value for key, value in (like.schema.metadata or {}).items() if key != _NARROW}
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, {**kept, **metadata}))


def _narrow(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.num_chunks != 1:
        return column
    values = column.chunk(0)
    if values.type == pa.int64():
        span = pc.min_max(values)
        return pa.chunked_array([values.cast(_least(span["min"].as_py(), span["max"].as_py()))])
    if pa.types.is_dictionary(values.type) and values.type.index_type == pa.int32():
        kind = _least(0, len(values.dictionary))
        return pa.chunked_array([_indexed(values, kind)])
    return column


def _wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        return pa.chunked_array([_indexed(chunk, pa.int32()) for chunk in column.chunks])
    return column.cast(pa.int64())


def _least(low: int | None, high: int | None) -> pa.DataType:
    """Return the narrowest type for whole numbers from ``low`` to ``high``, None without any."""
    for bits, kind in ((8, pa.int8()), (16, pa.int16()), (32, pa.int32())):
        most = 1 << (bits - 1)
        if -most <= (low or 0) and (high or 0) < most:
            return kind
    return pa.int64()


def _indexed(values: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    """Return texts whose places in the dictionary are of a ``kind``."""
    return pa.DictionaryArray.from_arrays(values.indices.cast(kind), values.dictionary)
