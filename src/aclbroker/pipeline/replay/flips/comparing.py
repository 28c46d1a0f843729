"""Compares, in a worker, what two sets of rules decide, and explains what differs.

Questions that flip are explained in the worker that decided them, so that neither the rules nor the
questions travel twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.analysis.causes import Causes, Decided, causes
from aclbroker.pipeline.replay.deciding import ShippedSets, asked_of, with_columns
from aclbroker.pipeline.replay.flips.difference import Difference
from aclbroker.pipeline.usage.packing import compacted
from aclbroker.pipeline.usage.table import Batches

NEWLY_DENIED: Final = "newly denied"
NEWLY_ALLOWED: Final = "newly allowed"
DIRECTIONS: Final = (NEWLY_DENIED, NEWLY_ALLOWED)

EVENTS: Final = {NEWLY_DENIED: "denied_events", NEWLY_ALLOWED: "allowed_events"}
"""What columns are called that have the events which flip in each direction."""

BEFORE: Final = "before"
AFTER: Final = "after"
"""The names of the two sets of rules."""

LISTS: Final = (
    *("before_allows", "before_denies", "after_allows", "after_denies"),
    *("removed", "added", "settings"),
)
"""Columns that explain what flips: the ACLs of both sides, and what would undo the change."""

COUNTS: Final = ("all_questions", "all_events", "drift_denied", "drift_allowed", "drift_mixed")
"""Columns for the counts of a batch of questions: those that do not flip stay in the worker."""


class Comparer:
    """Decides batches of questions under both sets; marks and explains those that flip."""

    def __init__(self) -> None:
        self._differences: dict[str, Difference] = {}

    def __call__(self, batch: pa.RecordBatch, sets: ShippedSets) -> Batches:
        """Yield the counts of a batch as one row, and the questions that flip as rows of theirs."""
        asked = asked_of(batch)
        answered = self._decided(batch, asked, sets)
        flipped = _flipped_events(answered)
        is_flip = pc.greater(flipped, 0)
        marked = answered.append_column("direction", _direction(answered, is_flip))
        marked = marked.append_column("flipped_events", flipped)
        yield _with_columns(marked.slice(0, 0), {}, _counts(answered))
        flips = marked.filter(is_flip)
        if flips.num_rows:
            lists = _Explainer(sets).lists(flips, _some(asked, is_flip))
            yield _with_columns(flips, lists, {})

    def _decided(self, batch: pa.RecordBatch, asked: pa.Table, sets: ShippedSets) -> pa.RecordBatch:
        """Decide under both sets; under that after only what it can decide otherwise."""
        before = sets[BEFORE].answer(asked)
        concerned = self._concerned(batch, asked, sets)
        again = sets[AFTER].answer(_some(asked, pa.array(concerned)))
        places = pa.array(np.cumsum(concerned) - 1, mask=~concerned)
        after = {
            column: pc.if_else(pa.array(concerned), again[column].take(places), found)
            for column, found in before.items()
        }
        return with_columns(with_columns(batch, BEFORE, before), AFTER, after)

    def _concerned(
        self, batch: pa.RecordBatch, asked: pa.Table, sets: ShippedSets
    ) -> NDArray[np.bool_]:
        """Tell of each question whether to decide it again, since that is done sooner than to ask.

        Of the others, whether the two sets can decide it differently.
        """
        found = sets[AFTER].are_plain(asked)
        clusters = batch.column("cluster")
        for cluster in clusters.unique().to_pylist():
            rows = np.flatnonzero(np.array(pc.equal(clusters, cluster)) & ~found)
            if not len(rows):
                continue
            before, after = (sets[name].ruleset(cluster) for name in (BEFORE, AFTER))
            if before is None or after is None:
                found[rows] = True
                continue
            if cluster not in self._differences:
                self._differences[cluster] = Difference(before, after)
            found[rows] = self._differences[cluster].concerned(batch.take(pa.array(rows)))
        return found


def _some(asked: pa.Table, wanted: pa.Array) -> pa.Table:
    """Return some of the questions, with no texts but theirs."""
    return asked if pc.all(wanted, skip_nulls=False).as_py() else compacted(asked.filter(wanted))


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
    """Return what `COUNTS` are of a batch."""
    events, allowed = answered.column("events"), answered.column("allowed_events")
    before = answered.column("before_allowed")
    denied_now = pc.if_else(before, 0, allowed)
    allowed_now = pc.if_else(before, pc.subtract(events, allowed), 0)
    is_mixed = pc.and_(pc.greater(allowed, 0), pc.less(allowed, events))
    mixed = pc.if_else(is_mixed, pc.add(denied_now, allowed_now), 0)
    sums = [pc.sum(each).as_py() or 0 for each in (events, denied_now, allowed_now, mixed)]
    return dict(zip(COUNTS, [answered.num_rows, *sums], strict=True))


def _with_columns(
    batch: pa.RecordBatch, lists: Mapping[str, Sequence[Any]], counts: Mapping[str, int]
) -> pa.RecordBatch:
    """Return flips with what explains them, or one row of counts."""
    size = 1 if counts else batch.num_rows
    columns = [pa.nulls(1, each.type) for each in batch.columns] if counts else batch.columns
    columns = [*columns, *(pa.array(lists.get(name) or [None] * size, _TEXTS) for name in LISTS)]
    columns += [pa.array([counts.get(name)] * size, pa.int64()) for name in COUNTS]
    return pa.RecordBatch.from_arrays(columns, [*batch.schema.names, *LISTS, *COUNTS])


_TEXTS: Final = pa.list_(pa.string())


_DECIDED: Final = ("cluster", f"{BEFORE}_allowed", f"{BEFORE}_rule", f"{AFTER}_rule")


class _Explainer:
    """Explains questions that flip, by the ACLs of both sets."""

    def __init__(self, sets: ShippedSets) -> None:
        self._sets = sets

    def lists(self, flips: pa.RecordBatch, asked: pa.Table) -> dict[str, list[list[str] | None]]:
        """Return the columns `LISTS` of questions as they were decided, and as they were asked."""
        answered = flips.select(_DECIDED)
        for name, rules in self._sets.items():
            answered = with_columns(answered, name, rules.reasons(asked))
        rows = [self._explained(row) for row in answered.to_pylist()]
        return {name: [row[name] for row in rows] for name in LISTS}

    def _explained(self, row: Mapping[str, Any]) -> dict[str, list[str] | None]:
        after = self._decided(AFTER, row)
        if row["before_allowed"] is None:
            return dict.fromkeys(LISTS) | _acl_lists(AFTER, after) | _cause_lists(_NO_CAUSES)
        before = self._decided(BEFORE, row)
        found = causes(before, after, allowed_before=row["before_allowed"])
        return _acl_lists(BEFORE, before) | _acl_lists(AFTER, after) | _cause_lists(found)

    def _decided(self, name: str, row: Mapping[str, Any]) -> Decided:
        ruleset = self._sets[name].ruleset(row["cluster"])
        assert ruleset is not None  # noqa: S101 - it has just decided

        def bindings(which: str) -> list[AclBinding]:
            return [ruleset.acls[position] for position in row[f"{name}_{which}"]]

        on_resource = None if row[f"{name}_on_resource"] is None else bindings("on_resource")
        # Whatever ACL of the other set may be looked for among these, its principal asked here too.
        rule, acls = RuleKind(row[f"{name}_rule"]), self._sets[name].acls_met(row["cluster"])
        lists = bindings("allows"), bindings("denies"), on_resource
        return Decided(rule, *lists, acls, ruleset.cidr)


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
