"""The largest groups of a table in several respects, found in one pass over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Ranking(NamedTuple):
    """The first groups, as rows of their columns and measures, and how many there are in all.

    ``above_zero``: by measure, in how many of all groups it is above 0.
    """

    rows: Sequence[Any]
    total: int
    above_zero: Mapping[str, int]


def rankings(
    rows: DataFrame,
    dimensions: Mapping[str, Sequence[str]],
    measures: Mapping[str, Column],
    *,
    count: int,
) -> dict[str, Ranking]:
    """Return, for each of ``dimensions``, its ``count`` largest groups.

    ``dimensions``: a name for each list of columns to group by; no two may have the same columns.
    ``measures``: aggregates; groups are ordered by the first one, the largest first, and groups of
    equal size by their columns.
    """
    columns = list(dict.fromkeys(name for group in dimensions.values() for name in group))
    sizes = {name: measure.alias(name) for name, measure in measures.items()}
    grouped = rows.groupingSets(
        [[F.col(name) for name in group] for group in dimensions.values()], *columns
    ).agg(F.grouping_id().alias("_set"), *sizes.values())
    of_set = Window.partitionBy("_set")
    largest = of_set.orderBy(F.desc(next(iter(measures))), *columns)
    counts = [
        F.count_if(F.col(name) > 0).over(of_set).alias(counted)
        for name, counted in zip(measures, _counted(measures), strict=True)
    ]
    found = (
        grouped.select("*", F.count("*").over(of_set).alias("_total"), *counts)
        .withColumn("_rank", F.row_number().over(largest))
        .where(F.col("_rank") <= count)
        .orderBy("_set", "_rank")
        .collect()
    )
    result = {}
    for name, group in dimensions.items():
        of_group = [row for row in found if row["_set"] == _grouping_id(columns, group)]
        first = of_group[0] if of_group else {"_total": 0, **dict.fromkeys(_counted(measures), 0)}
        above_zero = {
            name: first[counted] for name, counted in zip(measures, _counted(measures), strict=True)
        }
        result[name] = Ranking(of_group, first["_total"], above_zero)
    return result


def _counted(measures: Iterable[str]) -> list[str]:
    return [f"_{name}" for name in measures]


def _grouping_id(columns: Sequence[str], group: Sequence[str]) -> int:
    """What Spark numbers a grouping set by: a bit for each column, set if it is not grouped by."""
    return int("".join("01"[name not in group] for name in columns), 2)
