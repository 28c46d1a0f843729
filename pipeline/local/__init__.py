"""Data frames of this process, for small logs: no Spark, no Java.

This has as much of ``pyspark.sql`` as the pipeline uses (`pipeline.frames`), by the same names and
with the same meaning: nulls, order and types of the results are Spark's. A frame is a query of
DuckDB over tables of Arrow. What Spark gives to workers is called here.

All texts compare by their bytes, all timestamps are UTC, and sums are of whole numbers.
"""

from __future__ import annotations

from aclbroker.pipeline.local.column import Window
from aclbroker.pipeline.local.frame import Observation

__all__ = ["Observation", "Window"]
