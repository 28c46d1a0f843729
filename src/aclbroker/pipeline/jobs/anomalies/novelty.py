"""What somebody uses for the first time, and who uses something new nearly every day.

The same questions are asked of the hosts that a principal comes from and of the names of the
resources that it uses; here both are *items* of an *owner*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aclbroker.pipeline.frames import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NEW_SHARE: Final = 0.8
"""The share of new items from which on a day counts as all new; also the share of such days."""

_LEAST_ITEMS: Final = 10
"""The least number of items of such an owner: fewer are easily listed."""

_LEAST_DAYS: Final = 2
"""The least number of such days that make a habit: one may be an attack from many hosts."""


def items_of(
    usage: DataFrame, owner: Sequence[str], item: str, measures: Mapping[str, Column]
) -> DataFrame:
    """Return each item of each owner, with ``measures`` of it.

    Further columns: ``first_day``, ``last_day``, and ``days``, the days on which it was used.
    """
    return usage.groupBy(*owner, item).agg(
        F.min("day").alias("first_day"),
        F.max("day").alias("last_day"),
        F.collect_set("day").alias("days"),
        *(measure.alias(name) for name, measure in measures.items()),
    )


def habits_of(items: DataFrame, owner: Sequence[str]) -> DataFrame:
    """Return a row for each owner of `items_of`: how it comes to new items.

    ``changing`` tells that nearly all of its items are new each day, as pods' addresses and
    generated names are: it has at least ten, and on four of five of its days after the first, and
    on at least two, four of five of the items of that day were never there before. ``since`` is its
    first day.
    """
    daily = (
        items.select(*owner, "first_day", F.explode("days").alias("day"))
        .groupBy(*owner, "day")
        .agg(F.count_if(F.col("first_day") == F.col("day")).alias("new"), F.count("*").alias("all"))
    )
    # On its first day everything of an owner is new, which tells nothing.
    new_days = F.count_if(F.col("new") >= _NEW_SHARE * F.col("all")) - 1
    later_days = F.count("*") - 1
    changing = (
        (F.sum("new") >= _LEAST_ITEMS)
        & (new_days >= _LEAST_DAYS)
        & (new_days >= _NEW_SHARE * later_days)
    )
    return daily.groupBy(*owner).agg(F.min("day").alias("since"), changing.alias("changing"))
