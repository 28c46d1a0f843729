"""The rules of Kafka's StandardAuthorizer: an action is decided by the first of these that applies.

1. A super user is allowed.
2. An ACL that matches principal, host, resource and operation denies: denied.
3. Such an ACL allows, if only by implication (READ implies DESCRIBE and so on): allowed.
4. No ACL for anybody has a pattern that matches the resource, and the default for this is to
   allow: allowed.
5. Denied.

A session may have several principals: it is a super user if one is, and any ACL of any of them
counts. ACLs of ``User:*`` count for everyone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Final

from broker.acl.authorizer import Action, Decision, Rule, RuleKind, Session
from broker.acl.bindings import AclBinding, AclOperation, AclPermission, ResourceType
from broker.acl.by_type import deciding_pattern
from broker.acl.index import AclIndex
from broker.acl.operations import GRANTED_BY, NAMED_BY, bit_field, supported_operations

_SUPER_USER: Final = Decision(True, Rule(RuleKind.SUPER_USER))
_DEFAULT_ALLOW: Final = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))
_DEFAULT_DENY: Final = Decision(False, Rule(RuleKind.DEFAULT_DENY))

_ALLOW: Final = AclPermission.ALLOW
_DENY: Final = AclPermission.DENY

_ANY_NAME: Final = "hardcode"
"""The name that Kafka asks about first to decide on any resource of a type."""


class AclAuthorizer:
    """Decides over the ACLs of an index. ``super_users`` are principals, written ``Type:name``."""

    def __init__(
        self,
        index: AclIndex,
        super_users: Collection[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        self.index = index
        self.super_users = frozenset(super_users)
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found

    def decide(self, session: Session, action: Action) -> Decision:
        """Decide one action."""
        operation, resource_type, name = action[:3]
        if name is None:
            return _DEFAULT_DENY
        if not self.super_users.isdisjoint(session.principals):
            return _SUPER_USER
        allowed, denied, found = self.index.masks(
            session.principals, session.address, resource_type, name
        )
        if denied & NAMED_BY[operation]:
            return Decision(False, partial(self._acl_rule, session, action, name, _DENY))
        if allowed & GRANTED_BY[operation]:
            return Decision(True, partial(self._acl_rule, session, action, name, _ALLOW))
        return self._default(operation, resource_type, found)

    def authorize(
        self,
        session: Session,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Sequence[str | None],
    ) -> list[Decision]:
        """Decide the operation on the resource of each name, in order."""
        return [self.decide(session, Action(operation, resource_type, name)) for name in names]

    def _default(
        self, operation: AclOperation, resource_type: ResourceType, found: bool
    ) -> Decision:
        # UNKNOWN and ANY are no actions: no default may allow them.
        if found or operation <= AclOperation.ANY or resource_type <= ResourceType.ANY:
            return _DEFAULT_DENY
        return _DEFAULT_ALLOW if self.allow_everyone_if_no_acl_found else _DEFAULT_DENY

    def authorize_by_resource_type(
        self, session: Session, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the operation is allowed on at least one resource of a type (KIP-679).

        As in Kafka, who may do it on a resource of some arbitrary name may. Raises ValueError for
        an operation or type that is UNKNOWN or ANY.
        """
        if operation <= AclOperation.ANY or resource_type <= ResourceType.ANY:
            raise ValueError(f"{operation.name} on {resource_type.name} is no action")
        decision = self.decide(session, Action(operation, resource_type, _ANY_NAME))
        if decision.allowed:
            return decision
        who = (session.principals, session.address, resource_type)
        allowed, pattern = deciding_pattern(self.index.patterns(*who), operation)
        if pattern is None:
            return _DEFAULT_DENY
        permission = _ALLOW if allowed else _DENY
        bindings = (
            binding
            for binding in self.index.bindings_for(*who, pattern[1])
            if (binding.pattern_type, binding.resource_name) == pattern
        )
        deciding = _deciding(bindings, operation, permission, NAMED_BY[operation])
        return Decision(allowed, Rule(RuleKind.MATCHING_ACL, deciding))

    def authorized_operations(
        self, session: Session, resource_type: ResourceType, name: str
    ) -> int:
        """Return the allowed ones among the operations of the type, as KIP-430's bit field.

        Raises ValueError for a type that is UNKNOWN or ANY.
        """
        operations = supported_operations(resource_type)
        if not self.super_users.isdisjoint(session.principals):
            return bit_field(operations)
        allowed, denied, found = self.index.masks(
            session.principals, session.address, resource_type, name
        )
        by_default = not found and self.allow_everyone_if_no_acl_found
        return bit_field(
            operation
            for operation in operations
            if by_default or (allowed & GRANTED_BY[operation] and not denied & NAMED_BY[operation])
        )

    def _acl_rule(
        self, session: Session, action: Action, name: str, permission: AclPermission
    ) -> Rule:
        sources = GRANTED_BY if permission is _ALLOW else NAMED_BY
        bindings = self.index.bindings_for(
            session.principals, session.address, action.resource_type, name
        )
        deciding = _deciding(bindings, action.operation, permission, sources[action.operation])
        return Rule(RuleKind.MATCHING_ACL, deciding)


def _deciding(
    bindings: Iterable[AclBinding], operation: AclOperation, permission: AclPermission, sources: int
) -> AclBinding | None:
    """Return the first ACL of the operation itself, else the first of the other sources."""
    other = None
    for binding in bindings:
        if binding.permission == permission and sources >> binding.operation & 1:
            if binding.operation == operation:
                return binding
            other = other or binding
    return other
