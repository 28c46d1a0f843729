"""The tables that the job `ingest` wrote, as other jobs read them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from aclbroker.pipeline import schemas
from aclbroker.pipeline.ingest.compaction import reading
from aclbroker.pipeline.local.files import local_path as place_of
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.pipeline.local.tables import table_files
from aclbroker.pipeline.spark.files import exists, is_local, local_path, path_of
from aclbroker.pipeline.spark.tasks import in_tasks
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

EVENTS: Final = "events"
USAGE: Final = "usage_daily"
HOURS: Final = "hours"
QUARANTINE: Final = "quarantine"
CHECKPOINTS: Final = "_checkpoints"
"""Where `ingest` notes what is in the tables, beside them."""

_reading: Final[dict[Path, int]] = {}


def read_table(spark: SparkSession, place: str, name: str) -> DataFrame:
    """Return a table; its rows may have been written by several batches."""
    _keep(spark, place)
    schema = schema_of(name)
    path = f"{place}/{name}"
    if not exists(spark, path):
        return spark.createDataFrame([], schema)
    found = spark.read.schema(_stored(schema)).parquet(path)
    return found.select(*schema.fieldNames())


def read_usage(spark: SparkSession, place: str) -> Usage:
    """Return the table of usage."""
    if isinstance(spark, LocalSession):
        return Usage(tables=_in_tasks(spark, _listed(spark, place, USAGE)))
    rows = read_table(spark, place, USAGE)
    return Usage(rows, _tasks_of(rows, f"{place}/{USAGE}"))


def table_tasks(spark: SparkSession, place: str, name: str) -> DataFrame | None:
    """Return the files of a table on a local disk: their ``path``, ``cluster`` and ``day``.

    None if it is elsewhere, or if there is none for Spark to list.
    """
    if isinstance(spark, LocalSession):
        return _in_tasks(spark, _listed(spark, place, name))
    return _tasks_of(read_table(spark, place, name), f"{place}/{name}")


def _listed(spark: SparkSession, place: str, name: str) -> list[str]:
    _keep(spark, place)
    return [each.absolute().as_posix() for each in table_files(place_of(f"{place}/{name}"))]


def _tasks_of(rows: DataFrame, path: str) -> DataFrame | None:
    spark = rows.sparkSession
    if not exists(spark, path) or not is_local(spark, path):
        return None
    return _in_tasks(spark, sorted(path_of(each) for each in rows.inputFiles()))


def _in_tasks(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    # Spark names a directory COLUMN=VALUE, with percent signs for what no name can have.
    keys = [dict(_PARTITION.findall(each)) for each in files]
    return in_tasks(
        spark,
        [
            (file, unquote(key["cluster"]), date.fromisoformat(key["day"]))
            for file, key in zip(files, keys, strict=True)
        ],
        [Path(file).stat().st_size for file in files],
        "path string, cluster string, day date",
    )


_PARTITION: Final = re.compile(r"/(cluster|day)=([^/]*)(?=/)")


def has_tables(spark: SparkSession, place: str) -> bool:
    """Tell whether `ingest` has written to a place."""
    return exists(spark, f"{place}/{CHECKPOINTS}")


def schema_of(name: str) -> StructType:
    """Return the columns of a table by its name."""
    schemas_by_name = {
        EVENTS: schemas.events,
        USAGE: schemas.usage,
        HOURS: schemas.hours,
        QUARANTINE: schemas.quarantine,
    }
    return schemas_by_name[name]()


def stop_reading(place: Path) -> None:
    """Let the tables at a place be compacted, which nobody in this process reads any more."""
    descriptor = _reading.pop(place / CHECKPOINTS, None)
    if descriptor is not None:
        os.close(descriptor)


def _keep(spark: SparkSession, place: str) -> None:
    """Keep the files that are listed from now on from being removed while this process lives."""
    checkpoints = local_path(spark, f"{place}/{CHECKPOINTS}")
    if checkpoints is not None and checkpoints not in _reading:
        descriptor = reading(checkpoints)
        if descriptor is not None:
            _reading[checkpoints] = descriptor


def _stored(schema: StructType) -> StructType:
    from aclbroker.pipeline.frames.types import StringType, StructField, StructType

    return StructType([*schema.fields, StructField("batch", StringType())])
