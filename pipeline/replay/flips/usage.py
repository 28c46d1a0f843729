"""Finds the usage behind questions that flip."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.replay.questions import (
    QUESTION,
    RuleSets,
    hosts_of,
    keyed,
    questions_of,
    tells_listeners,
)
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded, numbered
from aclbroker.pipeline.usage.packing import compacted
from aclbroker.pipeline.usage.table import Tables, Usage

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_KEYS: Final = (
    *("cluster", "day", "principal", "operation", "resource_type", "resource_name"),
    *("host", "direction"),
)
_MARKS: Final = ("direction", "before_allowed", "after_allowed")

_MOST_FLIPS: Final = 500_000
"""Up to so many flips are sent to every worker. Spark joins usage with more than these."""


def flipped_usage(flips: DataFrame, count: int, usage: Usage, sets: RuleSets) -> DataFrame:
    """Return the usage that is decided otherwise.

    The columns are ``cluster``, ``day``, ``principal``, ``operation``, ``resource_type``,
    ``resource_name``, ``host``, ``direction`` and ``flipped_events``; several rows may
    differ in the last alone. ``flips`` is the table that `find_flips` wrote, with ``count`` rows;
    ``usage`` and ``sets`` are what was replayed.
    """
    if count > _MOST_FLIPS:
        return _joined(flips, keyed(usage.rows, sets))
    marks = flips.select(*QUESTION, *_MARKS).toArrow()
    shipped = usage.spark.sparkContext.broadcast(marks)
    function = partial(_flipped, shipped, hosts_of(sets), tells_listeners(sets))
    return usage.map(function, _type(), (*QUESTION, "day", "allowed", "events"))


def _type() -> StructType:
    from aclbroker.pipeline.frames.types import LongType, StringType, StructField, StructType

    usage = schemas.usage()
    fields = [usage[name] for name in _KEYS if name in usage.fieldNames()]
    fields += [StructField("direction", StringType()), StructField("flipped_events", LongType())]
    return StructType(fields)


def _joined(flips: DataFrame, keyed: DataFrame) -> DataFrame:
    marks = flips.select(
        *(F.col(name).alias(f"_{name}") for name in QUESTION),
        F.col("direction"),
        F.col("before_allowed").isNull().alias("_is_recorded"),
        F.col("after_allowed").alias("_after_allowed"),
    )
    same = [F.col(name).eqNullSafe(F.col(f"_{name}")) for name in QUESTION]
    joined = keyed.join(marks, same)
    flipped = F.col("_is_recorded") & (F.col("allowed") == F.col("_after_allowed"))
    return joined.where(~flipped).select(
        *("cluster", "day", "principal", "operation", "resource_type", "resource_name"),
        F.col("example_host").alias("host"),
        "direction",
        F.col("events").alias("flipped_events"),
    )


def _flipped(
    shipped: Broadcast[pa.Table], hosts: Hosts, tells_listeners: bool, tables: Tables
) -> Tables:
    marks = encoded(shipped.value)
    rows = (_matched(marks, encoded(table), hosts, tells_listeners) for table in tables)
    return counted(rows, _KEYS, {"flipped_events": "sum"})


def _matched(marks: pa.Table, table: pa.Table, hosts: Hosts, tells_listeners: bool) -> pa.Table:
    """Return the rows of a table that flip, with the direction of the mark that fits them."""
    table = _of_marked(marks, table)
    asked = encoded(questions_of(table, hosts, tells_listeners))
    numbers = numbered(encoded(pa.concat_tables([marks.select(QUESTION), asked])), QUESTION)
    marked, numbers = numbers[: len(marks)], numbers[len(marks) :]
    rows = np.flatnonzero(np.isin(numbers, marked))
    order = np.argsort(marked)
    found = pa.array(order[np.searchsorted(marked[order], numbers[rows])])
    its_marks, rows = marks.select(_MARKS).take(found), table.take(pa.array(rows))
    is_recorded = pc.is_null(its_marks["before_allowed"])
    as_recorded = pc.and_(is_recorded, pc.equal(rows["allowed"], its_marks["after_allowed"]))
    columns = {
        **{name: rows[name] for name in _KEYS[:-1]},
        "direction": its_marks["direction"],
        "flipped_events": rows["events"],
    }
    return pa.table(columns).filter(pc.invert(as_recorded))


def _of_marked(marks: pa.Table, table: pa.Table) -> pa.Table:
    """Return the rows whose principal and resource occur in marks: mostly few, soon found."""
    flags = [
        pc.is_in(table[name].chunk(0).dictionary, value_set=marks[name].chunk(0).dictionary).take(
            table[name].chunk(0).indices
        )
        for name in ("principal", "resource_name")
    ]
    # A null may be marked as well.
    is_of = pc.and_(*(pc.fill_null(each, True) for each in flags))
    return compacted(table.filter(is_of))
