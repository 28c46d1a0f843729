"""An authorizer of one's own: who is called like a resource's first word may do anything to it.

    authorizer.class.name=owner_authorizer:OwnerAuthorizer

With this file's folder in PYTHONPATH, User:payments owns every topic and group named payments-...;
for everybody else, and everything else, ACLs decide. aclbroker.Authorizer is the whole
interface, for one that stands on nothing of the built-in authorizer.
"""

from __future__ import annotations

from collections.abc import Sequence

from aclbroker import (
    AclOperation,
    Decision,
    RequestContext,
    ResourceType,
    Rule,
    RuleKind,
    StandardAuthorizer,
)

OWNER = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))


class OwnerAuthorizer(StandardAuthorizer):
    """The built-in authorizer and one rule before it."""

    def authorize(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Sequence[str | None],
    ) -> list[Decision]:
        """Allow the owner; leave the rest to the ACLs."""
        decisions = super().authorize(context, operation, resource_type, names)
        return [
            OWNER if owns(context, name) else decision
            for name, decision in zip(names, decisions, strict=True)
        ]


def owns(context: RequestContext, name: str | None) -> bool:
    """Tell whether one of the session's principals is called like the resource's first word."""
    owner, dash, _ = (name or "").partition("-")
    return bool(dash) and f"User:{owner}" in context.session.principals
