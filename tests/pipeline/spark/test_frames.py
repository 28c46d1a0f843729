"""Rows of Python as tables of Spark, in pieces or without any."""

from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.spark import frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines("spark", "local")

SCHEMA = pa.schema([("name", pa.string()), ("hosts", pa.list_(pa.string()))])


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
def test_all_rows_are_there_however_many_are_taken_at_a_time(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(frames, "_AT_ONCE", 3)
    rows = [(f"n{number}", ("a", "b")) for number in range(count)]
    found = frames.frame_of(spark, SCHEMA, iter(rows))
    assert found.columns == ["name", "hosts"]
    assert [(row["name"], tuple(row["hosts"])) for row in found.collect()] == rows
