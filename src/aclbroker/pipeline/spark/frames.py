"""Rows of Python as tables of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_AT_ONCE: Final = 20_000
"""How many rows are objects of Python at a time."""


def frame_of(spark: SparkSession, schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Return rows as a table of Spark, whose columns are those of ``schema``."""
    left = iter(rows)
    batches: list[pa.RecordBatch] = []
    # Without rows there is one batch all the same: Spark takes no table without any.
    while (some := list(islice(left, _AT_ONCE))) or not batches:
        columns = list(zip(*some, strict=True)) or [()] * len(schema)
        arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return spark.createDataFrame(pa.Table.from_batches(batches, schema))
