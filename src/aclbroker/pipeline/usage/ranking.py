"""The largest groups of a table in several respects, found in one pass over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.spark.tasks import shuffle_tasks
from aclbroker.pipeline.usage.counting import Counting
from aclbroker.pipeline.usage.grouping import grouped
from aclbroker.pipeline.usage.packing import of_parts, packed, parted, parts_type, unpacked
from aclbroker.pipeline.usage.table import Batches, Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Dimensions = Mapping[str, Sequence[str]]


class Rows(Protocol):
    """Rows to be grouped, wherever they are: of `Usage`, or of a `Usage` that was made of a table.

    Workers that make them group them at once, so that Spark never has them as rows.
    """

    def map(
        self, function: Callable[[Tables], Tables], schema: StructType, columns: Sequence[str]
    ) -> DataFrame:
        """Return what a function makes of tables with ``columns``, as `Usage.map` does."""

    @property
    def spark(self) -> SparkSession:
        """The session that the rows are of."""


class Ranking(NamedTuple):
    """The first groups, as rows of their columns and measures, and how many there are in all.

    ``above_zero``: by measure, in how many of all groups it is above 0.
    """

    rows: Sequence[Mapping[str, Any]]
    total: int
    above_zero: Mapping[str, int]

    def first(self, count: int) -> Ranking:
        """Return the same with no more than so many rows."""
        return self._replace(rows=self.rows[:count])


def rankings(
    rows: Rows, dimensions: Dimensions, measures: Sequence[str], *, count: int
) -> dict[str, Ranking]:
    """Return, for each of ``dimensions``, its ``count`` largest groups.

    ``dimensions``: a name for each list of columns to group by. ``measures``: columns to be added
    up; groups are ordered by the first one, the largest first, and groups of equal size by their
    columns.
    """
    columns = dict.fromkeys(name for group in dimensions.values() for name in group)
    tasks = shuffle_tasks(rows.spark)
    work = partial(_groups, dimensions, measures, tasks)
    groups = rows.map(work, parts_type(), (*columns, *measures))
    tops = of_parts(groups, tasks).mapInArrow(
        partial(_tops, dimensions, measures, count), "packed binary"
    )
    found: dict[str, list[pa.Table]] = {name: [] for name in dimensions}
    for table in unpacked(tops.toArrow()["packed"].combine_chunks()):
        found[table[_DIMENSION][0].as_py()].append(table)
    return {
        name: _ranking(found[name], group, measures, count) for name, group in dimensions.items()
    }


_DIMENSION: Final = "_dimension"
_TOTAL: Final = "_total"


def _above(measure: str) -> str:
    return f"_{measure}"


def _groups(dimensions: Dimensions, measures: Sequence[str], tasks: int, tables: Tables) -> Tables:
    """Yield the groups of some rows, `parted` for the tasks that put them together."""
    sums = dict.fromkeys(measures, "sum")
    countings = {name: Counting(group, sums) for name, group in dimensions.items()}
    for table in tables:
        for name, counting in countings.items():
            yield from _parts(name, dimensions[name], counting.add(table), tasks)
    for name, counting in countings.items():
        yield from _parts(name, dimensions[name], counting.rest(), tasks)


def _parts(dimension: str, group: Sequence[str], found: pa.Table | None, tasks: int) -> Tables:
    if found is not None:
        named = found.append_column(_DIMENSION, pa.repeat(dimension, found.num_rows))
        yield from parted(named, group, tasks)


def _tops(dimensions: Dimensions, measures: Sequence[str], count: int, batches: Batches) -> Batches:
    """Yield the largest groups of a part, with how many there are in all, and above zero."""
    found: dict[str, list[pa.Table]] = {name: [] for name in dimensions}
    for batch in batches:
        for table in unpacked(batch.column("packed")):
            found[table[_DIMENSION][0].as_py()].append(table)
    for name, tables in found.items():
        if tables:
            group = dimensions[name]
            groups = grouped(pa.concat_tables(tables), group, dict.fromkeys(measures, "sum"))
            top = _largest(groups, group, measures[0], count)
            told = {_DIMENSION: name, _TOTAL: groups.num_rows}
            for measure in measures:
                told[_above(measure)] = pc.sum(pc.greater(groups[measure], 0)).as_py()
            for column, value in told.items():
                top = top.append_column(column, pa.repeat(value, top.num_rows))
            yield pa.RecordBatch.from_arrays([pa.array([packed(top)], pa.binary())], ["packed"])


def _ranking(
    tops: Sequence[pa.Table], group: Sequence[str], measures: Sequence[str], count: int
) -> Ranking:
    """Put together what `_tops` found."""

    def told(column: str) -> int:
        return sum(table[column][0].as_py() for table in tops)

    rows: list[dict[str, Any]] = []
    if tops:
        together = pa.concat_tables(table.select([*group, *measures]) for table in tops)
        rows = _largest(together, group, measures[0], count).to_pylist()
    return Ranking(rows, told(_TOTAL), {measure: told(_above(measure)) for measure in measures})


def _largest(groups: pa.Table, group: Sequence[str], measure: str, count: int) -> pa.Table:
    columns = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(groups.column_names, groups.columns, strict=True)
    }
    plain = pa.table(columns)
    by_name = [(name, "ascending") for name in group]
    order = pc.sort_indices(plain, [(measure, "descending"), *by_name])
    return plain.take(order[:count])
