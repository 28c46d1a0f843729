"""The rules of Kafka's StandardAuthorizer: an action is decided by the first of these that applies.

1. A super user is allowed, and a broker's user on the listener of the brokers.
2. An ACL that matches principal, host, resource and operation denies: denied.
3. Such an ACL allows, if only by implication (READ implies DESCRIBE and so on): allowed.
4. No ACL for anybody has a pattern that matches the resource, and the default for this is to
   allow: allowed.
5. Denied.

A session may have several principals: it is a super user if one is, and any ACL of any of them
counts. ACLs of ``User:*`` count for everyone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import Action, Decision, Peer, Rule, RuleKind, Session
from aclbroker.acl.bindings import (
    ALLOW,
    ANY_OPERATION,
    ANY_TYPE,
    DENY,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.acl.by_type import deciding_pattern
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import (
    DENIED_SHIFT,
    GRANTED_BY,
    NAMED_BY,
    bit_field,
    effective,
    supported_operations,
)
from aclbroker.acl.rights import PeerRights

_SUPER_USER: Final = Decision(True, Rule(RuleKind.SUPER_USER))
_DEFAULT_ALLOW: Final = Decision(True, Rule(RuleKind.DEFAULT_ALLOW))
_DEFAULT_DENY: Final = Decision(False, Rule(RuleKind.DEFAULT_DENY))


_BY_TYPE: Final = "by type"
_LONGEST_REMEMBERED: Final = 249
"""The length of the longest topic name; decisions on longer names are not remembered."""

ANY_NAME: Final = "hardcode"
"""The name that Kafka asks about first to decide on any resource of a type."""


class BrokerUsers(NamedTuple):
    """Principals who may do everything on one listener, and on others what ACLs say.

    This is Confluent's ``broker.users``, which lets a cluster start whose ACLs are kept in another.
    """

    principals: frozenset[str] = frozenset()
    listener: str = ""


class StandardAuthorizerData:
    """What Kafka's class of this name is: the ACLs and the settings that decide, and the rules.

    ``super_users`` are principals, written ``Type:name``.
    """

    def __init__(
        self,
        index: AclIndex,
        super_users: Collection[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
        broker_users: BrokerUsers | None = None,
    ) -> None:
        self.index = index
        self._broker_users = broker_users if broker_users and broker_users.principals else None
        self.super_users = frozenset(super_users)
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found

    def decide(self, session: Session, action: Action) -> Decision:
        """Decide one action."""
        return self.decisions(session, action[0], action[1])[action[2]]

    def authorize(
        self,
        session: Session,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str | None],
    ) -> list[Decision]:
        """Decide the operation on the resource of each name, in order."""
        decisions = self.decisions(session, operation, resource_type)
        return [decisions[name] for name in names]

    def decisions(
        self, session: Session, operation: AclOperation, resource_type: ResourceType
    ) -> Mapping[str | None, Decision]:
        """Return the decisions on an operation by resource name; a name is decided when asked for.

        Ask for it again after each change of the ACLs.
        """
        if self._broker_users is not None and self._is_broker(session):
            return _ALL_ALLOWED
        rights = self.index.rights(session.peer, resource_type)
        decisions: Mapping[str | None, Decision] | None = rights.answers.get(operation)
        if decisions is None:
            decisions = (
                _ALL_ALLOWED
                if self.is_super_user(session.peer)
                else _Decisions(self, rights, session.peer, operation, resource_type)
            )
            rights.answers[operation] = decisions
        return decisions

    def authorize_by_resource_type(
        self, session: Session, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the operation is allowed on at least one resource of a type (KIP-679).

        As in Kafka it is, too, if it is allowed on a resource of one arbitrary name. With very many
        ACLs of the peer others have their turns meanwhile; what they change does not count. Raises
        ValueError for an operation or type that is UNKNOWN or ANY.
        """
        if operation <= ANY_OPERATION or resource_type <= ANY_TYPE:
            raise ValueError(f"{operation.name} on {resource_type.name} is no action")
        decision = self.decisions(session, operation, resource_type)[ANY_NAME]
        if decision.allowed:
            return decision
        rights = self.index.rights(session.peer, resource_type)
        key = (_BY_TYPE, operation)
        known: Decision | None = rights.answers.get(key)
        if known is None:
            known = self._decide_by_type(rights, session.peer, operation, resource_type)
            # If ACLs of the peer have changed meanwhile, nobody finds it there.
            rights.answers[key] = known
        return known

    def _decide_by_type(
        self, rights: PeerRights, peer: Peer, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        allowed, pattern = deciding_pattern(rights, operation)
        if pattern is None:
            return _DEFAULT_DENY
        bindings = (
            binding
            for binding in self.index.bindings_for(peer, resource_type, pattern[1])
            if (binding.pattern_type, binding.resource_name) == pattern
        )
        permission = ALLOW if allowed else DENY
        deciding = _deciding(bindings, operation, permission, NAMED_BY[operation])
        return Decision(allowed, Rule(RuleKind.MATCHING_ACL, deciding))

    def authorized_operations(
        self, session: Session, resource_type: ResourceType, name: str
    ) -> int:
        """Return the allowed ones among the operations of the type, as KIP-430's bit field.

        Raises ValueError for a type that is UNKNOWN or ANY.
        """
        operations = supported_operations(resource_type)
        if self.is_super_user(session.peer) or self._is_broker(session):
            return bit_field(operations)
        found = self.index.rights(session.peer, resource_type).bits(name)
        if not found and self.is_open(resource_type, name):
            return bit_field(operations)
        return effective(resource_type, found)

    def is_super_user(self, peer: Peer) -> bool:
        """Tell whether one of the peer's principals is a super user."""
        return not self.super_users.isdisjoint(peer[0])

    def _is_broker(self, session: Session) -> bool:
        """Tell whether it is a session of a broker's user on the listener of brokers."""
        users = self._broker_users
        return (
            users is not None
            and session.listener == users.listener
            and not users.principals.isdisjoint(session.principals)
        )

    def is_open(self, resource_type: ResourceType, name: str) -> bool:
        """Tell whether a resource is open to everyone because it has no ACL."""
        return self.allow_everyone_if_no_acl_found and not self.index.has_match(resource_type, name)


class _AllAllowed(dict[str | None, Decision]):
    """The decisions for a super user: everything is allowed except a null name."""

    def __missing__(self, name: str | None) -> Decision:
        return _DEFAULT_DENY if name is None else _SUPER_USER


_ALL_ALLOWED: Final = _AllAllowed()


class _Asked(NamedTuple):
    """What decisions are about. A decision keeps this, and not the others that it stands among."""

    acls: AclIndex
    peer: Peer
    operation: AclOperation
    resource_type: ResourceType


class _Decisions(dict[str | None, Decision]):
    """The decisions on one operation for a peer, by name: made when asked for, then remembered.

    They are kept in `PeerRights.answers`, and so forgotten when the peer's ACLs change. Decisions
    by default, which ACLs of other principals can change, are not remembered, nor those on names
    that are longer than any topic's.
    """

    __slots__ = ("_asked", "_data", "_denied_by", "_granted_by", "_rights")

    def __init__(
        self,
        data: StandardAuthorizerData,
        rights: PeerRights,
        peer: Peer,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> None:
        super().__init__()
        self._data = data
        self._rights = rights
        self._asked = _Asked(data.index, peer, operation, resource_type)
        self._denied_by = NAMED_BY[operation] << DENIED_SHIFT
        self._granted_by = GRANTED_BY[operation]

    def __missing__(self, name: str | None) -> Decision:
        if name is None:
            return _DEFAULT_DENY
        found = self._rights.bits(name)
        if found & self._denied_by:
            decision = Decision(False, partial(_rule, self._asked, name, DENY))
        elif found & self._granted_by:
            decision = Decision(True, partial(_rule, self._asked, name, ALLOW))
        elif found or not self._data.allow_everyone_if_no_acl_found:
            decision = _DEFAULT_DENY
        else:
            return self._default(name)
        if (size := len(name)) <= _LONGEST_REMEMBERED:
            self[name] = decision
            self._rights.remembered(size)
        return decision

    def _default(self, name: str) -> Decision:
        """Decide on a name that no ACL of the peer matches."""
        # UNKNOWN and ANY are no actions: no default may allow them.
        _, _, operation, resource_type = self._asked
        is_action = operation > ANY_OPERATION and resource_type > ANY_TYPE
        if is_action and self._data.is_open(resource_type, name):
            return _DEFAULT_ALLOW
        return _DEFAULT_DENY


def _rule(asked: _Asked, name: str, permission: AclPermission) -> Rule:
    """Return the rule that decided; it is not kept, as an ACL is made anew for it."""
    acls, peer, operation, resource_type = asked
    sources = (GRANTED_BY if permission is ALLOW else NAMED_BY)[operation]
    bindings = acls.bindings_for(peer, resource_type, name)
    return Rule(RuleKind.MATCHING_ACL, _deciding(bindings, operation, permission, sources))


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
