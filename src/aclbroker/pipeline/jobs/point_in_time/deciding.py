"""Decides questions at positions, in a worker, and compares the answers with those of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import Decision, RuleKind
from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclOperation,
    ResourceType,
)
from aclbroker.pipeline.acls.history import AclHistory
from aclbroker.pipeline.jobs.point_in_time.columns import (
    ASKED_KEYS,
    COUNTS,
    DECIDED_KEYS,
    Verdict,
    Why,
)
from aclbroker.pipeline.jobs.point_in_time.timing import Timing
from aclbroker.pipeline.jobs.point_in_time.walk import (
    NONE,
    Allowing,
    Asker,
    Walk,
    principals_of,
)
from aclbroker.pipeline.replay.asking import session_of
from aclbroker.pipeline.replay.questions import PEER
from aclbroker.pipeline.usage.grouping import encoded, grouped, numbered, spread, tested, values
from aclbroker.pipeline.usage.table import Tables

_ASKER: Final = (*PEER, "operation", "resource_type")
_KINDS: Final = {kind: number for number, kind in enumerate(RuleKind)}
_MATCHING: Final = _KINDS[RuleKind.MATCHING_ACL]
_LONGEST_NAME, _LONGEST_PRINCIPAL = 256, 1024
"""So many characters of a text are logged; the names of topics are always whole."""

_NEVER: Final = np.iinfo(np.int64).max


def decided(parts: Tables, histories: Mapping[str, AclHistory]) -> Tables:
    """Yield parts of what was asked with the columns `DECIDED_KEYS` and `COUNTS`, added up."""
    for part in parts:
        rows = grouped(part, ASKED_KEYS, COUNTS)
        is_told = pc.is_null(rows["why"])
        untold = rows.filter(pc.invert(is_told))
        if len(untold):
            yield _counted(untold, _untold(untold))
        told = rows.filter(is_told)
        clusters = told["cluster"].combine_chunks()
        for cluster in pc.unique(clusters.cast(pa.string())).to_pylist():
            theirs = encoded(told.filter(pc.equal(clusters.cast(pa.string()), cluster)))
            yield _counted(theirs, _Replay(theirs, histories[cluster]).columns())


def _untold(rows: pa.Table) -> dict[str, pa.Array]:
    size = len(rows)
    return {
        "verdict": pa.repeat(Verdict.UNTOLD.value, size),
        "why": rows["why"],
        "allowed_then": pa.nulls(size, pa.bool_()),
        "rule_then": pa.nulls(size, pa.string()),
        **{name: pa.repeat(pa.scalar(NONE, pa.int32()), size) for name in _CHANGES},
    }


_CHANGES: Final = ("grant", "before", "after")
_NOTHING: Final = (NONE, NONE)


def _counted(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    table = pa.table(
        {
            name: columns[name] if name in columns else rows[name]
            for name in (*DECIDED_KEYS, *COUNTS)
        }
    )
    return grouped(table, DECIDED_KEYS, COUNTS)


class _Replay:
    """The questions of one cluster, decided in the order of their positions.

    A question whose decision is not that of the log at its first position waits: it may be at a
    later one, if the line stands for decisions at several, or was made while the next change took
    effect.
    """

    def __init__(self, rows: pa.Table, history: AclHistory) -> None:
        self._rows = rows
        self._history = history
        self._first, self._last = (
            rows[name].combine_chunks().cast(pa.int64()).to_numpy() for name in ("first", "last")
        )
        self._logged = rows["allowed"].combine_chunks().to_numpy(zero_copy_only=False).tolist()
        self._rules = [None if each is None else _BY_NAME[each] for each in values(rows["rule"])]
        self._names = values(rows["resource_name"])
        self._askers, self._asker_of = _askers(rows)
        principals = principals_of([each.session for each in self._askers])
        self._walk = Walk(history, principals)
        self._allowing = Allowing(history, principals, self._askers)
        size = len(rows)
        self._allowed = [False] * size
        self._kinds = [0] * size
        self._grants = [NONE] * size
        self._around = [_NOTHING] * size
        self._waiting: dict[int, None] = {}
        self._waiting_of: dict[str, dict[int, None]] = {}

    def columns(self) -> dict[str, pa.Array]:
        """Decide all; return the columns that `decided` adds."""
        self._decide_all()
        rows, nobody = self._rows, np.zeros(len(self._rows), np.int32)
        logged = np.array(self._logged, bool)
        is_same = np.array(self._allowed, bool) == logged
        kinds = np.array(self._kinds, np.int32)
        rules = np.array([NONE if each is None else each for each in self._rules], np.int32)
        verdicts = np.full(len(rows), _VERDICTS.index(Verdict.OTHERWISE), np.int32)
        verdicts[is_same] = _VERDICTS.index(Verdict.AS_LOGGED)
        is_other_rule = is_same & (rules >= 0) & (rules != kinds)
        verdicts[is_other_rule] = _VERDICTS.index(Verdict.OTHER_RULE)
        verdicts[is_same & self._are_timed(Timing.OTHER)] = _VERDICTS.index(Verdict.OTHER_TIME)
        why = nobody - 1
        is_doubtful = ~is_same | is_other_rule
        for number, (_, cannot) in enumerate(self._doubts()):
            is_so = cannot & is_doubtful
            verdicts[is_so], why[is_so] = _VERDICTS.index(Verdict.UNTOLD), number
        reasons = pa.array([*(reason.value for reason, _ in self._doubts()), None], pa.string())
        return {
            "verdict": spread(pa.array([each.value for each in _VERDICTS]), verdicts),
            "why": spread(reasons, why % len(reasons)),
            "allowed_then": pa.array(self._allowed),
            "rule_then": spread(pa.array([each.value for each in _KINDS]), kinds),
            "grant": pa.array(self._grants, pa.int32()),
            "before": pa.array([before for before, _ in self._around], pa.int32()),
            "after": pa.array([after for _, after in self._around], pa.int32()),
        }

    def _doubts(self) -> Iterator[tuple[Why, NDArray[np.bool_]]]:
        """Yield why a difference is none, and of which rows."""
        rows = self._rows
        names = pc.utf8_length(rows["resource_name"].cast(pa.string()))
        principals = pc.utf8_length(rows["principal"].cast(pa.string()))
        is_long = pc.or_(
            pc.and_(
                pc.greater_equal(pc.fill_null(names, 0), _LONGEST_NAME),
                pc.not_equal(rows["resource_type"].cast(pa.string()), ResourceType.TOPIC.name),
            ),
            pc.greater_equal(pc.fill_null(principals, 0), _LONGEST_PRINCIPAL),
        )
        yield Why.TOO_EARLY, self._first < self._history.horizon
        yield Why.TOO_LATE, self._last > self._history.last
        yield Why.SHORTENED, np.array(is_long)

    def _are_timed(self, timing: Timing) -> NDArray[np.bool_]:
        return tested(self._rows["timing"], timing.value.__eq__)

    def _ends(self) -> NDArray[np.int64]:
        """Return up to which position each row may have been decided.

        That is its last one; or the next transaction, if that had been asked for: while it takes
        effect decisions still name the position before.
        """
        positions = np.append(np.array(self._history.positions, np.int64), _NEVER)
        upcoming = positions[np.searchsorted(positions, self._last, "right")]
        is_changing = self._are_timed(Timing.CHANGING)
        found: NDArray[np.int64] = np.where(is_changing, upcoming, self._last)
        return found

    def _decide_all(self) -> None:
        starts = np.maximum(self._first, self._history.horizon)
        self._ends_at = self._ends().tolist()
        self._starts, self._lasts = starts.tolist(), self._last.tolist()
        order = np.argsort(starts, kind="stable").tolist()
        walk, rows_starts = self._walk, self._starts
        for row in order:
            start = rows_starts[row]
            self._settle(start)
            walk.move(start)
            self._begin(row)
        self._settle(_NEVER)

    def _begin(self, row: int) -> None:
        """Decide a row at its first position; let it wait if it may be decided otherwise later."""
        decision = self._decided(row)
        self._take(row, decision)
        if self._is_as_logged(row, decision) or self._ends_at[row] <= self._starts[row]:
            return
        self._waiting[row] = None
        for principal in self._askers[self._asker_of[row]].session.principals:
            self._waiting_of.setdefault(principal, {})[row] = None

    def _settle(self, position: int) -> None:
        """Go on to a position, as long as rows wait, and decide those that a change concerns."""
        walk = self._walk
        while self._waiting:
            upcoming = walk.upcoming
            if upcoming is None or upcoming > position:
                return
            touched = walk.step()
            for row in self._touched(touched):
                if self._ends_at[row] < upcoming:
                    self._forget(row)
                    continue
                decision = self._decided(row)
                if decision.allowed == self._logged[row]:
                    self._take(row, decision)
                    if self._is_as_logged(row, decision):
                        self._forget(row)

    def _touched(self, principals: set[str]) -> list[int]:
        if self._walk.is_open or WILDCARD_PRINCIPAL in principals:
            return list(self._waiting)
        theirs = (self._waiting_of.get(each, ()) for each in principals)
        return list(dict.fromkeys(chain.from_iterable(theirs)))

    def _forget(self, row: int) -> None:
        del self._waiting[row]
        for principal in self._askers[self._asker_of[row]].session.principals:
            self._waiting_of[principal].pop(row, None)

    def _decided(self, row: int) -> Decision:
        return self._walk.decide(self._askers[self._asker_of[row]], self._names[row])

    def _is_as_logged(self, row: int, decision: Decision) -> bool:
        rule = self._rules[row]
        is_same = decision.allowed == self._logged[row]
        return is_same and (rule is None or rule == _KINDS[decision.kind])

    def _take(self, row: int, decision: Decision) -> None:
        kind = self._kinds[row] = _KINDS[decision.kind]
        self._allowed[row] = decision.allowed
        self._grants[row] = self._walk.grant_of(decision) if kind == _MATCHING else NONE
        self._around[row] = _NOTHING if decision.allowed else self._around_of(row)

    def _around_of(self, row: int) -> tuple[int, int]:
        """Return which changes would allow what was denied: the last before, and the next."""
        positions = self._starts[row], self._lasts[row]
        return self._allowing.around(self._asker_of[row], self._names[row], *positions)


_VERDICTS: Final = [*Verdict]
_BY_NAME: Final = {kind.value: number for kind, number in _KINDS.items()}


def _askers(rows: pa.Table) -> tuple[list[Asker], list[int]]:
    """Return who asks for which kinds of things, and of each row which of these it is."""
    # No ACL names a host without a class, so that any will do for it.
    host = pc.if_else(pc.is_valid(rows["host"]), rows["example_host"].cast(pa.string()), None)
    table = encoded(rows.select(_ASKER).set_column(_ASKER.index("host"), "host", host))
    _, firsts, codes = np.unique(numbered(table, _ASKER), return_index=True, return_inverse=True)
    columns = [values(each) for each in table.take(pa.array(firsts)).columns]
    found: list[Asker] = []
    sessions = {}
    for _, *peer, operation, resource_type in zip(*columns, strict=True):
        who = tuple(peer)
        if who not in sessions:
            sessions[who] = session_of(*who)
        found.append(Asker(sessions[who], AclOperation[operation], ResourceType[resource_type]))
    return found, codes.tolist()
