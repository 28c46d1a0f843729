"""Decides questions with the broker's own authorizer core, in workers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, Decision, Session
from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.decisions import StandardAuthorizerData
from aclbroker.broker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.replay.questions import PEER
from aclbroker.pipeline.usage.grouping import encoded, numbered, values

DECISIONS: Final = ("allowed", "rule")
"""What `decide` tells of every question, behind the name of a set of rules."""


def decide(batch: pa.RecordBatch, sets: ShippedSets, *, explain: bool = False) -> pa.RecordBatch:
    """Decide a batch of questions, in a worker: add the columns that `replay.decided` describes."""
    asked = _Asked(batch)
    arrays, names = list(batch.columns), list(batch.schema.names)
    for name, rules in sets.items():
        for column, array in rules.answer(asked, explain).items():
            names.append(f"{name}_{column}")
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names)


class _Group(NamedTuple):
    """Questions of one peer about one operation and type: these rows, in their order."""

    cluster: str
    session: Session
    operation: AclOperation
    resource_type: ResourceType
    first: int
    end: int


class _Asked:
    """The questions of a batch, sorted so that those about the same but the name are together.

    ``names`` are the resources' names in that order. ``rows`` tells where each row of the batch is
    in it.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        # No ACL names a host without a class. Leaving all of these out makes few peers of many.
        host = pc.if_else(pc.is_valid(batch["host"]), batch["example_host"], None)
        columns = {name: batch[name] for name in (*_GROUPED, "resource_name")} | {"host": host}
        table = encoded(pa.table(columns))
        numbers = numbered(table, _GROUPED)
        order = np.argsort(numbers, kind="stable")
        self.rows = pa.array(np.argsort(order, kind="stable"))
        self.names = values(table["resource_name"].take(pa.array(order)))
        bounds = [*np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist(), len(order)]
        firsts = pa.array(order[bounds[:-1]])
        self.groups = list(_groups(table.select(_GROUPED).take(firsts), bounds))


def _groups(firsts: pa.Table, bounds: Sequence[int]) -> Iterator[_Group]:
    peer, session = None, None
    columns = (values(firsts[name]) for name in _GROUPED)
    for row, (first, end) in zip(zip(*columns, strict=True), pairwise(bounds), strict=True):
        if session is None or row[:5] != peer:
            peer, session = row[:5], _session(*row[1:5])
        cluster, operation, resource_type = row[0], AclOperation[row[5]], ResourceType[row[6]]
        yield _Group(cluster, session, operation, resource_type, first, end)


_GROUPED: Final = (*PEER, "operation", "resource_type")

_NOWHERE: Final = "\ud800"
"""A host that no ACL can name: a lone surrogate cannot be encoded, and so is in no ACL."""


class Rules:
    """A set of rules in a worker. An authorizer is made when it is first asked, and kept.

    It is made of the ACLs of those who ask: a worker decides for few of a cluster's principals.
    """

    def __init__(self, by_cluster: Mapping[str, Ruleset]) -> None:
        self._by_cluster = dict(by_cluster)
        self._deciders: dict[str, _Decider] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_by_cluster": self._by_cluster, "_deciders": {}}

    def ruleset(self, cluster: str) -> Ruleset | None:
        """Return the rules of a cluster, if the set has any."""
        return self._by_cluster.get(cluster)

    def acls_met(self, cluster: str) -> Mapping[AclBinding, int]:
        """Return the ACLs of all who asked so far, with their positions in `Ruleset.acls`.

        Where resources without ACLs are open to everyone, they are all ACLs.
        """
        decider = self._decider(cluster)
        return {} if decider is None else decider.positions

    def answer(self, asked: _Asked, explain: bool) -> dict[str, pa.Array]:
        """Return the columns that `replay.decided` adds, without the set's name."""
        found: list[Decision | None] = []
        for group in asked.groups:
            decider = self._decider(group.cluster)
            names = asked.names[group.first : group.end]
            if decider is None:
                found += [None] * len(names)
            else:
                found += decider.decisions(group, names)
        allowed = [None if each is None else each.allowed for each in found]
        kinds = [None if each is None else each.kind.value for each in found]
        answers = pa.array(allowed, pa.bool_()), pa.array(kinds, pa.string())
        columns = dict(zip(DECISIONS, answers, strict=True))
        if explain:
            columns |= self._reasons(asked)
        return {name: column.take(asked.rows) for name, column in columns.items()}

    def _reasons(self, asked: _Asked) -> dict[str, pa.Array]:
        reasons: list[_Reasons] = []
        for group in asked.groups:
            decider = self._decider(group.cluster)
            for name in asked.names[group.first : group.end]:
                reasons.append(decider.acls_behind(group, name) if decider else (None, None, None))
        columns = zip(*reasons, strict=True) if reasons else ((), (), ())
        return {
            name: pa.array(column, pa.list_(pa.int32()))
            for name, column in zip(("allows", "denies", "on_resource"), columns, strict=True)
        }

    def _decider(self, cluster: str) -> _Decider | None:
        if cluster not in self._deciders and cluster in self._by_cluster:
            self._deciders[cluster] = _Decider(self._by_cluster[cluster])
        return self._deciders.get(cluster)


ShippedSets = Mapping[str, Rules]
"""Sets of rules by name, as they are in a worker."""


def _session(
    listener: str | None, principal: str | None, others: str | None, host: str | None
) -> Session:
    further = () if others is None else json.loads(others)
    address = _NOWHERE if host is None else host
    return Session((principal or "", *further), address, listener or "")


_Reasons = tuple[list[int] | None, list[int] | None, list[int] | None]


class _Decider:
    """The authorizer of one cluster, and where its ACLs stand in `Ruleset.acls`.

    ``positions`` has the ACLs that the authorizer knows. Those of a principal are added when it
    first asks, since to index an ACL takes longer than to decide by it. Where resources without
    ACLs are open to everyone, the ACLs of all principals count from the beginning.
    """

    def __init__(self, ruleset: Ruleset) -> None:
        self.authorizer: StandardAuthorizerData = replace(ruleset, acls=()).authorizer()
        self.positions: dict[AclBinding, int] = {}
        self._acls = ruleset.acls
        self._waiting: dict[str, list[int]] = {}
        for position, acl in enumerate(ruleset.acls):
            self._waiting.setdefault(acl.principal, []).append(position)
        is_open = ruleset.allow_everyone_if_no_acl_found
        self._meet([*self._waiting] if is_open else [WILDCARD_PRINCIPAL])

    def _meet(self, principals: Iterable[str]) -> None:
        for principal in principals:
            for position in self._waiting.pop(principal, ()):
                acl = self._acls[position]
                self.authorizer.index.add(acl)
                self.positions[acl] = position

    def decisions(self, group: _Group, names: Sequence[str | None]) -> list[Decision]:
        """Return the decision for each name."""
        session, operation, resource_type = group[1:4]
        self._meet(session.principals)
        found = self.authorizer.authorize(session, operation, resource_type, names)
        if ANY_RESOURCE in names and resource_type is ResourceType.TOPIC:
            any_topic = self._on_any_topic(session, operation)
            found = [
                any_topic if name == ANY_RESOURCE else decision
                for name, decision in zip(names, found, strict=True)
            ]
        return found

    def _on_any_topic(self, session: Session, operation: AclOperation) -> Decision:
        return self.authorizer.authorize_by_resource_type(session, operation, ResourceType.TOPIC)

    def acls_behind(self, group: _Group, name: str | None) -> _Reasons:
        """Return the positions of the ACLs that allow, that deny, and that are on the resource."""
        session, operation, resource_type = group[1:4]
        is_open = self.authorizer.allow_everyone_if_no_acl_found
        if name is None:
            return [], [], [] if is_open else None
        if name == ANY_RESOURCE and resource_type is ResourceType.TOPIC:
            # Other ACLs may decide the same; one is enough to tell why.
            decision = self._on_any_topic(session, operation)
            acl = decision.rule.binding
            behind = [] if acl is None else [self.positions[acl]]
            allowed, denied = (behind, []) if decision.allowed else ([], behind)
            return allowed, denied, [] if is_open else None
        index = self.authorizer.index
        allows: list[int] = []
        denies: list[int] = []
        # A session may name one principal twice, and its ACLs are then found twice.
        for acl in dict.fromkeys(index.bindings_for(session.peer, resource_type, name)):
            sources = GRANTED_BY if acl.permission is AclPermission.ALLOW else NAMED_BY
            if sources[operation] >> acl.operation & 1:
                found = allows if acl.permission is AclPermission.ALLOW else denies
                found.append(self.positions[acl])
        on_resource = None
        if is_open:
            matching = index.find(AclFilter(resource_type, name, PatternType.MATCH))
            on_resource = [self.positions[acl] for acl in matching]
        return allows, denies, on_resource
