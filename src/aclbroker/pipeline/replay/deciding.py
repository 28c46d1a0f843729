"""Decides questions in workers: most at once, the others with the broker's own authorizer core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import Decision, RuleKind
from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.replay.asking import Decider, Grouped
from aclbroker.pipeline.replay.lookup import Found, Lookup
from aclbroker.pipeline.replay.questions import QUESTION
from aclbroker.pipeline.replay.reasons import Reasons
from aclbroker.pipeline.usage.grouping import encoded

DECISIONS: Final = ("allowed", "rule")
"""What `decide` tells of every question, behind the name of a set of rules."""


def decide(batch: pa.RecordBatch, sets: ShippedSets, *, explain: bool = False) -> pa.RecordBatch:
    """Decide a batch of questions, in a worker: add the columns that `replay.decided` describes."""
    asked = asked_of(batch)
    for name, rules in sets.items():
        batch = with_columns(batch, name, rules.answer(asked, explain))
    return batch


def with_columns(
    batch: pa.RecordBatch, name: str, columns: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """Return a batch with further columns of the set of rules ``name``."""
    names = [*batch.schema.names, *(f"{name}_{column}" for column in columns)]
    return pa.RecordBatch.from_arrays([*batch.columns, *columns.values()], names)


def asked_of(batch: pa.RecordBatch) -> pa.Table:
    """Return the questions encoded, with an example of each class of hosts for the class."""
    # No ACL names a host without a class. Leaving all of these out makes few peers of many.
    host = pc.if_else(pc.is_valid(batch["host"]), batch["example_host"], None)
    return encoded(pa.table({name: batch[name] for name in QUESTION} | {"host": host}))


class Rules:
    """A set of rules in a worker. What decides by them is made when it is first asked, and kept.

    Authorizers are made of the ACLs of those who ask: a worker needs few of a cluster's principals.
    """

    def __init__(self, by_cluster: Mapping[str, Ruleset]) -> None:
        self._by_cluster = dict(by_cluster)
        self._lookups: dict[str, Lookup] = {}
        self._deciders: dict[str, Decider] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_by_cluster": self._by_cluster, "_lookups": {}, "_deciders": {}}

    def ruleset(self, cluster: str) -> Ruleset | None:
        """Return the rules of a cluster, if the set has any."""
        return self._by_cluster.get(cluster)

    def acls_met(self, cluster: str) -> Mapping[AclBinding, int]:
        """Return the ACLs of all for whom an authorizer was asked, with their positions.

        These are the positions in `Ruleset.acls`. Where resources without ACLs are open to
        everyone, they are all ACLs.
        """
        decider = self._decider(cluster)
        return {} if decider is None else decider.positions

    def are_plain(self, asked: pa.Table) -> NDArray[np.bool_]:
        """Tell of each question (see `asked_of`) whether it is decided without an authorizer."""
        found = np.zeros(len(asked), bool)
        for cluster, rows, theirs in _by_cluster(asked):
            lookup = self._lookup(cluster)
            found[rows] = True if lookup is None else lookup.are_plain(theirs)
        return found

    def answer(self, asked: pa.Table, explain: bool = False) -> dict[str, pa.Array]:
        """Return the columns that `replay.decided` adds, without the set's name.

        ``asked``: see `asked_of`.
        """
        answers = _Answers(len(asked))
        left = np.arange(len(asked)) if explain else self._looked_up(asked, answers)
        grouped = Grouped(asked.take(pa.array(left)))
        left = left[grouped.order]
        for group in grouped.groups:
            decider = self._decider(group.cluster)
            if decider is not None:
                decisions = decider.decisions(group, grouped.names[group.first : group.end])
                answers.take(left[group.first : group.end], decisions)
        return answers.columns | (self._reasons(grouped) if explain else {})

    def reasons(self, asked: pa.Table) -> dict[str, pa.Array]:
        """Return those columns of `answer` that explain what was decided, and these alone."""
        return self._reasons(Grouped(asked))

    def _looked_up(self, asked: pa.Table, answers: _Answers) -> NDArray[np.int64]:
        """Decide all that is plain, and return the rows that are left."""
        is_left = np.zeros(len(asked), bool)
        for cluster, rows, theirs in _by_cluster(asked):
            lookup = self._lookup(cluster)
            if lookup is not None:
                is_plain = lookup.are_plain(theirs)
                is_left[rows[~is_plain]] = True
                answers.take_found(rows[is_plain], lookup.decide(theirs.filter(pa.array(is_plain))))
        return np.flatnonzero(is_left)

    def _reasons(self, grouped: Grouped) -> dict[str, pa.Array]:
        """Return the reasons of all questions, each in its place."""
        reasons: list[Reasons | tuple[None, ...]] = []
        for group in grouped.groups:
            decider = self._decider(group.cluster)
            for name in grouped.names[group.first : group.end]:
                reasons.append(decider.acls_behind(group, name) if decider else _UNKNOWN)
        columns = zip(*reasons, strict=True) if reasons else _UNKNOWN
        places = pa.array(np.argsort(grouped.order))
        return {
            name: pa.array(column or (), pa.list_(pa.int32())).take(places)
            for name, column in zip(Reasons._fields, columns, strict=True)
        }

    def _lookup(self, cluster: str) -> Lookup | None:
        if cluster not in self._lookups and cluster in self._by_cluster:
            self._lookups[cluster] = Lookup(self._by_cluster[cluster])
        return self._lookups.get(cluster)

    def _decider(self, cluster: str) -> Decider | None:
        if cluster not in self._deciders and cluster in self._by_cluster:
            self._deciders[cluster] = Decider(self._by_cluster[cluster])
        return self._deciders.get(cluster)


ShippedSets = Mapping[str, Rules]
"""Sets of rules by name, as they are in a worker."""

_KINDS: Final = {kind: number for number, kind in enumerate(RuleKind)}
_BY_ACL, _BY_DEFAULT = _KINDS[RuleKind.MATCHING_ACL], _KINDS[RuleKind.DEFAULT_DENY]
_UNDECIDED: Final = -1

_UNKNOWN: Final = (None,) * len(Reasons._fields)
"""The reasons where a set has no rules."""


class _Answers:
    """What was decided of each of some questions; nothing yet at first."""

    def __init__(self, size: int) -> None:
        self._allowed = np.zeros(size, bool)
        self._kinds = np.full(size, _UNDECIDED, np.int8)

    def take(self, rows: NDArray[np.int64], decisions: Sequence[Decision]) -> None:
        """Take what an authorizer decided of some rows."""
        self._allowed[rows] = [each.allowed for each in decisions]
        self._kinds[rows] = [_KINDS[each.kind] for each in decisions]

    def take_found(self, rows: NDArray[np.int64], found: Found) -> None:
        """Take what was looked up of some rows."""
        self._allowed[rows] = found.allowed
        self._kinds[rows] = np.where(found.by_acl, _BY_ACL, _BY_DEFAULT)

    @property
    def columns(self) -> dict[str, pa.Array]:
        """The columns `DECISIONS`, null where nothing was decided."""
        is_open = self._kinds == _UNDECIDED
        kinds = pa.DictionaryArray.from_arrays(
            pa.array(self._kinds, mask=is_open), [kind.value for kind in _KINDS]
        )
        answers = pa.array(self._allowed, mask=is_open), kinds.cast(pa.string())
        return dict(zip(DECISIONS, answers, strict=True))


def _by_cluster(asked: pa.Table) -> Iterator[tuple[str, NDArray[np.int64], pa.Table]]:
    """Yield the questions of each cluster, and which rows they are."""
    column = asked["cluster"].combine_chunks()
    codes = column.indices.to_numpy()
    for code, cluster in enumerate(column.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        is_all = len(rows) == len(asked)
        yield cluster, rows, asked if is_all else asked.take(pa.array(rows))
