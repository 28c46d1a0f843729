"""Files at any place that Spark has a connector for: their names, and small texts in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def exists(spark: SparkSession, url: str) -> bool:
    """Tell whether there is a file or directory."""
    filesystem, path = _located(spark, url)
    return bool(filesystem.exists(path))


def is_local(spark: SparkSession, url: str) -> bool:
    """Tell whether a path is of the file system of this machine, or of what is mounted into it."""
    filesystem, _ = _located(spark, url)
    return bool(filesystem.getUri().getScheme() == "file")


def path_of(url: str) -> str:
    """Return the path of a local file from the URL that Spark tells."""
    return unquote(urlsplit(url).path)


def as_pattern(spark: SparkSession, path: str) -> str:
    """Return a path so that Spark finds what has this name, even if it holds signs of a pattern.

    A path that does not exist stays a pattern, such as ``logs/*.gz``.
    """
    if _PATTERN_SIGN.search(path) and exists(spark, path):
        return _PATTERN_SIGN.sub(r"\\\g<0>", path)
    return path


_PATTERN_SIGN: Final = re.compile(r"[{}\[\]*?\\]")


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
