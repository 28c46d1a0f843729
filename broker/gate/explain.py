"""Why a request is answered as it is: each check that the gate made, and what decided it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from aclbroker.broker.acl.authorizer import Action, Authorizer, Decision, RequestContext, Rule
from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.gate.topics_known import Topics


class Check(NamedTuple):
    """One decision: what was asked, whether it is allowed, and the rule or ACL that decided."""

    action: Action
    allowed: bool
    rule: Rule


class Explanation(NamedTuple):
    """The checks in the order in which they were made; what may be answered, and the refusal.

    ``allowed`` is the request or the part of it that passes, None if nothing does; then ``refusal``
    is the whole answer.
    """

    checks: list[Check]
    allowed: Any
    refusal: Any


class _Notes:
    """Takes note of every decision."""

    def __init__(self) -> None:
        self.checks: list[Check] = []

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        return (False, True)

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        *,
        log_if_denied: bool = True,
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
    """Hold a request of ``context.api_key`` against the gate, and tell each step.

    Raises KeyError for a key that the gate does not know: such a request is not answered at all.
    """
    notes = _Notes()
    rights = RequestRights(GATE[context.api_key], context, authorizer, notes, profile)
    verdict = check(request, rights, topics)
    return Explanation(notes.checks, verdict.request, verdict.response)
