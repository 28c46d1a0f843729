"""Gathers what a log asked, each question at each position once, and parts it by positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.acls.history import AclHistory
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest import positioned
from aclbroker.pipeline.jobs.point_in_time.columns import (
    ASKED_KEYS,
    COUNTS,
    Why,
    blob_type,
)
from aclbroker.pipeline.jobs.point_in_time.timing import ends_of, rows_by_cluster
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.replay.questions import (
    QUESTION,
    hosts_of,
    questions_of,
    tells_listeners,
)
from aclbroker.pipeline.spark.tasks import busy_tasks, shuffle_tasks
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded
from aclbroker.pipeline.usage.packing import compacted, packed
from aclbroker.pipeline.usage.table import Tables, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEGMENTS: Final = 256
"""Into how many ranges of positions all histories are cut, about, before rows are counted."""

_PIECE: Final = 50_000
"""How many rows of a range are moved together at most."""

_LEAST, _MOST = 20_000, 200_000
"""How many rows a task is given at least, if there are as many, and at most at a time."""


class Reach(NamedTuple):
    """Of a history, what is needed to know whether it reaches a position, and in which range."""

    horizon: int
    last: int
    starts: NDArray[np.int64]
    """The positions at which ranges begin, but for the first."""

    first_segment: int


def gathered(usage: Usage, histories: Mapping[str, AclHistory]) -> DataFrame:
    """Return rows ``part`` and ``packed`` for `packing.of_parts`, and their number.

    A part has rows of a range of positions, with the columns `ASKED_KEYS` and `COUNTS`: each
    question at each position that the log names, and what the histories do not reach by the reason
    alone.
    """
    rules = {"then": {cluster: each.rules for cluster, each in histories.items()}}
    work = partial(_gather, _reaches(histories), hosts_of(rules), tells_listeners(rules))
    blobs = usage.map(work, blob_type(), (*positioned.KEYS, *positioned.COUNTS)).persist()
    sizes = blobs.groupBy("segment", "piece").agg(F.sum("rows").alias("rows")).collect()
    parts = _parts(sorted(map(tuple, sizes)), busy_tasks(usage.spark) or shuffle_tasks(usage.spark))
    named = usage.spark.createDataFrame(parts, "segment int, piece int, part int")
    return blobs.join(F.broadcast(named), ["segment", "piece"]).select("part", "packed")


def part_count(parts: DataFrame) -> int:
    """Return how many parts there are of what was `gathered`."""
    (row,) = parts.agg(F.max("part").alias("last")).collect()
    return 1 if row["last"] is None else int(row["last"]) + 1


def _parts(sizes: Sequence[tuple[int, int, int]], tasks: int) -> list[tuple[int, int, int]]:
    """Return the part of each piece of a segment: pieces in their order, as many as are one."""
    total = sum(rows for _, _, rows in sizes)
    most = min(max(total // tasks + 1, _LEAST), _MOST)
    found, part, filled = [], 0, 0
    for segment, piece, rows in sizes:
        if filled and filled + rows > most:
            part, filled = part + 1, 0
        found.append((segment, piece, part))
        filled += rows
    return found


def _reaches(histories: Mapping[str, AclHistory]) -> dict[str, Reach]:
    most = max(_SEGMENTS // max(len(histories), 1), 1)
    found, first = {}, 0
    for cluster, each in histories.items():
        positions = np.unique(np.array(each.positions, np.int64))
        positions = positions[positions > each.horizon]
        starts = positions[:: len(positions) // most + 1]
        found[cluster] = Reach(each.horizon, each.last, starts, first)
        first += len(starts) + 1
    return found


def _gather(
    reaches: Mapping[str, Reach], hosts: Hosts, tells_listeners: bool, tables: Tables
) -> Tables:
    rows = (_keyed(table, reaches, hosts, tells_listeners) for table in tables)
    for found in counted(rows, ASKED_KEYS, COUNTS):
        yield from _blobs(found, reaches)


def _keyed(
    table: pa.Table, reaches: Mapping[str, Reach], hosts: Hosts, tells_listeners: bool
) -> pa.Table:
    example = encoded(table.select(["host"]))["host"]
    table = encoded(table, but=("host",))
    first, last = ends_of(table)
    why = _why(table["cluster"].combine_chunks(), first, last, reaches)
    is_told = pc.is_null(why)
    asked = questions_of(table, hosts, tells_listeners)
    columns = {name: _where(is_told, asked[name]) for name in QUESTION if name != "cluster"}
    columns |= {
        "cluster": table["cluster"],
        "allowed": table["allowed"],
        "rule": _where(is_told, table["rule"]),
        "first": _where(is_told, first.dictionary_encode()),
        "last": _where(is_told, last.dictionary_encode()),
        "timing": _where(is_told, table[positioned.MARK]),
        "why": why.dictionary_encode(),
        "first_position": first,
        "last_position": last,
        "example_host": _where(is_told, example),
    }
    return pa.table(
        {name: columns[name] if name in columns else table[name] for name in (*ASKED_KEYS, *COUNTS)}
    )


def _why(
    clusters: pa.DictionaryArray, first: pa.Array, last: pa.Array, reaches: Mapping[str, Reach]
) -> pa.Array:
    """Return why the decision of a row cannot be told; null where it can, for a part at least."""
    found = pa.nulls(len(clusters), pa.string())
    for code, cluster in enumerate(clusters.dictionary.to_pylist()):
        theirs = pc.equal(clusters.indices, code)
        reach = reaches.get(cluster)
        if reach is None:
            found = pc.if_else(theirs, Why.NO_HISTORY.value, found)
            continue
        cases = {
            Why.TOO_EARLY: pc.less(last, reach.horizon),
            Why.TOO_LATE: pc.greater(first, reach.last),
            Why.NO_POSITION: pc.is_null(last),
        }
        for why, holds in cases.items():
            is_so = pc.and_(theirs, pc.fill_null(holds, False))
            found = pc.if_else(is_so, why.value, found)
    return found


def _where(condition: pa.Array, column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column that is null where a condition does not hold; texts stay encoded."""
    each = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not pa.types.is_dictionary(each.type):
        return pc.if_else(condition, each, None)
    indices = pc.if_else(condition, each.indices, None)
    return pa.DictionaryArray.from_arrays(indices, each.dictionary)


def _blobs(found: pa.Table, reaches: Mapping[str, Reach]) -> Iterator[pa.Table]:
    """Yield rows by the range that they begin in, packed."""
    segments = _segments(found, reaches)
    order = np.argsort(segments, kind="stable")
    bounds = np.flatnonzero(np.diff(segments[order], prepend=-1)).tolist()
    for start, end in zip(bounds, [*bounds[1:], len(order)], strict=True):
        for piece, begin in enumerate(range(start, end, _PIECE)):
            rows = order[begin : min(begin + _PIECE, end)]
            yield pa.table(
                {
                    "segment": pa.array([int(segments[rows[0]])], pa.int32()),
                    "piece": pa.array([piece], pa.int32()),
                    "rows": [len(rows)],
                    "packed": [packed(compacted(found.take(pa.array(rows))))],
                }
            )


def _segments(found: pa.Table, reaches: Mapping[str, Reach]) -> NDArray[np.int64]:
    first = found["first"].combine_chunks().cast(pa.int64()).fill_null(0).to_numpy()
    segments = np.zeros(len(found), np.int64)
    for cluster, rows in rows_by_cluster(found):
        reach = reaches.get(cluster)
        if reach is not None:
            number = np.searchsorted(reach.starts, first[rows], "right")
            segments[rows] = reach.first_segment + number
    return segments
