"""Explains why a request is allowed or refused: each decision, and the rule that made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from aclbroker.acl.authorizer import (
    Action,
    Authorizer,
    Decision,
    Position,
    RequestContext,
    Rule,
)
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.gate.topics_known import Topics


class Check(NamedTuple):
    """One decision: the question, whether it is allowed, and the rule or ACL that decided."""

    action: Action
    allowed: bool
    rule: Rule


class Explanation(NamedTuple):
    """The checks in the order in which they were made, and their outcome.

    ``allowed`` is the part of the request that passes. It is None if no part does; then ``refusal``
    is the answer.
    """

    checks: list[Check]
    allowed: Any
    refusal: Any


class _Notes:
    """An observer that notes every decision."""

    def __init__(self) -> None:
        self.checks: list[Check] = []

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        return (False, True)

    def position(self) -> Position | None:
        return None

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        *,
        log_if_denied: bool = True,
        acls: Position | None = None,
    ) -> None:
        for name, count, decision in decided:
            action = Action(operation, resource_type, name, True, log_if_denied, count)
            self.checks.append(Check(action, decision.allowed, decision.rule))


def explain(
    authorizer: Authorizer | None,
    context: RequestContext,
    request: Any,
    topics: Topics,
    profile: Profile = Profile.KAFKA,
) -> Explanation:
    """Check a request of ``context.api_key`` and return each step of the check.

    Raises KeyError for a key without a row; requests of such a key are not answered at all.
    """
    notes = _Notes()
    rights = RequestRights(GATE[context.api_key], context, authorizer, notes, profile)
    verdict = check(request, rights, topics)
    return Explanation(notes.checks, verdict.request, verdict.response)
