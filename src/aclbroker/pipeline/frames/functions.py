"""What ``pyspark.sql.functions`` has, of the data frames in use."""

from __future__ import annotations

from typing import Any

from aclbroker.pipeline.frames.engine import named


def __getattr__(name: str) -> Any:
    return named("functions", name)
