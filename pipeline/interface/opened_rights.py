"""What a proposal opens and closes, as tables: for reports, and as Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aclbroker.pipeline.analysis.opened import ChangedRights, Opened
from aclbroker.pipeline.interface.result import Cell, Table
from aclbroker.pipeline.interface.wording import in_short
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN: Final = 3
"""How many of several principals, hosts or names a row of a report shows."""

_COLUMNS: Final = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("change", pa.string()),
        pa.field("principals", pa.list_(pa.string())),
        pa.field("is_everyone_else", pa.bool_()),
        pa.field("hosts", pa.list_(pa.string())),
        pa.field("operations", pa.list_(pa.string())),
        pa.field("resource_type", pa.string()),
        pa.field("pattern_type", pa.string()),
        pa.field("name", pa.string()),
        pa.field("exceptions", pa.list_(pa.string())),
        pa.field("example", pa.string()),
        pa.field("is_asked", pa.bool_()),
        pa.field("rights", pa.int64()),
    ]
)

RIGHTS: Final = "every right that it opens or closes, for all requests, asked or not"
"""What the table of `rights_frame` holds, for `JobResult.outputs`."""


def rights_frame(spark: SparkSession, found: Mapping[str, Opened]) -> DataFrame:
    """Return all rights that are opened or closed, by cluster, as rows of Spark."""
    rows = (
        (cluster, *each.texts(), each.rights)
        for cluster, opened in found.items()
        for each in opened.changes
    )
    return frame_of(spark, _COLUMNS, rows)


def rights_tables(found: Mapping[str, Opened], top: int, source: str) -> list[Table]:
    """Return what is opened, and what is closed, for a report: the first ``top`` rows of each.

    ``source`` names the output that has all of them, as `rights_frame` makes it.
    """
    opened = [(cluster, each) for cluster, one in found.items() for each in one.opened]
    closed = [(cluster, each) for cluster, one in found.items() for each in one.closed]
    tables = (
        _table("Opened: what would be allowed, and is not now", opened, len(found) > 1, top),
        _table("Closed: what is allowed now, and would not be", closed, len(found) > 1, top),
    )
    return [replace(each, source=source) for each in tables if each.rows]


def _table(
    title: str, found: Sequence[tuple[str, ChangedRights]], has_clusters: bool, top: int
) -> Table:
    columns = ("Principals", "Operations", "Resources", "Hosts", "Asked for", "For example")
    rows = [[*([cluster] if has_clusters else []), *_cells(each)] for cluster, each in found[:top]]
    note = "For every request, whether anybody asked it or not."
    return Table(title, [*(["Cluster"] if has_clusters else []), *columns], rows, len(found), note)


def _cells(changed: ChangedRights) -> Iterator[Cell]:
    texts = changed.texts()
    principals = in_short(texts.principals, _SHOWN)
    if texts.is_everyone_else:
        principals = f"everyone but {principals}" if principals else "everyone"
    star = "*" if texts.pattern_type == "PREFIXED" else ""
    but = f" but {in_short(texts.exceptions, _SHOWN)}" if texts.exceptions else ""
    yield principals
    yield ", ".join(texts.operations)
    yield f"{texts.resource_type} {texts.name}{star}{but}"
    yield "; ".join(texts.hosts)
    yield "yes" if texts.is_asked else "no"
    yield texts.example
