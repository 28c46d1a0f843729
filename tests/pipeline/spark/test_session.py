"""A start of Spark changes nothing for programs that this process starts later."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def executables(spark: "SparkSession") -> list[str]:
    """The Pythons of Spark's workers."""

    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"path": pa.array([sys.executable])})

    found: list[str] = spark.range(1).mapInArrow(seen, "path string").toArrow()["path"].to_pylist()
    return found


@pytest.mark.engines("spark")
def test_a_program_started_after_spark_has_the_environment_from_before(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "PYSPARK_PYTHON" not in os.environ
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.2")
    before = dict(os.environ)

    again = open_session()

    assert again is spark
    assert dict(os.environ) == before
    assert {*executables(again)} == {sys.executable}
