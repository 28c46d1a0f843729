"""Finds the usage behind questions that flip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline import schemas
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.replay.flips.comparing import EVENTS
from aclbroker.pipeline.replay.flips.digest import MARKS
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.replay.questions import (
    QUESTION,
    RuleSets,
    hosts_of,
    keyed,
    questions_of,
    tells_listeners,
)
from aclbroker.pipeline.usage.grouping import encoded, numbered
from aclbroker.pipeline.usage.packing import compacted
from aclbroker.pipeline.usage.table import Tables, Usage

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_KEYS: Final = (
    *("cluster", "day", "principal", "operation", "resource_type", "resource_name"),
    *("host", "direction"),
)

MEASURES: Final = ("flipped_events", *EVENTS.values())
"""How many events flip, in either direction and in each of them."""

_MOST_FLIPS: Final = 500_000
"""Up to so many flips are sent to every worker. Spark joins usage with more than these."""


def are_few(flips: int) -> bool:
    """Tell whether `flipped_usage` needs the marks of so many flips."""
    return flips <= _MOST_FLIPS


class FlippedUsage(NamedTuple):
    """Usage that is decided otherwise: what a function makes of some ``columns`` of usage.

    It has the columns ``cluster``, ``day``, ``principal``, ``operation``, ``resource_type``,
    ``resource_name``, ``host`` itself, ``direction``, and `MEASURES`; several rows may differ in
    the last alone. Each time it is used, the usage is read again.
    """

    usage: Usage
    function: Callable[[Tables], Tables]
    columns: Sequence[str]

    def map(
        self, function: Callable[[Tables], Tables], schema: StructType, columns: Sequence[str] = ()
    ) -> DataFrame:
        """Return what a function makes of all ``columns`` in workers, as `Usage.map` does."""
        return self.usage.map(partial(_both, self.function, function), schema, self.columns)

    @property
    def rows(self) -> DataFrame:
        """The rows, for Spark."""
        return self.map(iter, _type())

    @property
    def spark(self) -> SparkSession:
        """The session that the usage is of."""
        return self.usage.spark


def _both(
    first: Callable[[Tables], Tables], then: Callable[[Tables], Tables], tables: Tables
) -> Tables:
    return then(first(tables))


def flipped_usage(
    flips: DataFrame, marks: pa.Table | None, usage: Usage, sets: RuleSets
) -> FlippedUsage:
    """Return the usage behind the table ``flips`` that `find_flips` wrote.

    ``marks``: the flips themselves if they `are_few` (see `Digest`). ``usage`` and ``sets`` are
    what was replayed.
    """
    if marks is None:
        joined = Usage(_joined(flips, keyed(usage.rows, sets)))
        return FlippedUsage(joined, partial(map, _measured), (*_KEYS, MEASURES[0]))
    shipped = usage.spark.sparkContext.broadcast(marks)
    function = partial(_flipped, shipped, hosts_of(sets), tells_listeners(sets))
    return FlippedUsage(usage, function, (*QUESTION, "day", "allowed", "events"))


def _measured(table: pa.Table) -> pa.Table:
    """Return flipped usage with the events of each direction."""
    for direction, name in EVENTS.items():
        is_it = pc.equal(table["direction"], direction)
        table = table.append_column(name, pc.if_else(is_it, table["flipped_events"], 0))
    return table


def _type() -> StructType:
    from aclbroker.pipeline.frames.types import LongType, StringType, StructField, StructType

    usage = schemas.usage()
    fields = [usage[name] for name in _KEYS if name in usage.fieldNames()]
    fields += [StructField("direction", StringType())]
    return StructType([*fields, *(StructField(name, LongType()) for name in MEASURES)])


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
    for table in tables:
        found = _of_marked(marks, encoded(table, but=("host",)))
        yield _measured(_matched(marks, encoded(found), hosts, tells_listeners))


def _matched(marks: pa.Table, table: pa.Table, hosts: Hosts, tells_listeners: bool) -> pa.Table:
    """Return the rows of a table that flip, with the direction of the mark that fits them."""
    asked = encoded(questions_of(table, hosts, tells_listeners))
    numbers = numbered(encoded(pa.concat_tables([marks.select(QUESTION), asked])), QUESTION)
    marked, numbers = numbers[: len(marks)], numbers[len(marks) :]
    rows = np.flatnonzero(np.isin(numbers, marked))
    order = np.argsort(marked)
    found = pa.array(order[np.searchsorted(marked[order], numbers[rows])])
    its_marks, rows = marks.select(MARKS).take(found), table.take(pa.array(rows))
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
