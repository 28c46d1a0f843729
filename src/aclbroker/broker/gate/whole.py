"""Decides whether a request may pass as a whole, by the names in it, without the message.

A request with a part that may not pass is none of this module's: the engine checks it, which
records each decision. So nothing is recorded here unless all is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import (
    Authorizer,
    Decision,
    DecisionsByName,
    RequestContext,
    Rule,
    RuleKind,
    Session,
    deciding_by_name,
)
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import Observer

Decisions = Mapping[str | None, Decision]
"""The decisions on an operation by resource name; another object after a change of them."""


class Right(NamedTuple):
    """An operation on resources of a type that a request needs."""

    operation: AclOperation
    resource_type: ResourceType


class _AllAllowed(dict[str | None, Decision]):
    """The decisions where there is no authorizer."""

    def __missing__(self, _name: str | None) -> Decision:
        return _ALLOWED


_ALLOWED: Final = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))
_ALL_ALLOWED: Final = _AllAllowed()


class WholeRights:
    """The rights of sessions by which requests pass as a whole.

    Without an ``authorizer`` everything is allowed, except for ``reserved`` topics.
    """

    __slots__ = ("_authorizer", "_observer", "reserved")

    def __init__(
        self,
        authorizer: DecisionsByName | None,
        observer: Observer,
        reserved: Collection[str],
    ) -> None:
        self._authorizer = authorizer
        self._observer = observer
        self.reserved = reserved

    @staticmethod
    def of(
        authorizer: Authorizer | None,
        observer: Observer,
        profile: Profile,
        reserved: Collection[str],
    ) -> WholeRights | None:
        """Return the rights by an authorizer; None if it cannot decide by names alone."""
        by_name = deciding_by_name(authorizer)
        if profile is not Profile.KAFKA or (authorizer is not None and by_name is None):
            return None
        return WholeRights(by_name, observer, reserved)

    def decisions(self, session: Session, right: Right) -> Decisions | None:
        """Return the decisions on a right by resource name; None if the engine must decide."""
        if self._authorizer is None:
            return _ALL_ALLOWED
        return self._authorizer.decisions(session, right[0], right[1])

    def allow(self, session: Session, right: Right, names: Sequence[str]) -> Decisions | None:
        """Return the decisions on a right if all the names are allowed, else None."""
        decisions = self.decisions(session, right)
        if decisions is None:
            return None
        for name in names:
            if not decisions[name].allowed:
                return None
        return decisions

    @property
    def records(self) -> bool:
        """Whether allowed decisions are recorded."""
        return self._authorizer is not None and True in self._observer.wanted(log_if_denied=True)

    def record(
        self,
        context: RequestContext,
        right: Right,
        names: Sequence[str],
        counts: Sequence[int],
        decisions: Decisions,
    ) -> None:
        """Record allowed decisions; each of ``counts`` says how often the request has a name."""
        decided = [
            (name, count, decisions[name]) for name, count in zip(names, counts, strict=True)
        ]
        self._observer.record(context, *right, decided, acls=self._observer.position())
