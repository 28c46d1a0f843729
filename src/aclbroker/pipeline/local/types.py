"""The types of columns, with the names of ``pyspark.sql.types``; each is one of Arrow's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

MOMENT: Final = pa.timestamp("us", tz="UTC")
"""What a timestamp is outside of queries; within them it has no zone, and is UTC."""

_BY_NAME: Final = {
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": MOMENT,
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "binary": pa.binary(),
}
_SQL: Final = {
    "string": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
    "bigint": "BIGINT",
    "int": "INTEGER",
    "double": "DOUBLE",
    "binary": "BLOB",
}


class DataType(NamedTuple):
    """A type."""

    arrow: pa.DataType

    def simpleString(self) -> str:
        """Return what Spark calls it, such as ``bigint``; a list is ``array<bigint>``."""
        if pa.types.is_list(self.arrow):
            return f"array<{DataType(self.arrow.value_type).simpleString()}>"
        return next(name for name, kind in _BY_NAME.items() if kind == self.arrow)


def StringType() -> DataType:
    """Return the type of texts."""
    return DataType(pa.string())


def BooleanType() -> DataType:
    """Return the type of what is true or not."""
    return DataType(pa.bool_())


def LongType() -> DataType:
    """Return the type of whole numbers of 64 bits."""
    return DataType(pa.int64())


def IntegerType() -> DataType:
    """Return the type of whole numbers of 32 bits."""
    return DataType(pa.int32())


def DateType() -> DataType:
    """Return the type of days."""
    return DataType(pa.date32())


def TimestampType() -> DataType:
    """Return the type of points in time."""
    return DataType(MOMENT)


def BinaryType() -> DataType:
    """Return the type of bytes."""
    return DataType(pa.binary())


def ArrayType(element: DataType) -> DataType:
    """Return the type of lists."""
    return DataType(pa.list_(element.arrow))


class StructField(NamedTuple):
    """A column: its name and its type."""

    name: str
    dataType: DataType


class StructType:
    """The columns of a frame."""

    def __init__(self, fields: Sequence[StructField]) -> None:
        self.fields = list(fields)

    def __getitem__(self, name: str) -> StructField:
        return next(each for each in self.fields if each.name == name)

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def fieldNames(self) -> list[str]:
        """Return the names of the columns."""
        return [each.name for each in self.fields]

    @staticmethod
    def fromDDL(text: str) -> StructType:
        """Return the columns that a text tells, such as ``name string, count bigint``."""
        pairs = (each.split() for each in text.split(","))
        return StructType([StructField(name, DataType(_BY_NAME[kind])) for name, kind in pairs])


def arrow_schema(schema: StructType | str) -> pa.Schema:
    """Return columns, or the text that tells them, as Arrow's."""
    found = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    return pa.schema([(each.name, each.dataType.arrow) for each in found])


def of_arrow(schema: pa.Schema) -> StructType:
    """Return Arrow's columns as those of a frame."""
    return StructType([StructField(each.name, DataType(each.type)) for each in schema])


def sql_type(kind: DataType | str) -> str:
    """Return what DuckDB calls a type, or the type of this name."""
    if isinstance(kind, DataType):
        kind = kind.simpleString()
    if kind.startswith("array<"):
        return f"{sql_type(kind[6:-1])}[]"
    return _SQL[DataType(_BY_NAME[kind]).simpleString()]
