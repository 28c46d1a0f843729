"""Groups the rows of Arrow's tables by many columns at a time, texts among them.

pyarrow compares all the texts of a row with those of the rows before. Here each text becomes a
number first, and the numbers of a row become one, so that rows are compared by one number each.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_MOST: Final = 1 << 62


def encoded(table: pa.Table, *, but: Container[str] = ()) -> pa.Table:
    """Return a table whose texts are dictionary-encoded, each column as one chunk.

    ``but``: columns that may stay as they are, each as one chunk, too.
    """
    columns = [
        _one(column.unify_dictionaries()) if name in but else _encoded(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, table.column_names)


def grouped(table: pa.Table, keys: Sequence[str], counts: Mapping[str, str]) -> pa.Table:
    """Return one row for each group of rows that are equal in ``keys``; null is a value.

    ``counts`` are the other columns of the result, each with how those of two rows become one:
    ``sum``, ``min`` or ``max``. The result is encoded, each column one chunk.
    """
    table = encoded(table.select([*keys, *counts]))
    groups = pa.array(numbered(table, keys)).dictionary_encode()
    codes, size = groups.indices.to_numpy(), len(groups.dictionary)
    firsts = np.empty(size, np.int64)
    # Of several rows of a group, the last one that is assigned stays.
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]
    columns = [_one(table[key]).take(pa.array(firsts)) for key in keys]
    columns += [_measured(_one(table[name]), how, codes, size) for name, how in counts.items()]
    return pa.Table.from_arrays(columns, [*keys, *counts])


_LIMITS: Final = np.iinfo(np.int64)
_HOW: Final = {
    "sum": (np.add, 0),
    "min": (np.minimum, _LIMITS.max),
    "max": (np.maximum, _LIMITS.min),
}
"""How two numbers become one, and the number to begin with."""


def _measured(column: pa.Array, how: str, codes: NDArray[np.int32], size: int) -> pa.Array:
    """Return one value for each group, of the rows that have any; ``codes``: the rows' groups."""
    numbers, texts = column, None
    if pa.types.is_dictionary(column.type):
        # The least text is the one whose place in order is the least.
        order = pc.sort_indices(column.dictionary)
        texts = column.dictionary.take(order)
        numbers = pc.sort_indices(order).take(column.indices)
    mask = None
    if numbers.null_count:
        codes = codes[np.array(numbers.is_valid())]
        numbers = numbers.drop_null()
        mask = np.ones(size, bool)
        mask[codes] = False
    combine, start = _HOW[how]
    found = np.full(size, start, np.int64)
    combine.at(found, codes, as_integers(numbers).to_numpy())
    if mask is not None:
        found[mask] = 0
    combined = pa.array(found, mask=mask)
    if texts is not None:
        return pa.DictionaryArray.from_arrays(combined.cast(pa.int32()), texts)
    if how == "sum":
        return combined
    return (combined.cast(pa.int32()) if _is_small(column) else combined).cast(column.type)


def as_integers(column: pa.Array) -> pa.Array:
    """Return the values of a column, which are no texts, as integers: a day as its number."""
    return (column.cast(pa.int32()) if _is_small(column) else column).cast(pa.int64())


def _is_small(column: pa.Array) -> bool:
    found: bool = pa.types.is_date32(column.type) or pa.types.is_boolean(column.type)
    return found


def numbered(table: pa.Table, keys: Sequence[str]) -> NDArray[np.int64]:
    """Return a number for each row of an `encoded` table, the same for those equal in ``keys``."""
    numbers = np.zeros(table.num_rows, np.int64)
    different = 1
    for key in keys:
        codes, size = _codes(_one(table[key]))
        if size <= 1:
            continue
        if different * size > _MOST:
            numbers = np.unique(numbers, return_inverse=True)[1]
            different = len(numbers)
        numbers *= size
        numbers += codes.to_numpy(zero_copy_only=False)
        different *= size
    return numbers


def values(column: pa.ChunkedArray) -> list[str | None]:
    """Return the texts of a column of an `encoded` table."""
    found = _one(column)
    texts = [*found.dictionary.to_pylist(), None]
    codes = pc.fill_null(found.indices, len(texts) - 1).to_numpy().tolist()
    return [texts[code] for code in codes]


def tested(column: pa.ChunkedArray, test: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Test each of the texts of a column of an `encoded` table once; null passes no test."""
    encoded = _one(column)
    passed = np.array([*map(test, encoded.dictionary.to_pylist()), False], bool)
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
    found: NDArray[np.bool_] = passed[codes]
    return found


def spread(texts: pa.Array, codes: NDArray[np.int32]) -> pa.DictionaryArray:
    """Return a column, dictionary-encoded, that has for each of ``codes`` the text of that number.

    Texts may be null, and occur several times.
    """
    encoded = texts.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy()[codes]
    mask = indices < 0 if encoded.indices.null_count else None
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=mask), encoded.dictionary)


def _codes(column: pa.Array) -> tuple[pa.Array, int]:
    """Return numbers from 0 for the values of a column, and how many there can be."""
    if pa.types.is_dictionary(column.type):
        codes, size = column.indices, len(column.dictionary)
    elif pa.types.is_boolean(column.type):
        codes, size = column.cast(pa.int8()), 2
    else:
        numbers = column.cast(pa.int32()).cast(pa.int64())
        span = pc.min_max(numbers)
        low, high = span["min"].as_py() or 0, span["max"].as_py() or 0
        codes, size = pc.subtract(numbers, low), high - low + 1
    if column.null_count:
        codes, size = pc.fill_null(codes.cast(pa.int64()), size), size + 1
    return codes, size


def _encoded(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return _one(column.unify_dictionaries())
    found = _one(column)
    return found.dictionary_encode() if pa.types.is_string(found.type) else found


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
