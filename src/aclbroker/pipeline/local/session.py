"""The session: makes frames, and stands in for what of Spark's session jobs use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

    from aclbroker.pipeline.local.frame import DataFrame
    from aclbroker.pipeline.local.tables import Reader
    from aclbroker.pipeline.local.types import StructType

Value = TypeVar("Value")


class Broadcast(NamedTuple, Generic[Value]):
    """A value that all tasks have; there is one."""

    value: Value


class Context:
    """What tells of the machines that work."""

    defaultParallelism = 1

    def broadcast(self, value: Value) -> Broadcast[Value]:
        """Return a value as tasks see it."""
        return Broadcast(value)


class LocalSession:
    """A session in this process.

    ``files_of`` returns the files that an input of the command stands for.
    """

    def __init__(self, files_of: Callable[[str], Sequence[str]]) -> None:
        self.files_of = files_of
        self.sparkContext = Context()

    @property
    def read(self) -> Reader[DataFrame]:
        """What reads tables."""
        from aclbroker.pipeline.local.tables import Reader

        return Reader(self.createDataFrame)

    def createDataFrame(
        self, rows: pa.Table | Sequence[tuple[Any, ...]], schema: StructType | str | None = None
    ) -> DataFrame:
        """Return the frame of a table of Arrow, or of rows, whose columns the schema tells."""
        import pyarrow as pa

        from aclbroker.pipeline.local.frame import DataFrame
        from aclbroker.pipeline.local.types import arrow_schema

        if schema is None:
            return DataFrame.of_table(self, rows)
        wanted = arrow_schema(schema)
        columns = zip(*rows, strict=True) if rows else ([] for _ in wanted)
        arrays = [pa.array(each, field.type) for each, field in zip(columns, wanted, strict=True)]
        return DataFrame.of_table(self, pa.Table.from_arrays(arrays, schema=wanted))
