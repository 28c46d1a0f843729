"""Files at any place that Spark has a connector for: their names, and small texts in them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from aclbroker.pipeline.local.files import is_url, remove_local
from aclbroker.pipeline.local.files import local_path as local_place
from aclbroker.pipeline.local.session import LocalSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def exists(spark: SparkSession, url: str) -> bool:
    """Tell whether there is a file or directory."""
    if isinstance(spark, LocalSession):
        return local_place(url).exists()
    filesystem, path = _located(spark, url)
    return bool(filesystem.exists(path))


def is_local(spark: SparkSession, url: str) -> bool:
    """Tell whether a path is of the file system of this machine, or of what is mounted into it."""
    if isinstance(spark, LocalSession):
        return not is_url(url)
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
    if isinstance(spark, LocalSession):
        return local_place(url).read_bytes().decode()
    filesystem, path = _located(spark, url)
    stream = filesystem.open(path)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def local_path(spark: SparkSession, url: str) -> Path | None:
    """Return the absolute path of a file of this machine, None if it is elsewhere."""
    if isinstance(spark, LocalSession):
        return local_place(url).absolute()
    filesystem, path = _located(spark, url)
    if filesystem.getUri().getScheme() != "file":
        return None
    return Path(filesystem.makeQualified(path).toUri().getPath())


def remove(spark: SparkSession, url: str) -> None:
    """Remove a file, or a directory with all in it, if there is one."""
    if isinstance(spark, LocalSession):
        remove_local(url)
        return
    filesystem, path = _located(spark, url)
    filesystem.delete(path, True)


def matching(spark: SparkSession, directory: str, pattern: str) -> list[str]:
    """Return the URLs of what is below a directory and matches a pattern."""
    if isinstance(spark, LocalSession):
        return sorted(str(each) for each in local_place(directory).glob(pattern))
    escaped = _PATTERN_SIGN.sub(r"\\\g<0>", directory)
    filesystem, path = _located(spark, f"{escaped}/{pattern}")
    return [str(each.getPath().toString()) for each in filesystem.globStatus(path) or ()]


def replace_text(spark: SparkSession, url: str, content: str) -> None:
    """Write a file in place of what is there, so that one of both is there whatever happens.

    `replaced_text` reads it.
    """
    local = local_path(spark, url)
    if local is None:
        write_text(spark, f"{url}{_NEW}", content)
        remove(spark, url)
        filesystem, path = _located(spark, f"{url}{_NEW}")
        filesystem.rename(path, _located(spark, url)[1])
        return
    local.parent.mkdir(parents=True, exist_ok=True)
    new = local.with_name(f"{local.name}{_NEW}")
    new.unlink(missing_ok=True)
    with new.open("x") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(local)


def unlinked(path: str, flags: int) -> int:
    """Open a file as the opener of `open`; raises OSError if the file is a symbolic link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def replaced_text(spark: SparkSession, url: str) -> str | None:
    """Return what `replace_text` wrote, None if it did not yet."""
    for each in (url, f"{url}{_NEW}"):
        if exists(spark, each):
            return read_text(spark, each)
    return None


_NEW: Final = ".new"


def write_text(spark: SparkSession, url: str, content: str) -> None:
    """Write a file, in place of what is there."""
    if isinstance(spark, LocalSession):
        local_place(url).parent.mkdir(parents=True, exist_ok=True)
        local_place(url).write_bytes(content.encode())
        return
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
