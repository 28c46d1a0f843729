"""Data frames of this process, for small logs: no Spark, no Java.

This has as much of ``pyspark.sql`` as the pipeline uses (`pipeline.frames`), by the same names and
with the same meaning: nulls, order and types of the results are Spark's. A frame is a query of
DuckDB over tables of Arrow. What Spark gives to workers is called here.

All texts compare by their bytes, all timestamps are UTC, and sums are of whole numbers.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# DuckDB is imported when a frame is made: where Spark is in use it need not be installed.
_MODULES = {"Observation": "frame", "Window": "column"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
