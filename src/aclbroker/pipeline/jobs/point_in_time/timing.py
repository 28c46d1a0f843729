"""Tells of each event whether it was while the ACLs of its position were in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.acls.history import UNKNOWN_TIME, AclHistory
from aclbroker.pipeline.usage.grouping import encoded, spread

_MILLISECOND = 1000
_NEVER = np.iinfo(np.int64).max

Numbers = NDArray[np.int64]


class Timing(StrEnum):
    """What is to be said of an event's time."""

    CHANGING = "changing"
    """It was when the next change had been asked for: it may have been decided by that."""

    OTHER = "other"
    """It was not while the ACLs of its positions were in force."""


_TIMINGS = [None, *(each.value for each in Timing)]


class Transactions(NamedTuple):
    """The positions of transactions, and when each was asked for, in milliseconds."""

    positions: Numbers
    times: Numbers


class Clock:
    """Marks events by `Timing`, for `pipeline.ingest.positioned`.

    ``tolerance`` is by how many seconds an event may be before its position, or after the next one.
    """

    def __init__(self, histories: Mapping[str, AclHistory], tolerance: int) -> None:
        self._tolerance = tolerance * 1000
        self._known = {cluster: _transactions(each) for cluster, each in histories.items()}

    def __call__(self, table: pa.Table) -> pa.Array:
        """Return the timing of each row, null where nothing is to be said."""
        first, last = ends_of(table)
        first_seen, last_seen = (
            table[name].combine_chunks().cast(pa.int64()).to_numpy() // _MILLISECOND
            for name in ("first_seen", "last_seen")
        )
        codes = np.zeros(len(table), np.int32)
        for cluster, rows in rows_by_cluster(table):
            known = self._known.get(cluster)
            if known is not None:
                positions = tuple(each.fill_null(0).to_numpy()[rows] for each in (first, last))
                codes[rows] = self._codes(known, positions, (first_seen[rows], last_seen[rows]))
        codes[last.is_null().to_numpy(zero_copy_only=False)] = 0
        return spread(pa.array(_TIMINGS, pa.string()), codes)

    def _codes(
        self,
        known: Transactions,
        positions: tuple[Numbers, Numbers],
        seen: tuple[Numbers, Numbers],
    ) -> NDArray[np.int32]:
        first, last = (np.searchsorted(known.positions, each, "right") for each in positions)
        # Where there is none before, the last one is found, which is not known either.
        begun = np.append(known.times, UNKNOWN_TIME)[first - 1]
        ended = np.append(known.times, _NEVER)[last]
        is_early = (begun != UNKNOWN_TIME) & (seen[0] < begun - self._tolerance)
        is_late = (ended != UNKNOWN_TIME) & (seen[1] - self._tolerance > ended)
        found = np.where(seen[1] >= ended, _TIMINGS.index(Timing.CHANGING), 0).astype(np.int32)
        found[is_early | is_late] = _TIMINGS.index(Timing.OTHER)
        return found


def _transactions(history: AclHistory) -> Transactions:
    positions, firsts = np.unique(np.array(history.positions, np.int64), return_index=True)
    return Transactions(positions, np.array(history.times, np.int64)[firsts])


def ends_of(table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the first and the last position of each row, null where it has none."""
    last = table["acls"].combine_chunks().cast(pa.int64())
    first = pc.coalesce(table["first_acls"].combine_chunks().cast(pa.int64()), last)
    # Who restores a backup while a broker runs could have it the other way round.
    least = pc.min_element_wise(first, last, skip_nulls=False)
    return least, pc.max_element_wise(first, last, skip_nulls=False)


def rows_by_cluster(table: pa.Table) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the clusters of a table, and which rows are theirs."""
    clusters = encoded(table.select(["cluster"]))["cluster"].combine_chunks()
    codes = clusters.indices.to_numpy()
    for code, cluster in enumerate(clusters.dictionary.to_pylist()):
        yield cluster, np.flatnonzero(codes == code)
