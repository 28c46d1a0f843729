"""The questions of one cluster: what was used, and what a replay of them says, in tasks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.pipeline.analysis.least_privilege import Principals, SessionUse
from aclbroker.pipeline.replay.deciding import ShippedSets, decide
from aclbroker.pipeline.replay.drift import Drift
from aclbroker.pipeline.replay.questions import QUESTION, asked_type
from aclbroker.pipeline.usage.grouping import encoded, numbered, values

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FURTHER: Final = ("example_host", "events", "first_seen", "last_seen", "wanted")


SESSION: Final = ("principal", "other_principals")
"""The columns that tell a session's principals, beside the cluster."""


class ReplayCounts(NamedTuple):
    """What a replay says of one cluster, in questions and in events.

    ``lost`` is allowed now and would not be, ``gained`` the other way round. ``exempt_events`` were
    of super users and broker users. ``denied_since`` were recorded as allowed, and are denied now,
    ``allowed_since`` the other way round; ``mixed_events`` are those of them, or all where the
    rules are not known, that are of questions that the log answers both ways. ``recorded_events``
    were recorded as allowed.
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
    recorded_events: int

    @property
    def flips(self) -> int:
        """How many questions would be decided otherwise."""
        return self.lost_questions + self.gained_questions

    @property
    def drift(self) -> Drift:
        """How many events were recorded otherwise than they are decided now."""
        return Drift(self.denied_since, self.allowed_since, self.mixed_events)


CURRENT: Final = "current"
RECOMMENDED: Final = "recommended"
"""The sets of rules by which questions are decided."""

_AT_ONCE: Final = 50_000


def answered(questions: pa.Table, sets: ShippedSets, *, explain: bool = False) -> pa.Table:
    """Return questions with the columns that `replay.decided` describes."""
    # Decisions are objects: those of some questions at a time.
    some = questions.combine_chunks().to_batches(_AT_ONCE)
    some = some or [pa.RecordBatch.from_pylist([], questions.schema)]
    return pa.Table.from_batches([decide(each, sets, explain=explain) for each in some])


def with_now(decided: pa.Table) -> pa.Table:
    """Return decided questions with ``wanted`` and ``exempt``.

    Wanted is what the current rules allow, or the log where they are not known; exempt are the
    questions of super users, and of broker users on their listener.
    """
    wanted = pc.coalesce(decided["current_allowed"], pc.greater(decided["allowed_events"], 0))
    exempt = pc.equal(decided["current_rule"], RuleKind.SUPER_USER.value)
    found = decided.append_column("wanted", wanted)
    return found.append_column("exempt", pc.fill_null(exempt, False))


def uses_of(table: pa.Table) -> list[SessionUse]:
    """Return what was used of a cluster's questions, by session, host, operation and type."""
    is_used = pc.and_(table["wanted"], pc.invert(table["exempt"]))
    is_used = pc.and_(is_used, pc.is_valid(table["resource_name"]))
    columns = encoded(table.select([*_USE, "resource_name", "example_host"]).filter(is_used))
    numbers = numbered(columns, _USE)
    order = np.argsort(numbers, kind="stable")
    bounds = [*np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist(), len(order)]
    in_order = columns.take(pa.array(order))
    names, examples = values(in_order["resource_name"]), values(in_order["example_host"])
    firsts = in_order.select(_USE).take(pa.array(bounds[:-1], pa.int64())).to_pylist()
    return [
        SessionUse(
            session_of(row),
            # The class of a host may be a subnet; the host itself is what ACLs are held against.
            None if row["host"] is None else min(filter(None, examples[first:end])),
            AclOperation[row["operation"]],
            ResourceType[row["resource_type"]],
            # Listeners may be told apart, and then a name occurs for each.
            [each for each in dict.fromkeys(names[first:end]) if each is not None],
        )
        for row, (first, end) in zip(firsts, pairwise(bounds), strict=True)
    ]


_USE: Final = (*SESSION, "host", "operation", "resource_type")


def counts_of(replayed: pa.Table) -> pa.RecordBatch:
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
        recorded.sum(),
    )
    columns = [pa.array([int(each)], pa.int64()) for each in found]
    return pa.RecordBatch.from_arrays(columns, ReplayCounts._fields)


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
