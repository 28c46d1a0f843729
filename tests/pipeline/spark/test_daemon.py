"""What Python's workers of a Spark on this machine load."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.engines("spark")
def test_workers_do_without_pandas(spark: "SparkSession") -> None:
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        for _ in batches:
            lists = pa.array([[name] for name in sys.modules])
            yield pa.record_batch({"name": lists.flatten()})

    names = spark.range(1).mapInArrow(loaded, "name string").toArrow()["name"].to_pylist()
    assert "pyarrow" in names
    assert "pandas" not in names
