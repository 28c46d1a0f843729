"""The least that principals need to go on with what they did: ACLs on single resources.

A grant lies within what one of the current ALLOWs allows, or, where resources without any ACL are
open to everyone, on one of these. So it opens nothing to anybody, in whatever session: where the
rules allow something from one host alone, or to one principal of a session alone, so does the
grant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset

Principals = tuple[str, ...]

LISTENER: Final = "any"
"""Sessions need a listener, which ACLs do not look at."""

FOR_EVERYONE: Final = f"an ACL of {WILDCARD_PRINCIPAL} would hold for everyone"
_FOR_OTHERS: Final = "an ACL of * would hold for other names that begin so, which are closed"
NOT_ALLOWED: Final = "the current rules do not allow it"


class SessionUse(NamedTuple):
    """What a session did: one operation on resources of one type.

    ``host`` None is any host that no ACL names. Of topics a name may be `ANY_RESOURCE`: then it
    asked whether it may do so on any topic.
    """

    principals: Principals
    host: str | None
    operation: AclOperation
    resource_type: ResourceType
    names: Sequence[str]


class Grantee(NamedTuple):
    """Whom ACLs of one resource type name."""

    principal: str
    host: str
    resource_type: ResourceType


class Unmet(NamedTuple):
    """A use that no ACL is recommended for, and why."""

    principals: Principals
    host: str | None
    operation: AclOperation
    resource_type: ResourceType
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class NeededGrants:
    """ALLOW ACLs by whom they name: the operations of each name, as bits (1 << operation).

    ``unmet`` are the uses that they do not allow.
    """

    literal: dict[Grantee, dict[str, int]] = field(default_factory=dict)
    prefixed: dict[Grantee, dict[str, int]] = field(default_factory=dict)
    unmet: list[Unmet] = field(default_factory=list)

    def has(self, acl: AclBinding) -> bool:
        """Tell whether an ACL is among them."""
        granted = self.prefixed if acl.pattern_type is PatternType.PREFIXED else self.literal
        names = granted.get(Grantee(acl.principal, acl.host, acl.resource_type), {})
        return bool(names.get(acl.resource_name, 0) >> acl.operation & 1)

    def by_pattern_type(self) -> Iterator[tuple[PatternType, dict[Grantee, dict[str, int]]]]:
        """Yield the operations of each name for both types of patterns."""
        yield PatternType.LITERAL, self.literal
        yield PatternType.PREFIXED, self.prefixed

    def bindings(self) -> Iterator[AclBinding]:
        """Return the ACLs."""
        for pattern_type, granted in self.by_pattern_type():
            for grantee, names in granted.items():
                for name, bits in names.items():
                    for operation in operations_of(bits):
                        yield allowing(grantee, name, operation, pattern_type)


def allowing(
    grantee: Grantee,
    name: str,
    operation: AclOperation,
    pattern_type: PatternType = PatternType.LITERAL,
) -> AclBinding:
    """Return the ACL that allows an operation to a grantee."""
    return AclBinding(
        grantee.resource_type,
        name,
        pattern_type,
        grantee.principal,
        grantee.host,
        operation,
        AclPermission.ALLOW,
    )


@lru_cache(maxsize=4096)
def operations_of(bits: int) -> tuple[AclOperation, ...]:
    """Return the operations of a set of bits."""
    return tuple(operation for operation in AclOperation if bits >> operation & 1)


@lru_cache(maxsize=4096)
def effective(bits: int) -> int:
    """Return all operations that ACLs of these operations allow, implications included."""
    return sum(1 << operation for operation in AclOperation if bits & GRANTED_BY[operation])


@lru_cache(maxsize=4096)
def fewest(bits: int) -> int:
    """Return the fewest operations whose ACLs allow all of these: what others imply goes."""
    for operation in operations_of(bits):
        without = bits & ~(1 << operation)
        if effective(without) >> operation & 1:
            bits = without
    return bits


def possible(uses: Iterable[SessionUse], rules: Ruleset | None) -> NeededGrants:
    """Return the ACLs on single resources of which some are to allow the uses.

    ``rules``: those that allow the uses now; None if they are not known, and then nothing limits
    the grants.

    For each use there is one for each principal of the session to whom the rules allow it by an ACL
    of theirs; what an ACL allows to everybody, for the first principal. A resource whose name is
    ``*``, as a group's may be, gets a PREFIXED ACL: LITERAL ``*`` is every resource.
    """
    granting = _Granting(rules)
    for use in uses:
        granting.take(use)
    return granting.grants


class _Granting:
    """Finds the grants for each use."""

    def __init__(self, rules: Ruleset | None) -> None:
        self.grants = NeededGrants()
        self._authorizer = None
        if rules is not None:
            # Otherwise a super user would seem to have ACLs that allow everything.
            plain = replace(rules, super_users=frozenset(), broker_users=BrokerUsers())
            self._authorizer = plain.authorizer()
        acls = () if rules is None else rules.acls
        self._nowhere = no_host_of(acls)
        self._starred = {acl.resource_type for acl in acls if acl.resource_name[0] == WILDCARD}

    def take(self, use: SessionUse) -> None:
        """Grant what may allow a use, or take note of why nothing does."""
        grantee = Grantee(use.principals[0], WILDCARD, use.resource_type)
        is_alone = len(use.principals) == 1 or self._authorizer is None
        # Mostly the rules allow it to the first principal from anywhere, which one question tells.
        for name, is_allowed in zip(use.names, self._allowed_from_anywhere(use), strict=True):
            if is_allowed and is_alone:
                self._refuse(use, name, self._grant(use, name, grantee))
                continue
            grantees = self._by_acls(use, name)
            if is_allowed and not grantees:
                # There is no ACL on it at all, and so it is open to everyone.
                grantees = [grantee]
            reasons = [self._grant(use, name, each) for each in grantees]
            if not reasons:
                is_anyone = use.principals[0] == WILDCARD_PRINCIPAL
                reasons = [FOR_EVERYONE if is_anyone else NOT_ALLOWED]
            if all(reasons):
                self._refuse(use, name, reasons[0])

    def _allowed_from_anywhere(self, use: SessionUse) -> list[bool]:
        first = use.principals[0]
        if self._authorizer is None or first == WILDCARD_PRINCIPAL:
            return [first != WILDCARD_PRINCIPAL] * len(use.names)
        # Whatever is allowed to a host that no ACL names, an ACL on every host allows.
        session = Session((first,), self._nowhere, LISTENER)
        decisions = self._authorizer.authorize(session, use.operation, use.resource_type, use.names)
        return [decision.allowed for decision in decisions]

    def _by_acls(self, use: SessionUse, name: str) -> list[Grantee]:
        """Return whom current ACLs allow it; from everywhere, if they allow it so."""
        if self._authorizer is None:
            return []
        host = self._nowhere if use.host is None else use.host
        session = Session(use.principals, host, LISTENER)
        hosts: dict[str, set[str]] = {}
        for acl in self._authorizer.index.bindings_for(session.peer, use.resource_type, name):
            if acl.permission is AclPermission.ALLOW and (
                GRANTED_BY[use.operation] >> acl.operation & 1
            ):
                hosts.setdefault(granted_to(acl, use.principals), set()).add(acl.host)
        hosts.pop(WILDCARD_PRINCIPAL, None)
        return [
            Grantee(principal, each, use.resource_type)
            for principal, its in hosts.items()
            for each in ({WILDCARD} if WILDCARD in its else its)
        ]

    def _grant(self, use: SessionUse, name: str, grantee: Grantee) -> str | None:
        """Grant a use on a name; or return why that cannot be."""
        is_any = name == WILDCARD
        if is_any and self._opens_others(use.resource_type):
            return _FOR_OTHERS
        pattern_type = PatternType.PREFIXED if is_any else PatternType.LITERAL
        reason = invalid_reason(allowing(grantee, name, use.operation, pattern_type))
        if reason is None:
            granted = self.grants.prefixed if is_any else self.grants.literal
            names = granted.setdefault(grantee, {})
            names[name] = names.get(name, 0) | 1 << use.operation
        return reason

    def _opens_others(self, resource_type: ResourceType) -> bool:
        """Tell whether names that begin with ``*`` are closed, where ``*`` is open to everyone."""
        if self._authorizer is None or resource_type not in self._starred:
            return False
        return not self._authorizer.index.has_match(resource_type, WILDCARD)

    def _refuse(self, use: SessionUse, name: str, reason: str | None) -> None:
        if reason is not None:
            self.grants.unmet.append(Unmet(*use[:4], name, reason))


def granted_to(acl: AclBinding, principals: Principals) -> str:
    """Return to whom a grant in place of an ACL is; what is everybody's, to the first principal."""
    return principals[0] if acl.principal == WILDCARD_PRINCIPAL else acl.principal


def no_host_of(acls: Iterable[AclBinding]) -> str:
    """Return a host that none of some ACLs names."""
    return "-" * (1 + max((len(acl.host) for acl in acls), default=0))


def bound_to_hosts(grants: NeededGrants, hosts: Mapping[str, Collection[str]]) -> NeededGrants:
    """Return the same grants, but from some hosts alone to those principals that have ``hosts``.

    Grants that name a host already stay as they are. The hosts are addresses in canonical form;
    IPv6 ones are written as Kafka compares them, which our broker understands too.
    """
    texts = {who: sorted({as_java(host) for host in theirs}) for who, theirs in hosts.items()}

    def bound(granted: dict[Grantee, dict[str, int]]) -> dict[Grantee, dict[str, int]]:
        found: dict[Grantee, dict[str, int]] = {}
        for grantee, names in granted.items():
            is_free = grantee.host == WILDCARD
            for host in texts.get(grantee.principal, [WILDCARD]) if is_free else [grantee.host]:
                here = found.setdefault(grantee._replace(host=host), {})
                for name, bits in names.items():
                    here[name] = here.get(name, 0) | bits
        return found

    return minimized(NeededGrants(bound(grants.literal), bound(grants.prefixed), grants.unmet))


def as_java(host: str) -> str:
    """What Java prints for an address: IPv6 with all groups, without leading zeros."""
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def minimized(grants: NeededGrants) -> NeededGrants:
    """Return the grants without the operations of a name that others of the same name imply."""

    def least(granted: dict[Grantee, dict[str, int]]) -> dict[Grantee, dict[str, int]]:
        return {
            grantee: {name: fewest(bits) for name, bits in names.items()}
            for grantee, names in granted.items()
        }

    return NeededGrants(least(grants.literal), least(grants.prefixed), grants.unmet)
