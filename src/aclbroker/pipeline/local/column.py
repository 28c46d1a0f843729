"""Columns: what is computed of each row, as SQL of DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, NamedTuple

from aclbroker.pipeline.local.types import DataType, sql_type


class Column:
    """An expression, and the name of the column that it becomes."""

    def __init__(self, sql: str, name: str = "") -> None:
        self.sql = sql
        self.name = name or sql

    __hash__ = None  # type: ignore[assignment]

    def alias(self, name: str) -> Column:
        """Return the same by another name."""
        return Column(self.sql, name)

    def _with(self, operator: str, other: Any) -> Column:
        return Column(f"({self.sql} {operator} {literal(other)})")

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._with("<>", other)

    def __lt__(self, other: Any) -> Column:
        return self._with("<", other)

    def __le__(self, other: Any) -> Column:
        return self._with("<=", other)

    def __gt__(self, other: Any) -> Column:
        return self._with(">", other)

    def __ge__(self, other: Any) -> Column:
        return self._with(">=", other)

    def __and__(self, other: Any) -> Column:
        return self._with("AND", other)

    def __or__(self, other: Any) -> Column:
        return self._with("OR", other)

    def __add__(self, other: Any) -> Column:
        return self._with("+", other)

    def __sub__(self, other: Any) -> Column:
        return self._with("-", other)

    def __mul__(self, other: Any) -> Column:
        return self._with("*", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Column:
        return self._with("/", other)

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.sql})")

    def __getitem__(self, position: int) -> Column:
        return Column(f"({self.sql})[{position + 1}]")

    def eqNullSafe(self, other: Any) -> Column:
        """Tell whether both are equal, or both null."""
        return self._with("IS NOT DISTINCT FROM", other)

    def isNull(self) -> Column:
        """Tell whether it is null."""
        return Column(f"({self.sql} IS NULL)")

    def isNotNull(self) -> Column:
        """Tell whether it is not null."""
        return Column(f"({self.sql} IS NOT NULL)")

    def isin(self, *values: Any) -> Column:
        """Tell whether it is one of some values, or of a list of them; null if it is null."""
        among = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        if not among:
            return Column("FALSE")
        return Column(f"({self.sql} IN ({', '.join(map(literal, among))}))")

    def between(self, low: Any, high: Any) -> Column:
        """Tell whether it is neither less nor more than some bounds."""
        return Column(f"({self.sql} BETWEEN {literal(low)} AND {literal(high)})")

    def startswith(self, begin: str) -> Column:
        """Tell whether a text begins so."""
        return Column(f"starts_with({self.sql}, {literal(begin)})")

    def cast(self, kind: DataType | str) -> Column:
        """Return it as another type."""
        return Column(f"CAST({self.sql} AS {sql_type(kind)})", self.name)

    def over(self, window: Window) -> Column:
        """Return what a function of windows is in its own."""
        return Column(f"{self.sql} OVER ({window.sql})")


class When(Column):
    """A choice: further cases can be added, and what holds without any of them."""

    def __init__(self, cases: Sequence[str]) -> None:
        super().__init__(f"(CASE {' '.join(cases)} END)")
        self._cases = cases

    def when(self, condition: Column, value: Any) -> When:
        """Add a case, which holds if those before it do not."""
        return When([*self._cases, f"WHEN {condition.sql} THEN {literal(value)}"])

    def otherwise(self, value: Any) -> Column:
        """Add what holds in no case."""
        return When([*self._cases, f"ELSE {literal(value)}"])


class Order(NamedTuple):
    """By what rows are ordered. Nulls come first, and last in descending order, as with Spark."""

    sql: str


class Window:
    """A part of the rows, and their order in it, for `Column.over`."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    @staticmethod
    def partitionBy(*names: str) -> Window:
        """Return the parts that have equal values in some columns."""
        return Window(f"PARTITION BY {', '.join(map(quoted, names))}")

    def orderBy(self, *by: Order | Column | str) -> Window:
        """Return the same with an order in each part."""
        return Window(f"{self.sql} {ordered(by)}")


def ordered(by: Iterable[Order | Column | str]) -> str:
    """Return the clause that orders by some columns."""
    parts = (each if isinstance(each, Order) else ascending(each) for each in by)
    return f"ORDER BY {', '.join(each.sql for each in parts)}"


def ascending(column: Column | str) -> Order:
    """Return the order from the smallest on."""
    return Order(f"{referred(column).sql} ASC NULLS FIRST")


def descending(column: Column | str) -> Order:
    """Return the order from the largest on."""
    return Order(f"{referred(column).sql} DESC NULLS LAST")


def referred(column: Column | str) -> Column:
    """Return the column of a name; ``outer.inner`` is the field of a struct, or of a frame."""
    if isinstance(column, Column):
        return column
    parts = column.split(".")
    return Column(".".join(map(quoted, parts)), parts[-1])


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def literal(value: Any) -> str:
    """Return a value as SQL has it, or the expression of a column."""
    if isinstance(value, Column):
        return value.sql
    if value is None:
        return "NULL"
    if isinstance(value, bool | int):
        return str(value).upper()
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    # No character but the quote means anything within a text.
    doubled = str(value).replace("'", "''")
    return f"'{doubled}'"
