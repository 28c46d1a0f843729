"""The local files of an input, one after the other: there may be a million."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from aclbroker.pipeline.ingest.sources import IngestError, local_files, read_errors_told
from aclbroker.pipeline.local.files import files_below
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.pipeline.spark.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_of_this_machine(spark: SparkSession, path: str) -> bool:
    """Tell whether one of the ``paths`` of `sources.lines` is on a file system of this machine.

    Raises IngestError as `sources.lines` does.
    """
    if not isinstance(spark, LocalSession) and _directory(spark, path) is not None:
        return True
    return local_files(spark, path) is not None


def each_local_file(spark: SparkSession, path: str) -> Iterator[str]:
    """Yield what `sources.local_files` returns, in no order; that of a directory as it is listed.

    Raises IngestError as `sources.lines` does.
    """
    directory = _directory(spark, path)
    if directory is None:
        yield from local_files(spark, path) or ()
        return
    try:
        yield from (each.path for each in files_below(directory) if each.is_file())
    except OSError as error:
        raise IngestError(
            f"the input cannot be read: {error.filename}: {error.strerror}"
        ) from error


def _directory(spark: SparkSession, path: str) -> str | None:
    """Return the path of a directory of this machine, None if it is none."""
    if isinstance(spark, LocalSession):
        local: Path | None = local_path(spark, path)
    else:
        with read_errors_told():
            local = local_path(spark, path)
    return str(local) if local is not None and local.is_dir() else None
