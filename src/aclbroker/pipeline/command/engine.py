"""Which engine decides: this process, for small logs on this machine, or Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from aclbroker.pipeline.command.log_check import files_of
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.errors import LogError
from aclbroker.pipeline.jobs import point_in_time

_COMPRESSED: Final = (".gz", ".zst", ".bz2", ".parquet")
_RATIO: Final = 10
"""How many times its size a compressed file counts."""

_OPAQUE: Final = (".deflate", ".lz4", ".snappy")
_TABLES: Final = "_checkpoints"
_USAGE, _EVENTS = "usage_daily", "events"
_NEEDED: Final = ("duckdb", "numpy", "pyarrow")


class Engine(StrEnum):
    """What decides. ``AUTO`` is ``LOCAL`` wherever that can."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class EngineError(Exception):
    """The engine that was asked for cannot do it, or none is installed."""


def reason_for_spark(options: AuditOptions) -> str | None:
    """Return why it is Spark that decides, "" if the user said so; None if this process does.

    Raises EngineError if Spark cannot be done without and the options do not want it, and if this
    process lacks the packages, without which it cannot.
    """
    asked = [name for name in ("master", "spark") if getattr(options, name)]
    if options.engine == Engine.SPARK:
        return ""
    if asked or "PYSPARK_GATEWAY_PORT" in os.environ:
        if options.engine == Engine.LOCAL:
            by = f"--{asked[0]}" if asked else "spark-submit"
            raise EngineError(f"--engine local does not go with {by}, which is about Spark")
        return ""
    reason = _needs_spark(options)
    if options.engine == Engine.LOCAL:
        if reason is not None:
            raise EngineError(f"--engine local cannot do this: {reason}")
    elif reason is None:
        reason = _too_large(options)
    return reason if reason is not None else _lacking(options)


def _needs_spark(options: AuditOptions) -> str | None:
    """Return what this process cannot do at all."""
    for place in (*options.inputs, options.output):
        if "://" in place:
            return f"{place} is a URL, which Spark's connectors read"
    if any(own.get("follow") for own in options.job_options.values()):
        return "--follow goes on with a log that grows without end"
    if options.columns is not None:
        return "--columns is about tables that somebody else wrote, which Spark reads"
    opaque = [path for path in _files(options.inputs) if path.endswith(_OPAQUE)]
    if opaque:
        return f"{opaque[0]} is compressed as only Spark reads it"
    unknown = [name for name in options.inputs if "{" in name or "\\" in name]
    if unknown and not all(Path(each).exists() for each in unknown):
        return f"--input {unknown[0]} is a pattern of Spark's"
    return None


def _too_large(options: AuditOptions) -> str | None:
    size = 0
    # This one alone needs to know more of each event than the usage has.
    table = _EVENTS if options.job == point_in_time.JOB.name else _USAGE
    for path in _files(options.inputs, table):
        with suppress(FileNotFoundError):  # rotated just now
            size += os.path.getsize(path) * (_RATIO if path.endswith(_COMPRESSED) else 1)
    if size <= options.local_bytes:
        return None
    return f"the log has about {_told(size)}, more than --local-bytes {_told(options.local_bytes)}"


def _told(size: int) -> str:
    return f"{size / 10**6:,.0f} MB" if size >= 10**6 else f"{size:,} bytes"


def _lacking(options: AuditOptions) -> str | None:
    """Return None if all packages are there that this process needs, else why it is Spark."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if not missing:
        return None
    told = f"without Spark this needs the Python package {', '.join(missing)}"
    if options.engine == Engine.AUTO and find_spec("pyspark") is not None:
        return told
    raise EngineError(
        f"{told}: in a checkout of aclbroker run make setup-audit, or pip install '.[audit]'; "
        "for large logs, with Spark: make setup-spark, or pip install '.[spark]'"
    )


def log_files(name: str) -> Sequence[str]:
    """Return the files that an input stands for. Raises LogError if none are found here."""
    found = files_of(name)
    if found is None:
        raise LogError(f"--input {name}: only Spark finds the files of such a pattern")
    return found


def _files(inputs: Sequence[str], table: str = _USAGE) -> Iterator[str]:
    for name in inputs:
        if Path(name, _TABLES).is_dir():
            yield from map(str, Path(name, table).rglob("*.parquet"))
            continue
        try:
            yield from log_files(name)
        except LogError:
            # Of a log that is gathered it may just be rotated; of others it was told before.
            continue
