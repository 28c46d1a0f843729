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

from aclbroker.broker.acl.authorizer import Session
from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.broker.acl.decisions import BrokerUsers
from aclbroker.broker.acl.hosts import subnet
from aclbroker.broker.acl.operations import GRANTED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset

Principals = tuple[str, ...]

LISTENER: Final = "any"
"""Sessions need a listener, which ACLs do not look at."""

_FOR_EVERYONE: Final = f"an ACL of {WILDCARD_PRINCIPAL} would hold for everyone"
_FOR_OTHERS: Final = "an ACL of * would hold for other names that begin so, which are closed"
_NOT_ALLOWED: Final = "the current rules do not allow it"


class SessionUse(NamedTuple):
    """What a session did: one operation on resources of one type.

    ``host`` None is any host that no ACL names.
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

    def bindings(self) -> Iterator[AclBinding]:
        """Return the ACLs."""
        for pattern_type, granted in (
            (PatternType.LITERAL, self.literal),
            (PatternType.PREFIXED, self.prefixed),
        ):
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


def needed(uses: Iterable[SessionUse], rules: Ruleset | None) -> NeededGrants:
    """Return few ACLs on single resources that allow the uses.

    ``rules``: those that allow the uses now; None if they are not known, and then nothing limits
    the grants.

    The ACL is for the first principal of a session if the rules allow it to that one by itself, and
    else for the one to which they do, such as a group. A resource whose name is ``*``, as a group's
    may be, gets a PREFIXED ACL: LITERAL ``*`` is every resource.
    """
    granting = _Granting(rules)
    for use in uses:
        granting.take(use)
    return minimized(granting.grants)


class _Granting:
    """Finds the grant for each use."""

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
        """Grant what allows a use, or take note of why nothing does."""
        grantee = Grantee(use.principals[0], WILDCARD, use.resource_type)
        # Mostly the rules allow it to the first principal from anywhere, which one question tells.
        for name, is_allowed in zip(use.names, self._allowed_from_anywhere(use), strict=True):
            self._grant(use, name, grantee if is_allowed else self._narrowed(use, name))

    def _allowed_from_anywhere(self, use: SessionUse) -> list[bool]:
        first = use.principals[0]
        if self._authorizer is None or first == WILDCARD_PRINCIPAL:
            return [first != WILDCARD_PRINCIPAL] * len(use.names)
        # Whatever is allowed to a host that no ACL names, an ACL on every host allows.
        session = Session((first,), self._nowhere, LISTENER)
        decisions = self._authorizer.authorize(session, use.operation, use.resource_type, use.names)
        return [decision.allowed for decision in decisions]

    def _narrowed(self, use: SessionUse, name: str) -> Grantee | None:
        """Return whom a current ACL allows it, if possible the first principal; None if nobody."""
        if self._authorizer is None:
            return None
        host = self._nowhere if use.host is None else use.host
        session = Session(use.principals, host, LISTENER)
        found = self._authorizer.index.bindings_for(session.peer, use.resource_type, name)
        first = use.principals[0]
        grantees = {
            Grantee(
                first if acl.principal == WILDCARD_PRINCIPAL else acl.principal,
                acl.host,
                use.resource_type,
            )
            for acl in found
            if acl.permission is AclPermission.ALLOW
            and GRANTED_BY[use.operation] >> acl.operation & 1
        }
        return min(
            (each for each in grantees if each.principal != WILDCARD_PRINCIPAL),
            key=lambda each: (each.principal != first, *_narrowness(each.host), each),
            default=None,
        )

    def _grant(self, use: SessionUse, name: str, grantee: Grantee | None) -> None:
        if grantee is None:
            is_anyone = use.principals[0] == WILDCARD_PRINCIPAL
            self._refuse(use, name, _FOR_EVERYONE if is_anyone else _NOT_ALLOWED)
            return
        is_any = name == WILDCARD
        pattern_type = PatternType.PREFIXED if is_any else PatternType.LITERAL
        reason = invalid_reason(allowing(grantee, name, use.operation, pattern_type))
        if is_any and self._opens_others(use.resource_type):
            reason = _FOR_OTHERS
        if reason is not None:
            self._refuse(use, name, reason)
            return
        granted = self.grants.prefixed if is_any else self.grants.literal
        names = granted.setdefault(grantee, {})
        names[name] = names.get(name, 0) | 1 << use.operation

    def _opens_others(self, resource_type: ResourceType) -> bool:
        """Tell whether names that begin with ``*`` are closed, where ``*`` is open to everyone."""
        if self._authorizer is None or resource_type not in self._starred:
            return False
        return not self._authorizer.index.has_match(resource_type, WILDCARD)

    def _refuse(self, use: SessionUse, name: str, reason: str) -> None:
        self.grants.unmet.append(Unmet(*use[:4], name, reason))


def no_host_of(acls: Iterable[AclBinding]) -> str:
    """Return a host that none of some ACLs names."""
    return "-" * (1 + max((len(acl.host) for acl in acls), default=0))


def _narrowness(host: str) -> tuple[int, int]:
    """A key that sorts `*` first, then subnets, the larger ones before those within them."""
    if host == WILDCARD:
        return 0, 0
    around = subnet(host)
    return (2, 0) if around is None else (1, around.size.prefix_length)


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
