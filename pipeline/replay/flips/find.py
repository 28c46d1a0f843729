"""Finds the questions that two sets of rules decide differently, and why.

All questions are decided in one pass, and those that flip are explained in the same worker, so that
neither the rules nor the questions travel twice.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Observation
from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.causes import Causes, Decided, causes
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.deciding import ShippedSets, decide
from aclbroker.pipeline.replay.flips.usage import flipped_usage
from aclbroker.pipeline.usage.table import Batches, Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEWLY_DENIED: Final = "newly denied"
NEWLY_ALLOWED: Final = "newly allowed"
DIRECTIONS: Final = (NEWLY_DENIED, NEWLY_ALLOWED)

_BEFORE, _AFTER = "before", "after"
_LISTS: Final = (
    *("before_allows", "before_denies", "after_allows", "after_denies"),
    *("removed", "added", "settings"),
)


class Total(NamedTuple):
    """What flips in one direction: how many questions and events, the first and the last day.

    ``only_filtering``: how many of the questions were only asked to filter an answer.
    """

    questions: int = 0
    events: int = 0
    only_filtering: int = 0
    first_day: str = ""
    last_day: str = ""


@dataclass(frozen=True, slots=True)
class Flips:
    """What `find_flips` found.

    ``table``: the flips, as they were written. ``usage``: the rows of usage behind them, with
    ``direction``, ``flipped_events`` and the ``host`` itself; each time it is used, the usage is
    read again. ``questions`` and ``events``: how many were decided. ``totals``: what flips in each
    direction, if anything does. ``drift_denied`` and ``drift_allowed``: how many events were
    recorded as allowed which the rules before deny, and the other way round; of them,
    ``drift_mixed`` are of questions that were decided both ways within the log.
    """

    table: DataFrame
    usage: DataFrame
    questions: int
    events: int
    totals: Mapping[str, Total]
    drift_denied: int
    drift_allowed: int
    drift_mixed: int


def find_flips(
    usage: Usage,
    before: Mapping[str, Ruleset],
    after: Mapping[str, Ruleset],
    output: Output,
    name: str,
) -> Flips:
    """Write the table ``name`` of all questions that flip from ``before`` to ``after``.

    Only clusters in ``after`` are looked at. For a cluster that is not in ``before``, the decisions
    of the log are taken for those before; then one question may have events of both decisions.

    The columns are those of `questions.gathered`, those of `replay.decided` for the names
    ``before`` and ``after``, and

    - ``direction``: `NEWLY_DENIED` or `NEWLY_ALLOWED`
    - ``flipped_events``: how many of the question's events are decided differently
    - ``before_allows``, ``before_denies``, ``after_allows``, ``after_denies`` (array<string>): the
      ACLs that allow or deny it, as `acl_text` writes them
    - ``removed``, ``added``, ``settings`` (array<string>): what has to be undone for the decision
      to be as before (see `pipeline.analysis.causes`); empty if it was the log's
    """
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField

    sets = {_BEFORE: before, _AFTER: after}
    covered = usage.part(after)
    added = [
        *replay.added_fields(sets),
        StructField("direction", StringType()),
        StructField("flipped_events", LongType()),
        *(StructField(each, ArrayType(StringType())) for each in _LISTS),
        *(StructField(each, LongType()) for each in _COUNTS),
    ]
    totals = Observation()
    compared = replay.replayed_by(covered, sets, _Comparer(), added)
    observed = compared.observe(totals, *_totals())
    flips = observed.where(F.col("flipped_events") > 0).drop(*_COUNTS)
    table = output.table(name, flips)
    found = totals.get
    counts = {name.removeprefix("all_"): found[name] or 0 for name in _COUNTS}
    by_direction = {each: Total(**found[each].asDict()) for each in DIRECTIONS}
    flipping = sum(total.questions for total in by_direction.values())
    return Flips(
        table,
        flipped_usage(table, flipping, covered, sets),
        totals={each: total for each, total in by_direction.items() if total.questions},
        **counts,
    )


_COUNTS: Final = ("all_questions", "all_events", "drift_denied", "drift_allowed", "drift_mixed")
"""Columns for the counts of a batch of questions: those that do not flip stay in the worker."""


def _totals() -> list[Column]:
    return [
        *(F.sum(name).alias(name) for name in _COUNTS),
        *(_total(direction).alias(direction) for direction in DIRECTIONS),
    ]


def _total(direction: str) -> Column:
    """The columns of `Total`."""
    flips = F.col("direction") == direction

    def day(of: Column) -> Column:
        return F.coalesce(F.date_format(of, "yyyy-MM-dd"), F.lit(""))

    return F.struct(
        F.count_if(flips).alias("questions"),
        F.coalesce(F.sum(F.when(flips, F.col("flipped_events"))), F.lit(0)).alias("events"),
        F.count_if(flips & (F.col("loud_events") == 0)).alias("only_filtering"),
        day(F.min(F.when(flips, F.col("first_seen")))).alias("first_day"),
        day(F.max(F.when(flips, F.col("last_seen")))).alias("last_day"),
    )


class _Comparer:
    """Decides batches of questions under both sets; marks and explains those that flip."""

    def __init__(self) -> None:
        self._explainer: _Explainer | None = None

    def __call__(self, batch: pa.RecordBatch, sets: ShippedSets) -> Batches:
        answered = decide(batch, sets)
        flipped = _flipped_events(answered)
        is_flip = pc.greater(flipped, 0)
        marked = answered.append_column("direction", _direction(answered, is_flip))
        marked = marked.append_column("flipped_events", flipped)
        yield _with_columns(marked.slice(0, 0), {}, _counts(answered))
        flips = marked.filter(is_flip)
        if flips.num_rows:
            # One for all batches of a task, since it keeps sets of all ACLs.
            self._explainer = self._explainer or _Explainer(sets)
            yield _with_columns(flips, self._explainer.lists(batch.filter(is_flip)), {})


def _flipped_events(answered: pa.RecordBatch) -> pa.Array:
    before, after = answered.column("before_allowed"), answered.column("after_allowed")
    events, allowed = answered.column("events"), answered.column("allowed_events")
    recorded = pc.if_else(after, pc.subtract(events, allowed), allowed)
    replayed = pc.if_else(pc.equal(before, after), pa.scalar(0, pa.int64()), events)
    return pc.if_else(pc.is_null(before), recorded, replayed)


def _direction(answered: pa.RecordBatch, is_flip: pa.Array) -> pa.Array:
    after = answered.column("after_allowed")
    direction = pc.if_else(after, NEWLY_ALLOWED, NEWLY_DENIED)
    return pc.if_else(is_flip, direction, pa.scalar(None, pa.string()))


def _counts(answered: pa.RecordBatch) -> dict[str, int]:
    """Return what `_COUNTS` are of a batch."""
    events, allowed = answered.column("events"), answered.column("allowed_events")
    before = answered.column("before_allowed")
    denied_now = pc.if_else(before, 0, allowed)
    allowed_now = pc.if_else(before, pc.subtract(events, allowed), 0)
    is_mixed = pc.and_(pc.greater(allowed, 0), pc.less(allowed, events))
    mixed = pc.if_else(is_mixed, pc.add(denied_now, allowed_now), 0)
    sums = [pc.sum(each).as_py() or 0 for each in (events, denied_now, allowed_now, mixed)]
    return dict(zip(_COUNTS, [answered.num_rows, *sums], strict=True))


def _with_columns(
    batch: pa.RecordBatch, lists: Mapping[str, Sequence[Any]], counts: Mapping[str, int]
) -> pa.RecordBatch:
    """Return flips with what explains them, or one row of counts."""
    size = 1 if counts else batch.num_rows
    columns = [pa.nulls(1, each.type) for each in batch.columns] if counts else batch.columns
    columns = [*columns, *(pa.array(lists.get(name) or [None] * size, _TEXTS) for name in _LISTS)]
    columns += [pa.array([counts.get(name)] * size, pa.int64()) for name in _COUNTS]
    return pa.RecordBatch.from_arrays(columns, [*batch.schema.names, *_LISTS, *_COUNTS])


_TEXTS: Final = pa.list_(pa.string())


class _Explainer:
    """Explains questions that flip, by the ACLs of both sets."""

    def __init__(self, sets: ShippedSets) -> None:
        self._sets = sets
        self._acls: dict[tuple[str, str], frozenset[AclBinding]] = {}

    def lists(self, questions: pa.RecordBatch) -> dict[str, list[list[str] | None]]:
        """Return the columns `_LISTS`."""
        answered = decide(questions, self._sets, explain=True).to_pylist()
        rows = [self._explained(row) for row in answered]
        return {name: [row[name] for row in rows] for name in _LISTS}

    def _explained(self, row: Mapping[str, Any]) -> dict[str, list[str] | None]:
        after = self._decided(_AFTER, row)
        if row["before_allowed"] is None:
            return dict.fromkeys(_LISTS) | _acl_lists(_AFTER, after) | _cause_lists(_NO_CAUSES)
        before = self._decided(_BEFORE, row)
        found = causes(before, after, allowed_before=row["before_allowed"])
        return _acl_lists(_BEFORE, before) | _acl_lists(_AFTER, after) | _cause_lists(found)

    def _decided(self, name: str, row: Mapping[str, Any]) -> Decided:
        ruleset = self._sets[name].ruleset(row["cluster"])
        assert ruleset is not None  # noqa: S101 - it has just decided

        def bindings(which: str) -> list[AclBinding]:
            return [ruleset.acls[position] for position in row[f"{name}_{which}"]]

        on_resource = None if row[f"{name}_on_resource"] is None else bindings("on_resource")
        rule, acls = RuleKind(row[f"{name}_rule"]), self._acls_of(name, row["cluster"], ruleset)
        lists = bindings("allows"), bindings("denies"), on_resource
        return Decided(rule, *lists, acls, ruleset.cidr)

    def _acls_of(self, name: str, cluster: str, ruleset: Ruleset) -> Container[AclBinding]:
        if (name, cluster) not in self._acls:
            self._acls[name, cluster] = frozenset(ruleset.acls)
        return self._acls[name, cluster]


_NO_CAUSES: Final = Causes([], [], [])


def _acl_lists(name: str, decided: Decided) -> dict[str, list[str] | None]:
    return {
        f"{name}_allows": _texts(decided.allows),
        f"{name}_denies": _texts(decided.denies),
    }


def _cause_lists(found: Causes) -> dict[str, list[str] | None]:
    settings = [str(setting) for setting in found.settings]
    return {"removed": _texts(found.removed), "added": _texts(found.added), "settings": settings}


def _texts(acls: Sequence[AclBinding]) -> list[str]:
    return [acl_text(acl) for acl in acls]
