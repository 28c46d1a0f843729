"""What a proposal opens and closes, as tables: for reports, and as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from aclbroker.pipeline.analysis.opened import ChangedRights, Opened
from aclbroker.pipeline.interface.output import Output
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


class OpenedInShort:
    """What a proposal opens, and of what it closes the first ``most`` rights, with their count.

    What it closes is of the size of the rules.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.opened: list[ChangedRights] = []
        self.first_closed: list[ChangedRights] = []
        self.closed = 0
        """How many `ChangedRights` are closed."""
        self.rights_closed = 0

    def take(self, changed: ChangedRights) -> None:
        """Count one, and keep it if it is wanted."""
        if changed.is_opened:
            self.opened.append(changed)
            return
        self.closed += 1
        self.rights_closed += changed.rights
        if len(self.first_closed) < self._most:
            self.first_closed.append(changed)

    @property
    def rights_opened(self) -> int:
        """How many rights are opened: see `ChangedRights.rights`."""
        return sum(each.rights for each in self.opened)

    def sentence(self) -> str:
        """Return, as the end of a sentence, what is opened."""
        return Opened(tuple(self.opened)).sentence()


RIGHTS: Final = "every right that it opens or closes, for all requests, asked or not"
"""What the table of `rights_frame` holds, for `JobResult.outputs`."""


def rights_frame(spark: SparkSession, found: Mapping[str, Opened]) -> DataFrame:
    """Return all rights that are opened or closed, by cluster, as rows of Spark."""
    rows = (_row(cluster, each) for cluster, opened in found.items() for each in opened.changes)
    return frame_of(spark, _COLUMNS, rows)


def rights_written(
    output: Output, name: str, changes: Mapping[str, Iterable[ChangedRights]], most: int
) -> dict[str, OpenedInShort]:
    """Write the table of `rights_frame` as rights come, by cluster; return them in short."""
    found = {cluster: OpenedInShort(most) for cluster in changes}

    def rows() -> Iterator[tuple[Any, ...]]:
        for cluster, of_cluster in changes.items():
            for each in of_cluster:
                found[cluster].take(each)
                yield _row(cluster, each)

    output.table(name, frame_of(output.spark, _COLUMNS, rows()))
    return found


def _row(cluster: str, changed: ChangedRights) -> tuple[Any, ...]:
    return cluster, *changed.texts(), changed.rights


def rights_tables(
    found: Mapping[str, Opened | OpenedInShort], top: int, source: str
) -> list[Table]:
    """Return what is opened, and what is closed, for a report: the first ``top`` rows of each.

    ``source`` names the output that has all of them, as `rights_frame` makes it.
    """
    opened = [(cluster, each) for cluster, one in found.items() for each in one.opened]
    closed, count = [], 0
    for cluster, one in found.items():
        first = one.first_closed if isinstance(one, OpenedInShort) else one.closed
        closed += [(cluster, each) for each in first]
        count += one.closed if isinstance(one, OpenedInShort) else len(one.closed)
    several = len(found) > 1
    tables = (
        _table("Opened: what would be allowed, and is not now", opened[:top], several, len(opened)),
        _table("Closed: what is allowed now, and would not be", closed[:top], several, count),
    )
    return [replace(each, source=source) for each in tables if each.rows]


def _table(
    title: str, first: Sequence[tuple[str, ChangedRights]], has_clusters: bool, total: int
) -> Table:
    columns = ("Principals", "Operations", "Resources", "Hosts", "Asked for", "For example")
    rows = [[*([cluster] if has_clusters else []), *_cells(each)] for cluster, each in first]
    note = "For every request, whether anybody asked it or not."
    return Table(title, [*(["Cluster"] if has_clusters else []), *columns], rows, total, note)


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
