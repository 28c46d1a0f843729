"""Functions of columns, with the names of ``pyspark.sql.functions``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from aclbroker.pipeline.local.column import (
    Column,
    Order,
    When,
    ascending,
    descending,
    literal,
    quoted,
    referred,
)
from aclbroker.pipeline.local.frame import DataFrame, database

_ELEMENT: Final = "_element"
_FORMATS: Final = {"yyyy-MM-dd": "%Y-%m-%d", "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S"}


def col(name: str) -> Column:
    """Return the column of a name."""
    return referred(name)


def lit(value: Any) -> Column:
    """Return a value that is the same in all rows."""
    return value if isinstance(value, Column) else Column(literal(value))


def when(condition: Column, value: Any) -> When:
    """Return a value where a condition holds; see `When`."""
    return When([f"WHEN {condition.sql} THEN {literal(value)}"])


def coalesce(*columns: Column | str) -> Column:
    """Return the first that is not null."""
    return _call("coalesce", *columns)


def greatest(*columns: Column | str) -> Column:
    """Return the largest that is not null."""
    return _call("greatest", *columns)


def sum(column: Column | str) -> Column:
    """Return the sum of whole numbers, null of none. A sum beyond 64 bits is an error."""
    return Column(f"CAST(sum({_sql(column)}) AS BIGINT)")


def count(column: Column | str) -> Column:
    """Return how many are not null; of ``*``, how many rows there are."""
    return Column("count(*)" if column == "*" else f"count({_sql(column)})")


def count_if(condition: Column) -> Column:
    """Return in how many rows a condition holds."""
    return Column(f"count(CASE WHEN {condition.sql} THEN 1 END)")


def min(column: Column | str) -> Column:
    """Return the smallest that is not null."""
    return _call("min", column)


def max(column: Column | str) -> Column:
    """Return the largest that is not null."""
    return _call("max", column)


def min_by(column: Column | str, by: Column | str) -> Column:
    """Return the value where another one is smallest."""
    return _call("arg_min_null", column, by)


def max_by(column: Column | str, by: Column | str) -> Column:
    """Return the value where another one is largest."""
    return _call("arg_max_null", column, by)


def collect_set(column: Column | str) -> Column:
    """Return the different values, without null."""
    return _collected(f"DISTINCT {_sql(column)}", column)


def collect_list(column: Column | str) -> Column:
    """Return the values, without null."""
    return _collected(_sql(column), column)


def _collected(what: str, column: Column | str) -> Column:
    return Column(f"coalesce(list({what}) FILTER (WHERE {_sql(column)} IS NOT NULL), [])")


def size(column: Column | str) -> Column:
    """Return how long a list is, null if it is null."""
    return Column(f"CAST(len({_sql(column)}) AS INTEGER)")


def array() -> Column:
    """Return an empty list; give it a type with `Column.cast`."""
    return Column("[]")


def sort_array(column: Column | str) -> Column:
    """Return a list in order, nulls first."""
    return Column(f"list_sort({_sql(column)}, 'ASC', 'NULLS FIRST')")


def array_sort(column: Column | str) -> Column:
    """Return a list in order, nulls last."""
    return Column(f"list_sort({_sql(column)}, 'ASC', 'NULLS LAST')")


def slice(column: Column | str, start: int, length: int) -> Column:
    """Return a part of a list; the first element is at 1."""
    return Column(f"({_sql(column)})[{start}:{start + length - 1}]")


def concat(*columns: Column | str) -> Column:
    """Return lists one after the other, null if one is null."""
    lists = [_sql(each) for each in columns]
    is_null = " OR ".join(f"{each} IS NULL" for each in lists)
    return Column(f"(CASE WHEN {is_null} THEN NULL ELSE list_concat({', '.join(lists)}) END)")


def transform(column: Column | str, function: Callable[[Column], Column]) -> Column:
    """Return the list of what a function makes of each element."""
    element = function(Column(_ELEMENT)).sql
    return Column(f"list_transform({_sql(column)}, lambda {_ELEMENT}: {element})")


def struct(*columns: Column | str) -> Column:
    """Return the columns together, as fields of one."""
    fields = (referred(each) for each in columns)
    inner = ", ".join(f"{quoted(each.name)} := {each.sql}" for each in fields)
    return Column(f"struct_pack({inner})")


def explode(column: Column | str) -> Column:
    """Make a row of each element of a list: none of an empty one, or of null."""
    return Column(f"unnest({_sql(column)})", "col")


def explode_outer(column: Column | str) -> Column:
    """Make a row of each element of a list, and one with null of an empty one, or of null."""
    sql = _sql(column)
    return Column(f"unnest(CASE WHEN len({sql}) > 0 THEN {sql} ELSE [NULL] END)", "col")


def date_format(column: Column | str, pattern: str) -> Column:
    """Return a timestamp as text, by one of Spark's patterns."""
    return Column(f"strftime({_sql(column)}, '{_FORMATS[pattern]}')")


def to_date(column: Column | str) -> Column:
    """Return the day of a timestamp."""
    return Column(f"CAST({_sql(column)} AS DATE)")


def row_number() -> Column:
    """Return the number of a row in its window, from 1."""
    return Column("row_number()")


def asc(column: Column | str) -> Order:
    """Return the order from the smallest on."""
    return ascending(column)


def desc(column: Column | str) -> Order:
    """Return the order from the largest on."""
    return descending(column)


def broadcast(frame: DataFrame) -> DataFrame:
    """Return the same frame: nothing is far from here."""
    return frame


def arrow_udf(function: Callable[[pa.Array], pa.Array], kind: str) -> Callable[[str], Column]:
    """Return a function of columns of text that is computed on arrays of Arrow."""

    def chunked(values: pa.ChunkedArray | pa.Array) -> pa.Array:
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return function(whole)

    name = f"_function_{id(chunked)}"
    database().create_function(
        name,
        chunked,
        ["VARCHAR"],
        "VARCHAR",
        type="arrow",
        null_handling="special",
    )
    return lambda column: Column(f"{name}({_sql(column)})")


def _sql(column: Column | str) -> str:
    return referred(column).sql


def _call(function: str, *columns: Column | str) -> Column:
    return Column(f"{function}({', '.join(map(_sql, columns))})")
