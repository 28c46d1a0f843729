"""What a replay of some questions of one cluster says, in a task, and put together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.analysis.least_privilege import Principals
from aclbroker.pipeline.replay.questions import QUESTION, asked_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FURTHER: Final = ("example_host", "events", "first_seen", "last_seen", "wanted")


class ReplayCounts(NamedTuple):
    """What a replay says of one cluster, in questions and in events.

    ``lost`` is allowed now and would not be, ``gained`` the other way round. ``exempt_events`` were
    of super users and broker users. ``denied_since`` were recorded as allowed, and are denied now,
    ``allowed_since`` the other way round; ``mixed_events`` are those of them, or all where the
    rules are not known, that are of questions that the log answers both ways.
    """

    questions: int
    events: int
    allowed_questions: int
    allowed_events: int
    lost_questions: int
    lost_events: int
    gained_questions: int
    gained_events: int
    exempt_events: int
    denied_since: int
    allowed_since: int
    mixed_events: int

    @property
    def flips(self) -> int:
        """How many questions would be decided otherwise."""
        return self.lost_questions + self.gained_questions


def counts_of(replayed: pa.Table) -> pa.Table:
    """Return a row of `ReplayCounts` for questions with what is decided now, and would be.

    What is decided now is in ``current_allowed`` (null where the rules are not known) and, where
    that is so by the log, in ``wanted``; what would be in ``recommended_allowed``.
    """
    events, recorded = _numbers(replayed["events"]), _numbers(replayed["allowed_events"])
    wanted, allowed = _flags(replayed["wanted"]), _flags(replayed["recommended_allowed"])
    current = replayed["current_allowed"]
    is_known, now = _flags(pc.is_valid(current)), _flags(pc.fill_null(current, False))
    denied_since = np.where(is_known & ~now, recorded, 0)
    allowed_since = np.where(is_known & now, events - recorded, 0)
    is_mixed = (recorded > 0) & (recorded < events)
    lost, gained = wanted & ~allowed, ~wanted & allowed
    found = ReplayCounts(
        len(events),
        events.sum(),
        wanted.sum(),
        events[wanted].sum(),
        lost.sum(),
        events[lost].sum(),
        gained.sum(),
        events[gained].sum(),
        events[_flags(replayed["exempt"])].sum(),
        denied_since.sum(),
        allowed_since.sum(),
        np.where(is_known, denied_since + allowed_since, events)[is_mixed].sum(),
    )
    columns = [pa.array([int(each)], pa.int64()) for each in found]
    return pa.table(columns, ReplayCounts._fields)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    found: NDArray[np.int64] = column.to_numpy()
    return found


def _flags(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = column.to_numpy().astype(bool)
    return found


def added_up(counts: Iterable[pa.Table]) -> ReplayCounts:
    """Return the counts of parts together."""
    together = pa.concat_tables(counts)
    return ReplayCounts(*(pc.sum(together[name]).as_py() for name in ReplayCounts._fields))


def flips_of(replayed: pa.Table) -> pa.Table:
    """Return the questions that would be decided otherwise, as the table of flips has them."""
    flips = replayed.filter(pc.not_equal(replayed["recommended_allowed"], replayed["wanted"]))
    found = flips.select([*QUESTION, *_FURTHER, "recommended_allowed"])
    return found.rename_columns(
        ["allowed_now" if name == "wanted" else name for name in found.column_names]
    )


def flips_type() -> StructType:
    """Return the columns of the table of flips."""
    from aclbroker.pipeline.frames.types import BooleanType, StructField, StructType

    asked = asked_type()
    fields = [asked[name] for name in (*QUESTION, *_FURTHER[:-1])]
    flags = [StructField(each, BooleanType()) for each in ("allowed_now", "recommended_allowed")]
    return StructType([*fields, *flags])


def session_of(row: Mapping[str, Any]) -> Principals:
    """Return the principals of a row that has the columns of a session."""
    return row["principal"], *json.loads(row["other_principals"] or "[]")
