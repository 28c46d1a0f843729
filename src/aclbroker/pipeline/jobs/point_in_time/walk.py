"""The authorizer of a cluster, brought from position to position of its history."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import ANY_RESOURCE, Decision, Session
from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import GRANTED_BY, pairs
from aclbroker.pipeline.acls.history import AclHistory


class Asker(NamedTuple):
    """Who asks for what kind of thing: all of a question but the name."""

    session: Session
    operation: AclOperation
    resource_type: ResourceType


NONE: Final = -1
"""The number of no change."""


class Walk:
    """The ACLs of some principals as they were at a position, which only grows.

    Those of others do not matter to what these ask, unless resources without ACLs are open to all.
    ``granted`` has the number of the change that granted each ACL that is there.
    """

    def __init__(self, history: AclHistory, principals: Collection[str]) -> None:
        self._history = history
        self.is_open = history.rules.allow_everyone_if_no_acl_found
        self._numbers = [
            number
            for number, which in enumerate(history.which)
            if self.is_open or history.rules.acls[which].principal in principals
        ]
        self._next = 0
        self._authorizer: StandardAuthorizerData = replace(history.rules, acls=()).authorizer()
        self.granted: dict[AclBinding, int] = {}

    @property
    def upcoming(self) -> int | None:
        """The position of the next transaction that changes something, None if there is none."""
        if self._next == len(self._numbers):
            return None
        return self._history.positions[self._numbers[self._next]]

    def move(self, position: int) -> None:
        """Make all changes up to a position."""
        numbers, positions = self._numbers, self._history.positions
        while self._next < len(numbers) and positions[numbers[self._next]] <= position:
            self._make(numbers[self._next])
            self._next += 1

    def step(self) -> set[str]:
        """Make the changes of the next transaction; return of whose ACLs they are."""
        position = self.upcoming
        assert position is not None  # noqa: S101 - the caller has looked
        first = self._next
        self.move(position)
        changed = self._numbers[first : self._next]
        return {self._history.acl(number).principal for number in changed}

    def _make(self, number: int) -> None:
        acl = self._history.acl(number)
        if self._history.removed[number]:
            self._authorizer.index.remove(acl)
            self.granted.pop(acl, None)
        else:
            self._authorizer.index.add(acl)
            # To add what is there changes nothing.
            self.granted.setdefault(acl, number)

    def decide(self, asker: Asker, name: str | None) -> Decision:
        """Decide by the ACLs of the position."""
        session, operation, resource_type = asker
        if name == ANY_RESOURCE and resource_type is ResourceType.TOPIC:
            return self._authorizer.authorize_by_resource_type(session, operation, resource_type)
        return self._authorizer.decisions(session, operation, resource_type)[name]

    def grant_of(self, decision: Decision) -> int:
        """Return the number of the change that granted the ACL that decided, or `NONE`."""
        acl = decision.rule.binding
        return NONE if acl is None else self.granted.get(acl, NONE)


_Changes = tuple[list[int], list[int]]
"""The numbers of the changes that granted some ACLs, and of those that revoked them, in order."""


class Allowing:
    """Which ACLs would allow askers something, of all there ever were, and when they were there."""

    def __init__(
        self, history: AclHistory, principals: Collection[str], askers: Sequence[Asker]
    ) -> None:
        self._askers = askers
        self._positions = history.positions
        self._index = AclIndex(cidr=history.rules.cidr)
        self._grants: dict[AclBinding, list[int]] = {}
        self._revocations: dict[AclBinding, list[int]] = {}
        self._known: dict[tuple[int, str | None], _Changes] = {}
        # Very many names have the same ACLs, and one of these can have been changed very often.
        self._by_acls: dict[frozenset[AclBinding], _Changes] = {}
        there: set[AclBinding] = set()
        for number in range(len(history)):
            acl = history.acl(number)
            if acl.permission is not AclPermission.ALLOW or acl.principal not in principals:
                continue
            if history.removed[number]:
                if acl in there:
                    there.discard(acl)
                    self._revocations.setdefault(acl, []).append(number)
            elif acl not in there:
                there.add(acl)
                self._index.add(acl)
                self._grants.setdefault(acl, []).append(number)

    def around(self, number: int, name: str | None, first: int, last: int) -> tuple[int, int]:
        """Return which change revoked the last ACL that would allow an asker something.

        And which one grants the next. That is up to the position ``first``, and after ``last``;
        `NONE` if there is no such change. ``number`` is that of the asker.
        """
        granted, revoked = self._changes(number, name)
        before = bisect_right(revoked, first, key=self._positions.__getitem__)
        after = bisect_right(granted, last, key=self._positions.__getitem__)
        return (
            revoked[before - 1] if before else NONE,
            granted[after] if after < len(granted) else NONE,
        )

    def _changes(self, number: int, name: str | None) -> _Changes:
        key = number, name
        found = self._known.get(key)
        if found is None:
            acls = frozenset(self._allowing(self._askers[number], name))
            found = self._by_acls.get(acls)
            if found is None:
                found = self._by_acls[acls] = (
                    sorted(number for acl in acls for number in self._grants[acl]),
                    sorted(number for acl in acls for number in self._revocations.get(acl, ())),
                )
            self._known[key] = found
        return found

    def _allowing(self, asker: Asker, name: str | None) -> Iterator[AclBinding]:
        session, operation, resource_type = asker
        if name is None:
            return
        if name == ANY_RESOURCE and resource_type is ResourceType.TOPIC:
            acls = self._of_any(session, resource_type)
        else:
            acls = self._index.bindings_for(session.peer, resource_type, name)
        for acl in dict.fromkeys(acls):
            if GRANTED_BY[operation] >> acl.operation & 1:
                yield acl

    def _of_any(self, session: Session, resource_type: ResourceType) -> Iterator[AclBinding]:
        for permissions in self._index.rights(session.peer, resource_type).permissions:
            who = permissions.principal, permissions.host
            for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
                for name, bits in permissions.of_type(pattern_type).items():
                    for pair in pairs(bits):
                        yield AclBinding(resource_type, name, pattern_type, *who, *pair)


def principals_of(sessions: Collection[Session]) -> set[str]:
    """Return whose ACLs can matter to some sessions."""
    return {WILDCARD_PRINCIPAL}.union(*(each.principals for each in sessions))
