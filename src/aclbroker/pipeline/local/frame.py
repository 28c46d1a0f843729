"""Frames: queries of DuckDB over tables of Arrow, and the tables that they give."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

import duckdb
import pyarrow as pa

from aclbroker.pipeline.local.column import Column, Order, descending, ordered, quoted, referred
from aclbroker.pipeline.local.types import MOMENT, StructType, arrow_schema, of_arrow

if TYPE_CHECKING:
    from aclbroker.pipeline.local.tables import Writer

# What is not freed as Python ends, DuckDB prints as leaked: such as what `uncollected` has kept.
atexit.register(gc.unfreeze)

_numbers: Final = count()
_ZONELESS: Final = pa.timestamp("us")


@cache
def database() -> duckdb.DuckDBPyConnection:
    """Return the database of this process: in memory, without files and without connections."""
    opened = duckdb.connect(config={"enable_external_access": "false", "temp_directory": ""})
    # The collector does not see what DuckDB holds, such as functions that were registered.
    atexit.register(opened.close)
    return opened


class Row(tuple[Any, ...]):
    """A row: its values are found by position and by name."""

    _names: tuple[str, ...]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Row:
        """Return the row of some values; a struct among them is a row, too."""
        found = cls(cls.of(each) if isinstance(each, dict) else each for each in values.values())
        found._names = tuple(values)
        return found

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._names.index(key) if isinstance(key, str) else key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self[name]

    def asDict(self) -> dict[str, Any]:
        """Return the values by name."""
        return dict(zip(self._names, self, strict=True))


class Observation:
    """Numbers of a frame that were computed on the way (`DataFrame.observe`)."""

    def __init__(self) -> None:
        self.get: dict[str, Any] = {}


class Session(Protocol):
    """The session that a frame belongs to."""

    def createDataFrame(self, rows: pa.Table) -> DataFrame:
        """Return the frame of a table of Arrow."""


class DataFrame:
    """A table, or a query that gives one.

    A query is answered when its rows are needed, each time anew, unless it is kept (`persist`).
    """

    def __init__(
        self, session: Session, query: str, columns: Sequence[str], name: str = ""
    ) -> None:
        self.sparkSession = session
        self.columns = list(columns)
        self._query = query
        self._name = name or f"_t{next(_numbers)}"
        self._table: pa.Table | None = None
        self._is_ordered = False

    @staticmethod
    def of_table(session: Session, table: pa.Table) -> DataFrame:
        """Return the frame of a table of Arrow."""
        name = f"_t{next(_numbers)}"
        frame = DataFrame(session, f"FROM {name}", table.column_names, name)
        frame._table = table
        database().register(name, _retyped(table, MOMENT, _ZONELESS))
        return frame

    # What a frame is read by.

    def toArrow(self) -> pa.Table:
        """Return the rows as a table of Arrow."""
        if self._table is not None:
            return self._table
        found = database().sql(self._query).to_arrow_table()
        return _retyped(found, _ZONELESS, MOMENT).rename_columns(self.columns)

    def collect(self) -> list[Row]:
        """Return the rows."""
        return [Row.of(each) for each in self.toArrow().to_pylist()]

    def count(self) -> int:
        """Return how many rows there are."""
        if self._table is not None:
            return int(self._table.num_rows)
        found = database().sql(f"FROM ({self._query}) SELECT count(*)").to_arrow_table()
        return int(found.column(0)[0].as_py())

    @property
    def schema(self) -> StructType:
        """The names and types of the columns."""
        table = self._table
        return of_arrow((self.limit(0).toArrow() if table is None else table).schema)

    @property
    def write(self) -> Writer:
        """What writes the rows as files."""
        from aclbroker.pipeline.local.tables import Writer

        return Writer(self.toArrow)

    def persist(self) -> DataFrame:
        """Answer the query now, and keep what it gives."""
        if self._table is None:
            kept = DataFrame.of_table(self.sparkSession, self.toArrow())
            self._table, self._query = kept._table, kept._query
        return self

    def unpersist(self) -> DataFrame:
        """Do nothing: what was kept may be in use in further queries."""
        return self

    # What becomes of the rows.

    def __getitem__(self, name: str) -> Column:
        return Column(f"{self._name}.{quoted(name)}", name)

    def alias(self, name: str) -> DataFrame:
        """Return the same, by whose name columns can be referred to in a join."""
        return DataFrame(self.sparkSession, self._query, self.columns, name)

    def _from(self) -> str:
        return f"FROM ({self._query}) AS {self._name}"

    def _of(self, query: str, columns: Sequence[str] | None = None) -> DataFrame:
        return DataFrame(self.sparkSession, query, self.columns if columns is None else columns)

    def select(self, *columns: Column | str) -> DataFrame:
        """Return some columns; ``*`` are all of them."""
        found: list[Column] = []
        for each in columns:
            if isinstance(each, str) and each == "*":
                found += map(referred, self.columns)
            else:
                found.append(referred(each))
        return self._of(f"SELECT {_listed(found)} {self._from()}", [each.name for each in found])

    def where(self, condition: Column | str) -> DataFrame:
        """Return the rows for which a condition holds; a text is SQL."""
        sql = condition if isinstance(condition, str) else condition.sql
        return self._of(f"SELECT * {self._from()} WHERE {sql}")

    def withColumns(self, columns: Mapping[str, Column]) -> DataFrame:
        """Return the rows with further columns, or others in place of those with their names."""
        found = {name: referred(name) for name in self.columns}
        found |= {name: column.alias(name) for name, column in columns.items()}
        return self.select(*found.values())

    def withColumn(self, name: str, column: Column) -> DataFrame:
        """Return the rows with a further column, or another in place of the one of its name."""
        return self.withColumns({name: column})

    def withColumnRenamed(self, name: str, to: str) -> DataFrame:
        """Return the rows with another name for a column."""
        return self.select(
            *(referred(each).alias(to if each == name else each) for each in self.columns)
        )

    def drop(self, *names: str) -> DataFrame:
        """Return all columns but some."""
        return self.select(*(each for each in self.columns if each not in names))

    def distinct(self) -> DataFrame:
        """Return each row once."""
        return self._of(f"SELECT DISTINCT * {self._from()}")

    def limit(self, most: int) -> DataFrame:
        """Return the first rows."""
        if self._is_ordered:
            return self._of(f"{self._query} LIMIT {most}")
        return self._of(f"SELECT * {self._from()} LIMIT {most}")

    def take(self, most: int) -> list[Row]:
        """Return the first rows."""
        return self.limit(most).collect()

    def orderBy(self, *by: Order | Column | str, ascending: bool = True) -> DataFrame:
        """Return the rows in an order; names and columns that are not ``ascending`` descend."""
        if not ascending:
            by = tuple(each if isinstance(each, Order) else descending(each) for each in by)
        found = self._of(f"SELECT * {self._from()} {ordered(by)}")
        found._is_ordered = True
        return found

    sortWithinPartitions = orderBy

    def repartition(self, *_: Any) -> DataFrame:
        """Return the same: all rows are of one part."""
        return self

    repartitionById = coalesce = repartition

    def unionByName(self, other: DataFrame) -> DataFrame:
        """Return the rows of both, which have the same columns."""
        query = f"SELECT * {self._from()} UNION ALL SELECT * {other.select(*self.columns)._from()}"
        return self._of(query)

    def join(
        self, other: DataFrame, on: str | Sequence[str] | Sequence[Column], how: str = "inner"
    ) -> DataFrame:
        """Return the rows of both that fit together.

        ``on``: the columns in which they are equal, which the result has once, or conditions.
        """
        by: Sequence[str | Column] = [on] if isinstance(on, str) else on
        names = [each for each in by if isinstance(each, str)]
        conditions = [self[each] == other[each] for each in names]
        conditions += [each for each in by if isinstance(each, Column)]
        where = " AND ".join(each.sql for each in conditions)
        joined = f"{_JOINS[how]} JOIN ({other._query}) AS {other._name} ON {where}"
        columns = [self[each] for each in self.columns]
        if how not in ("left_semi", "left_anti"):
            columns = [
                *(self[each] for each in names),
                *(self[each] for each in self.columns if each not in names),
                *(other[each] for each in other.columns if each not in names),
            ]
        query = f"SELECT {_listed(columns)} {self._from()} {joined}"
        return self._of(query, [each.name for each in columns])

    def groupBy(self, *by: Column | str) -> Groups:
        """Return the groups of rows that are equal in some columns; null is a value."""
        return Groups(self, [referred(each) for each in by])

    def agg(self, *columns: Column) -> DataFrame:
        """Return one row of what some columns are of all rows."""
        return self.groupBy().agg(*columns)

    def observe(self, observation: Observation, *columns: Column) -> DataFrame:
        """Compute some numbers of all rows, and return these."""
        self.persist()
        observation.get = self.agg(*columns).collect()[0].asDict()
        return self

    def mapInArrow(
        self,
        function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: StructType | str,
    ) -> DataFrame:
        """Return what a function makes of all rows: it is called now, and once."""
        wanted = arrow_schema(schema)
        tables = [
            pa.Table.from_batches([batch]).select(wanted.names).cast(wanted)
            for batch in function(iter(self.toArrow().to_batches()))
        ]
        table = pa.concat_tables(tables) if tables else wanted.empty_table()
        return DataFrame.of_table(self.sparkSession, table)


class Groups:
    """Groups of rows."""

    def __init__(self, frame: DataFrame, by: Sequence[Column]) -> None:
        self._frame = frame
        self._by = by

    def agg(self, *columns: Column) -> DataFrame:
        """Return a row for each group: what it has in common, and some columns."""
        found = [*self._by, *columns]
        keys = ", ".join(str(number + 1) for number in range(len(self._by)))
        grouped = f" GROUP BY {keys}" if keys else ""
        query = f"SELECT {_listed(found)} {self._frame._from()}{grouped}"
        return self._frame._of(query, [each.name for each in found])

    def count(self) -> DataFrame:
        """Return each group with ``count``, how many rows it has."""
        return self.agg(Column("count(*)", "count"))


_JOINS: Final = {"inner": "", "left": "LEFT", "left_semi": "SEMI", "left_anti": "ANTI"}


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(f"{each.sql} AS {quoted(each.name)}" for each in columns)


def _retyped(table: pa.Table, before: pa.DataType, after: pa.DataType) -> pa.Table:
    """Return a table with another type for the columns of one type."""
    for position, field in enumerate(table.schema):
        if field.type == before:
            table = table.set_column(position, field.name, table.column(position).cast(after))
    return table
