"""Has the broker's own authorizer decide questions, those of one peer together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from aclbroker.acl.authorizer import ANY_RESOURCE, Decision, Session
from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.replay.any_topic import reasons_on_any_topic
from aclbroker.pipeline.replay.questions import PEER
from aclbroker.pipeline.replay.reasons import Reasons, reasons
from aclbroker.pipeline.usage.grouping import numbered, values


class Group(NamedTuple):
    """Questions of one peer about one operation and type: these rows, in their order."""

    cluster: str
    session: Session
    operation: AclOperation
    resource_type: ResourceType
    first: int
    end: int


class Grouped:
    """Questions, sorted so that those about the same but the name are together.

    They come as an `encoded` table with the columns of `questions.QUESTION`, whose ``host`` is null
    where no ACL names it. ``order`` has the rows of the table in that order, ``names`` the
    resources' names.
    """

    def __init__(self, table: pa.Table) -> None:
        numbers = numbered(table, _GROUPED)
        order = self.order = np.argsort(numbers, kind="stable")
        self.names = values(table["resource_name"].take(pa.array(order)))
        bounds = [*np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist(), len(order)]
        firsts = pa.array(order[bounds[:-1]])
        self.groups = list(_groups(table.select(_GROUPED).take(firsts), bounds))


def _groups(firsts: pa.Table, bounds: Sequence[int]) -> Iterator[Group]:
    peer, session = None, None
    columns = (values(firsts[name]) for name in _GROUPED)
    for row, (first, end) in zip(zip(*columns, strict=True), pairwise(bounds), strict=True):
        if session is None or row[:5] != peer:
            peer, session = row[:5], session_of(*row[1:5])
        cluster, operation, resource_type = row[0], AclOperation[row[5]], ResourceType[row[6]]
        yield Group(cluster, session, operation, resource_type, first, end)


_GROUPED: Final = (*PEER, "operation", "resource_type")

_NOWHERE: Final = "\ud800"
"""A host that no ACL can name: a lone surrogate cannot be encoded, and so is in no ACL."""


def session_of(
    listener: str | None, principal: str | None, others: str | None, host: str | None
) -> Session:
    """Return the session of a peer; ``others`` are its further principals as JSON, or None."""
    further = () if others is None else json.loads(others)
    address = _NOWHERE if host is None else host
    return Session((principal or "", *further), address, listener or "")


class Decider:
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

    def decisions(self, group: Group, names: Sequence[str | None]) -> list[Decision]:
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

    def acls_behind(self, group: Group, name: str | None) -> Reasons:
        """Return which ACLs are behind the decision on a name."""
        session, operation, resource_type = group[1:4]
        self._meet(session.principals)
        is_open = self.authorizer.allow_everyone_if_no_acl_found
        index = self.authorizer.index
        if name is None:
            return reasons([], [], [] if is_open else None)
        if name == ANY_RESOURCE and resource_type is ResourceType.TOPIC:
            return reasons_on_any_topic(
                index, self.positions, session.peer, operation, is_open=is_open
            )
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
        return reasons(allows, denies, on_resource)
