"""Tables as directories of Parquet, as Spark lays them out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from aclbroker.pipeline.local.files import local_path
from aclbroker.pipeline.local.types import MOMENT, StructType, arrow_schema

Frame = TypeVar("Frame")

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_ROWS: Final = "_rows"
_ESCAPED: Final = frozenset(map(chr, (*range(1, 32), 127))) | frozenset("\"#%'*/:=?\\{[]^")
"""The characters that Spark escapes in a directory's name."""


class Writer:
    """Writes a frame; its methods are those of Spark's writer.

    ``to_arrow`` returns the rows of the frame.
    """

    def __init__(self, to_arrow: Callable[[], pa.Table]) -> None:
        self._to_arrow = to_arrow
        self._by: tuple[str, ...] = ()
        self._is_static = False

    def mode(self, mode: str) -> Writer:
        """Set what becomes of what is there; it is always replaced."""
        assert mode == "overwrite"  # noqa: S101 - no other one is used
        return self

    def option(self, name: str, value: str) -> Writer:
        """Set an option; a table with ``partitionOverwriteMode=static`` is replaced as a whole."""
        if name == "partitionOverwriteMode":
            self._is_static = value == "static"
        return self

    def partitionBy(self, *names: str) -> Writer:
        """Set the columns whose values become directories, the first one outermost."""
        self._by = names
        return self

    def parquet(self, path: str) -> None:
        """Write the rows: in place of the table, or of those of its directories that they have."""
        place, table = local_path(path), self._to_arrow()
        if self._is_static or not self._by:
            shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        for directory, rows in _partitions(table, self._by):
            inner = place / directory
            if inner != place:
                shutil.rmtree(inner, ignore_errors=True)
                inner.mkdir(parents=True)
            _write(rows, inner)
        (place / "_SUCCESS").touch()


def _write(rows: pa.Table, directory: Path) -> None:
    name = f"part-00000-{uuid4()}.zstd.parquet"
    # Readers pass over a name that begins so.
    new = directory / f"_{name}"
    pq.write_table(rows, new, compression="zstd")
    os.replace(new, directory / name)


def _partitions(table: pa.Table, by: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    if not by:
        yield "", table
        return
    rows = pa.array(np.arange(table.num_rows))
    keyed = table.select(by).append_column(_ROWS, rows).group_by(by, use_threads=False)
    keys = keyed.aggregate([(_ROWS, "list")])
    others = table.select([name for name in table.column_names if name not in by])
    for number, key in enumerate(keys.select(by).to_pylist()):
        directory = "/".join(f"{name}={_escaped(value)}" for name, value in key.items())
        yield directory, others.take(keys[f"{_ROWS}_list"][number].values)


def _escaped(value: Any) -> str:
    if value is None or value == "":
        return _NULL
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in str(value))


class Reader(Generic[Frame]):
    """Reads tables; its methods are those of Spark's reader.

    ``create_frame`` makes a frame of a table of Arrow.
    """

    def __init__(self, create_frame: Callable[[pa.Table], Frame]) -> None:
        self._create_frame = create_frame
        self._schema: pa.Schema | None = None

    def schema(self, schema: StructType) -> Reader[Frame]:
        """Set the columns; without, they are those of the files, and texts of the directories."""
        self._schema = arrow_schema(schema)
        return self

    def parquet(self, path: str) -> Frame:
        """Return the rows of a table."""
        place = local_path(path)
        files = [str(each) for each in table_files(place)]
        if not files:
            # A table that is parted has no file without a row.
            return self._create_frame((self._schema or pa.schema([])).empty_table())
        keys = [part.partition("=")[0] for part in Path(files[0]).relative_to(place).parts[:-1]]
        read = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
        found = ds.dataset(
            files,
            format=ds.ParquetFileFormat(read_options=read),
            partitioning=ds.partitioning(
                pa.schema([(name, pa.string()) for name in keys]), flavor="hive"
            ),
            partition_base_dir=str(place),
        )
        table = found.to_table()
        wanted = self._schema or _plain(table.schema)
        columns = [table[field.name].cast(field.type) for field in wanted]
        return self._create_frame(pa.Table.from_arrays(columns, schema=wanted))


def table_files(place: Path) -> list[Path]:
    """Return the files of a table, in order."""
    return sorted(
        each
        for each in place.rglob("*.parquet")
        if not any(part[0] in "._" for part in each.relative_to(place).parts)
    )


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the columns of files, in which a timestamp may have been written without a zone."""
    return pa.schema(
        [(each.name, MOMENT if pa.types.is_timestamp(each.type) else each.type) for each in schema]
    )
