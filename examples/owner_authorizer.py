"""An authorizer of one's own: who is called like a resource's first word may do anything to it.

    authorizer.class.name=owner_authorizer:OwnerAuthorizer

With this file's folder in PYTHONPATH, User:payments owns every topic and group named payments-...;
for everybody else, and everything else, ACLs decide. broker.acl.authorizer.Authorizer is the whole
interface, for one that stands on nothing of the built-in authorizer.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.acl.authorizer import Action, Decision, RequestContext, Rule, RuleKind
from broker.standard_authorizer import StandardAuthorizer

OWNER = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))


class OwnerAuthorizer(StandardAuthorizer):
    """The built-in authorizer and one rule before it."""

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        """Allow the owner; leave the rest to the ACLs."""
        decisions = super().authorize(context, actions)
        return [
            OWNER if owns(context, action) else decision
            for action, decision in zip(actions, decisions, strict=True)
        ]


def owns(context: RequestContext, action: Action) -> bool:
    """Tell whether one of the session's principals is called like the resource's first word."""
    owner, dash, _ = (action.resource_name or "").partition("-")
    return bool(dash) and f"User:{owner}" in context.session.principals
