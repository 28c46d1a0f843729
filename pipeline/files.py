"""Small texts at any place that Spark has a connector for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def exists(spark: SparkSession, url: str) -> bool:
    """Tell whether there is a file or directory."""
    filesystem, path = _located(spark, url)
    return bool(filesystem.exists(path))


def read_text(spark: SparkSession, url: str) -> str:
    """Return what a file says."""
    filesystem, path = _located(spark, url)
    stream = filesystem.open(path)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def write_text(spark: SparkSession, url: str, content: str) -> None:
    """Write a file, in place of what is there."""
    filesystem, path = _located(spark, url)
    stream = filesystem.create(path, True)
    try:
        stream.write(content.encode())
    finally:
        stream.close()


def _located(spark: SparkSession, url: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(url)
    return path.getFileSystem(spark._jsc.hadoopConfiguration()), path
