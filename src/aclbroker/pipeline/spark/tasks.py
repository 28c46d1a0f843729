"""Gives rows that stand for files, or parts of them, to tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.local.session import LocalSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def task_size(spark: SparkSession, sizes: Sequence[int]) -> int:
    """Return how many bytes a task should read of files of these sizes.

    No more than Spark's own tasks do, and so many that all cores have equally much to do.
    """
    if isinstance(spark, LocalSession):
        return max(sum(sizes), 1)
    opening = _opening(spark)
    total = sum(size + opening for size in sizes)
    share: int = max(opening, total // spark.sparkContext.defaultParallelism + 1)
    rounds = -(-share // _bytes(spark, "spark.sql.files.maxPartitionBytes"))
    return -(-share // rounds)


def in_tasks(
    spark: SparkSession, rows: Sequence[tuple[Any, ...]], sizes: Sequence[int], schema: str
) -> DataFrame:
    """Return rows in their order, as many to a task as together have the `task_size` in bytes.

    ``sizes``: of what each row stands for.
    """
    if isinstance(spark, LocalSession):
        return spark.createDataFrame(rows, schema)
    opening = _opening(spark)
    size = task_size(spark, sizes)
    tasks, filled = [], 0
    for each in sizes:
        tasks.append(filled // size)
        filled += each + opening
    # The numbers have no gaps, so that no task is empty.
    numbers = {task: number for number, task in enumerate(dict.fromkeys(tasks))}
    marked = [(*row, numbers[task]) for row, task in zip(rows, tasks, strict=True)]
    found = spark.createDataFrame(marked, f"{schema}, task int")
    return found.repartitionById(max(len(numbers), 1), F.col("task")).drop("task")


def shuffle_tasks(spark: SparkSession) -> int:
    """Return into how many tasks a shuffle parts its rows."""
    if isinstance(spark, LocalSession):
        return 1
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def busy_tasks(spark: SparkSession) -> int | None:
    """Return how many tasks keep all cores busy, however little work there is.

    None if that is not known, since executors come and go as there is work.
    """
    if isinstance(spark, LocalSession):
        return 1
    if spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return None
    return 2 * int(spark.sparkContext.defaultParallelism)


def _opening(spark: SparkSession) -> int:
    """Return how many bytes could be read in the time to open a file, as Spark reckons it."""
    return _bytes(spark, "spark.sql.files.openCostInBytes")


def _bytes(spark: SparkSession, name: str) -> int:
    jvm: Any = spark._jvm
    utilities = jvm.org.apache.spark.network.util.JavaUtils
    return int(utilities.byteStringAsBytes(spark.conf.get(name)))
