"""Finds tables that somebody else wrote: Parquet, and Delta and Iceberg by Spark's connectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.column_places import located
from aclbroker.pipeline.ingest.columns import Columns
from aclbroker.pipeline.ingest.sources import IngestError, lines, local_files
from aclbroker.pipeline.spark.files import as_pattern, exists, matching

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CONNECTORS: Final = {
    "delta": ("a Delta table", "io.delta:delta-spark_SPARK_2.13:VERSION"),
    "iceberg": ("an Iceberg table", "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION"),
}


def foreign_rows(spark: SparkSession, paths: Sequence[str], columns: Columns) -> DataFrame:
    """Return the rows of tables, for `pipeline.ingest.foreign_files.rows_of`.

    ``paths``: Parquet files and directories of them as in `pipeline.ingest.sources.lines`, or
    directories of Delta or Iceberg tables. Raises IngestError if one does not exist, lacks a column
    or needs a connector that is not there.
    """
    forms = {path: _form(spark, path) for path in paths}
    local = [path for path in paths if forms[path] == "parquet" and local_files(spark, path)]
    found = [_selected(spark, path, forms[path], columns) for path in paths if path not in local]
    if local and found:
        raise IngestError(
            "--input: either Parquet files on this machine, or tables elsewhere or of Delta or "
            "Iceberg, not both in one run"
        )
    return lines(spark, local) if local else reduce(lambda one, two: one.unionByName(two), found)


def _form(spark: SparkSession, path: str) -> str:
    place = path.rstrip("/")
    if exists(spark, f"{place}/_delta_log"):
        return "delta"
    return "iceberg" if matching(spark, f"{place}/metadata", "*.metadata.json") else "parquet"


def _selected(spark: SparkSession, path: str, form: str, columns: Columns) -> DataFrame:
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        reader = spark.read.format(form)
        if form == "parquet":
            reader = reader.option("recursiveFileLookup", "true")
        rows = reader.load(as_pattern(spark, path) if form == "parquet" else path)
    except (PySparkException, Py4JJavaError) as error:
        condition, reason = _told(error)
        if form in _CONNECTORS and condition == "DATA_SOURCE_NOT_FOUND":
            what, packages = _CONNECTORS[form]
            reason = (
                f"this is {what}, for which Spark {spark.version} needs a connector: "
                f"--spark spark.jars.packages={packages}"
            )
        raise IngestError(f"--input {path}: {reason}") from error
    try:
        places = located(columns, to_arrow_schema(rows.schema, timezone="UTC"), "")
    except ValueError as error:
        raise IngestError(f"--input {path}: {error}") from error
    found = [_field(rows, place).alias(what) for what, place in places.items()]
    return rows.select(*found, F.lit(path).alias("source_file"))


def _told(error: PySparkException | Py4JJavaError) -> tuple[str | None, str]:
    """Return the condition of Spark's error, and what it says."""
    if isinstance(error, PySparkException):
        return error.getCondition(), error.getMessage() or str(error)
    thrown = error.java_exception
    reason = str(thrown.getMessage())
    try:
        return thrown.getCondition(), reason
    except Py4JError:  # it is no error of Spark's own
        return None, reason


def _field(rows: DataFrame, place: tuple[str, ...]) -> Any:
    column, *fields = place
    found = rows[f"`{column.replace('`', '``')}`"]
    for name in fields:
        found = found.getField(name)
    return found
