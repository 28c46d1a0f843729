"""What a proposal opens and closes, as tables: for reports, and as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.analysis.opened import ChangedRights, Opened, RightsTexts, sentence
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.interface.result import Cell, Table
from aclbroker.pipeline.interface.wording import in_short
from aclbroker.pipeline.spark.frames import frame_of
from aclbroker.pipeline.usage.table import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

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

RIGHTS_IN_PARTS: Final = pa.schema([_COLUMNS.field(name) for name in RightsTexts._fields])
"""The columns of rights that were found for some principals, behind the cluster."""


class OpenedInShort(NamedTuple):
    """What a proposal opens in a cluster, and the first of what it closes, with how much it is.

    ``closed`` is how many rows the table has of that, and they may be as many as the rules.
    """

    opened: Sequence[RightsTexts]
    first_closed: Sequence[RightsTexts]
    closed: int
    rights_closed: int

    @property
    def rights_opened(self) -> int:
        """How many rights are opened: see `ChangedRights.rights`."""
        return sum(each.rights for each in self.opened)

    def sentence(self) -> str:
        """Return, as the end of a sentence, what is opened."""
        return sentence(self.opened)


RIGHTS: Final = "every right that it opens or closes, for all requests, asked or not"
"""What the table of `rights_frame` holds, for `JobResult.outputs`."""


def rights_frame(spark: SparkSession, found: Mapping[str, Opened]) -> DataFrame:
    """Return all rights that are opened or closed, by cluster, as rows of Spark."""
    rows = (_row(cluster, each) for cluster, opened in found.items() for each in opened.changes)
    return frame_of(spark, _COLUMNS, rows)


def rights_written(
    output: Output, name: str, parts: DataFrame, clusters: Iterable[str], most: int
) -> dict[str, OpenedInShort]:
    """Write the table of `rights_frame`, of rights that were found for some principals at a time.

    ``parts`` has the columns of `rights_in_parts`; rows that differ in their principals alone
    become one. Return the rights in short, the first ``most`` of those that are closed, for each of
    the ``clusters`` that were looked at.
    """
    together = parts.groupBy(*_SAME).agg(
        F.collect_list("principals").alias("principals"),
        F.min("example").alias("example"),
        F.max("is_asked").alias("is_asked"),
    )
    table = output.table(name, together.mapInArrow(_together, _type(_COLUMNS)))
    counted = table.groupBy("cluster", "change").agg(
        F.count("change").alias("rows"), F.sum("rights").alias("rights")
    )
    closed = {row["cluster"]: row for row in counted.where("change = 'closed'").collect()}
    first = _by_cluster(table.where("change = 'closed'").orderBy(*_ORDER).limit(most))
    opened = _by_cluster(table.where("change = 'opened'").orderBy(*_ORDER))
    return {
        each: OpenedInShort(
            opened.get(each, ()),
            first.get(each, ()),
            closed[each]["rows"] if each in closed else 0,
            closed[each]["rights"] if each in closed else 0,
        )
        for each in clusters
    }


_SAME: Final = (
    *("cluster", "change", "is_everyone_else", "hosts", "operations", "resource_type"),
    *("pattern_type", "name", "exceptions"),
)
"""The columns of rights that are one row of the table: the principals are put together."""

_ORDER: Final = (
    *("cluster", "is_everyone_else", "principals", "resource_type", "name", "pattern_type"),
    *("operations", "hosts", "exceptions"),
)


def rights_in_parts() -> StructType:
    """Return the columns of rights that were found for some principals."""
    return _type(RIGHTS_IN_PARTS.insert(0, _COLUMNS.field("cluster")))


def _type(schema: pa.Schema) -> StructType:
    from aclbroker.pipeline.frames import types

    kinds = {
        pa.string(): types.StringType(),
        pa.bool_(): types.BooleanType(),
        pa.int64(): types.LongType(),
        pa.list_(pa.string()): types.ArrayType(types.StringType()),
    }
    return types.StructType([types.StructField(each.name, kinds[each.type]) for each in schema])


def _together(batches: Batches) -> Batches:
    """Yield rights with all their principals in one list, in a worker."""
    for batch in batches:
        rows = batch.to_pylist()
        for row in rows:
            row["principals"] = sorted({each for some in row["principals"] for each in some})
            texts = RightsTexts(*(row[name] for name in RightsTexts._fields))
            row["rights"] = texts.rights
        yield pa.RecordBatch.from_pylist(rows, _COLUMNS)


def _by_cluster(rows: DataFrame) -> dict[str, list[RightsTexts]]:
    found: dict[str, list[RightsTexts]] = {}
    for row in rows.toArrow().to_pylist():
        texts = RightsTexts(*(row[name] for name in RightsTexts._fields))
        found.setdefault(row["cluster"], []).append(texts)
    return found


def _row(cluster: str, changed: ChangedRights) -> tuple[Any, ...]:
    return cluster, *changed.texts(), changed.rights


def rights_tables(
    found: Mapping[str, Opened | OpenedInShort], top: int, source: str
) -> list[Table]:
    """Return what is opened, and what is closed, for a report: the first ``top`` rows of each.

    ``source`` names the output that has all of them, as `rights_frame` makes it.
    """
    opened: list[tuple[str, RightsTexts]] = []
    closed: list[tuple[str, RightsTexts]] = []
    count = 0
    for cluster, one in found.items():
        short = one if isinstance(one, OpenedInShort) else _in_short(one, top)
        opened += [(cluster, each) for each in short.opened]
        closed += [(cluster, each) for each in short.first_closed]
        count += short.closed
    several = len(found) > 1
    tables = (
        _table("Opened: what would be allowed, and is not now", opened[:top], several, len(opened)),
        _table("Closed: what is allowed now, and would not be", closed[:top], several, count),
    )
    return [replace(each, source=source) for each in tables if each.rows]


def _in_short(found: Opened, most: int) -> OpenedInShort:
    opened = [each.texts() for each in found.opened]
    first = [each.texts() for each in found.closed[:most]]
    return OpenedInShort(opened, first, len(found.closed), found.rights_closed)


def _table(
    title: str, first: Sequence[tuple[str, RightsTexts]], has_clusters: bool, total: int
) -> Table:
    columns = ("Principals", "Operations", "Resources", "Hosts", "Asked for", "For example")
    rows = [[*([cluster] if has_clusters else []), *_cells(each)] for cluster, each in first]
    note = "For every request, whether anybody asked it or not."
    return Table(title, [*(["Cluster"] if has_clusters else []), *columns], rows, total, note)


def _cells(texts: RightsTexts) -> Iterator[Cell]:
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
