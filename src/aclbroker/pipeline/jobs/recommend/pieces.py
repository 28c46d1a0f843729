"""What the tasks of `recommend` return: rows of packed values, each of one kind and cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.usage.packing import packed, unpacked

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SESSIONS: Final = "sessions"
COUNTS: Final = "counts"
ALLOWS: Final = "allows"
DENIES: Final = "denies"
UNMET: Final = "unmet"
PREFIXES: Final = "prefixes"
FLIPS: Final = "flips"
RIGHTS: Final = "rights"
"""The kinds. Of `ALLOWS` a row has what `packed_acls` returns; the others have tables of Arrow."""


class Piece(NamedTuple):
    """One row: ``principal`` is that of `ALLOWS`, and else None."""

    kind: str
    cluster: str
    principal: str | None
    packed: bytes


def pieces_type() -> StructType:
    """Return the columns of pieces."""
    from aclbroker.pipeline.frames.types import BinaryType, StringType, StructField, StructType

    texts = [StructField(each, StringType()) for each in Piece._fields[:-1]]
    return StructType([*texts, StructField(Piece._fields[-1], BinaryType())])


def piece(kind: str, cluster: str, rows: pa.Table | pa.RecordBatch) -> Piece:
    """Return rows as a piece."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    return Piece(kind, cluster, None, packed(table))


_TYPES: Final = (pa.string(), pa.string(), pa.string(), pa.binary())


def batch_of(pieces: Iterable[Piece]) -> pa.RecordBatch:
    """Return pieces as rows."""
    columns = list(zip(*pieces, strict=True)) or [()] * len(_TYPES)
    arrays = [pa.array(each, kind) for each, kind in zip(columns, _TYPES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, Piece._fields)


def rows_of(schema: pa.Schema, rows: Iterable[Iterable[Any]]) -> pa.RecordBatch:
    """Return rows of Python."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def unpacked_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of tables that are packed as pieces, in a worker.

    Those that have no column ``cluster`` get it as the first one.
    """
    for batch in batches:
        clusters = batch.column("cluster").to_pylist()
        for cluster, table in zip(clusters, unpacked(batch.column("packed")), strict=True):
            if "cluster" not in table.column_names:
                table = table.add_column(0, "cluster", pa.repeat(pa.scalar(cluster), len(table)))
            yield from table.combine_chunks().to_batches()


_AT_ONCE: Final = 20_000


def in_batches(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    """Yield rows, some at a time."""
    some: list[Sequence[Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == _AT_ONCE:
            yield rows_of(schema, some)
            some = []
    if some:
        yield rows_of(schema, some)
