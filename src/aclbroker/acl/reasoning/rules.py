"""What decides on a cluster, and the same by principal and pattern, ready to be reasoned about."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import BrokerUsers, StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import (
    DENIED_SHIFT,
    GRANTED_BY,
    NAMED_BY,
    bit,
    supported_operations,
)
from aclbroker.acl.reasoning.by_host import Rights, joined
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT, Key, key_of

TYPES: Final = tuple(each for each in ResourceType if each > ResourceType.ANY)

EVERYTHING: Final = bit(AclOperation.ALL, AclPermission.ALLOW)
"""The rights of who may do everything, as if by one ACL."""

_ASKED_BESIDES: Final = {ResourceType.CLUSTER: (AclOperation.DELETE,)}
"""Operations that a broker asks about although the type does not have them: who may DELETE the
cluster may delete every topic."""


def operations_of(resource_type: ResourceType) -> tuple[AclOperation, ...]:
    """Return the operations on resources of a type that a broker ever asks about.

    Raises ValueError for UNKNOWN and ANY.
    """
    return (*supported_operations(resource_type), *_ASKED_BESIDES.get(resource_type, ()))


@dataclass(frozen=True)
class Rules:
    """All that an authorizer goes by, and the groups of principals.

    ``super_users`` are principals; ``broker_users`` may do everything on one listener, and all
    answers are about the others. ``cidr`` tells that hosts in CIDR notation are subnets. ``groups``
    has for a principal those that its sessions have beside it, such as ``Group:staff``.
    """

    acls: Sequence[AclBinding] = ()
    super_users: frozenset[str] = frozenset()
    broker_users: BrokerUsers = field(default_factory=BrokerUsers)
    allow_everyone_if_no_acl_found: bool = False
    cidr: bool = False
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def principals_of(self, principal: str) -> tuple[str, ...]:
        """Return the principals of a session of somebody, the own one first."""
        return (principal, *self.groups.get(principal, ()))

    def is_super_user(self, principal: str) -> bool:
        """Tell whether one of the principals of somebody's sessions is a super user."""
        return not self.super_users.isdisjoint(self.principals_of(principal))

    def session(self, principal: str, host: str) -> Session:
        """Return a session of somebody from an address, on no listener of brokers."""
        return Session(self.principals_of(principal), host, "")

    def authorizer(self) -> StandardAuthorizerData:
        """Return the broker's own authorizer of these rules."""
        return StandardAuthorizerData(
            AclIndex(self.acls, cidr=self.cidr),
            self.super_users,
            self.allow_everyone_if_no_acl_found,
            self.broker_users,
        )

    def on(self, resource_type: ResourceType, name: str) -> Rules:
        """Return rules that decide the same on one resource, with the ACLs on it alone."""
        return replace(self, acls=[acl for acl in self.acls if matches(acl, resource_type, name)])

    def related(self, resource_type: ResourceType, key: Key) -> Rules:
        """Return rules that decide the same on the names of a pattern, with the ACLs on some."""
        name, kind = key
        if kind != PREFIX:
            return self.on(resource_type, name)
        return replace(
            self,
            acls=[
                acl
                for acl in self.acls
                if acl[0] == resource_type
                and (acl[1].startswith(name) or matches(acl, resource_type, name))
            ],
        )

    def hosts(self) -> set[str]:
        """Return the hosts that the ACLs name, as they are written."""
        return {acl[4] for acl in self.acls}


def matches(acl: AclBinding, resource_type: ResourceType, name: str) -> bool:
    """Tell whether an ACL has a pattern that matches a resource."""
    if acl[0] != resource_type:
        return False
    return name.startswith(acl[1]) if acl[2] == PatternType.PREFIXED else acl[1] in (name, WILDCARD)


class Effective(dict[int, int]):
    """For the bits of ACLs, those of the operations of a type that are allowed by them."""

    def __init__(self, resource_type: ResourceType) -> None:
        super().__init__()
        self._operations = operations_of(resource_type)

    def __missing__(self, bits: int) -> int:
        denied = bits >> DENIED_SHIFT
        allowed = 0
        for operation in self._operations:
            if bits & GRANTED_BY[operation] and not denied & NAMED_BY[operation]:
                allowed |= 1 << operation
        self[bits] = allowed
        return allowed


EFFECTIVE: Final = {resource_type: Effective(resource_type) for resource_type in TYPES}
"""By resource type."""


class Own:
    """The rights that ACLs name on each pattern, for one principal or a session of several."""

    __slots__ = ("literals", "prefixes")

    def __init__(self) -> None:
        self.prefixes: dict[str, Rights] = {}
        """``*`` is the empty prefix."""

        self.literals: dict[str, Rights] = {}

    def add(self, key: Key, rights: Rights) -> None:
        """Add rights on a pattern."""
        named = self.literals if key[1] else self.prefixes
        known = named.get(key[0])
        named[key[0]] = rights if known is None else joined(known, rights)

    def keys(self) -> list[Key]:
        """Return all patterns."""
        return [*((name, PREFIX) for name in self.prefixes), *((name, 1) for name in self.literals)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Own)
            and self.prefixes == other.prefixes
            and self.literals == other.literals
        )

    __hash__ = None  # type: ignore[assignment] # it changes


_NOTHING: Final = Own()


class Table:
    """The ACLs of one resource type: for each principal its rights on patterns.

    All ACLs of the cluster are as if on ``*``, since it has only one resource.
    """

    def __init__(self, resource_type: ResourceType, rules: Rules) -> None:
        self.resource_type = resource_type
        self.rules = rules
        self.owners: dict[str, Own] = {}
        self.is_open = rules.allow_everyone_if_no_acl_found

    @property
    def everyone(self) -> Own:
        """What ACLs of ``User:*`` say."""
        return self.owners.get(WILDCARD_PRINCIPAL, _NOTHING)

    def own(self, principal: str) -> Own:
        """Return what the ACLs of somebody and of the own groups say; not to be changed."""
        principals = [
            each
            for each in self.rules.principals_of(principal)
            if each in self.owners and each != WILDCARD_PRINCIPAL
        ]
        if not principals:
            return _NOTHING
        if len(principals) == 1:
            return self.owners[principals[0]]
        merged = Own()
        for each in principals:
            own = self.owners[each]
            for key in own.keys():  # noqa: SIM118 # it is no mapping
                merged.add(key, (own.literals if key[1] else own.prefixes)[key[0]])
        return merged

    def outermost(self) -> set[Key]:
        """Return the patterns that have ACLs of anybody and lie in no other one that has."""
        prefixes: list[str] = []
        for prefix in sorted(set().union(*(own.prefixes for own in self.owners.values()))):
            if not prefixes or not prefix.startswith(prefixes[-1]):
                prefixes.append(prefix)
        found = {(prefix, PREFIX) for prefix in prefixes}
        for name in set().union(*(own.literals for own in self.owners.values())):
            # Of prefixes that do not lie in each other, no other can hold the name.
            place = bisect_right(prefixes, name)
            if not place or not name.startswith(prefixes[place - 1]):
                found.add((name, LITERAL))
        return found


def tables(rules: Rules, cut: HostCut) -> dict[ResourceType, Table]:
    """Return the table of each resource type. ``cut`` knows all hosts of the rules."""
    found = {resource_type: Table(resource_type, rules) for resource_type in TYPES}
    owners_of = {int(each): found[each].owners for each in TYPES}
    cluster = int(ResourceType.CLUSTER)
    everywhere = cut.everywhere
    masks = {host: cut.mask(host, rules.cidr) for host in rules.hosts()}
    for resource_type, name, pattern_type, principal, host, operation, permission in rules.acls:
        owners = owners_of[resource_type]
        own = owners.get(principal)
        if own is None:
            own = owners[principal] = Own()
        bits = 1 << operation if permission == _ALLOW else 1 << operation + DENIED_SHIFT
        mask = masks[host]
        rights: Rights = bits if mask == everywhere else _at(mask, everywhere, bits)
        if resource_type == cluster:
            if _is_of_cluster(pattern_type, name):
                own.add(ROOT, rights)
        else:
            own.add(key_of(pattern_type, name), rights)
    return found


_ALLOW: Final = int(AclPermission.ALLOW)


def _at(mask: int, everywhere: int, bits: int) -> Rights:
    """Return rights on the hosts of a mask, which are not all."""
    # Rights that nobody has are kept: the pattern of their ACL counts where none would be open.
    return ((mask, bits), (everywhere & ~mask, 0)) if mask else 0


def _is_of_cluster(pattern_type: PatternType, name: str) -> bool:
    if pattern_type == PatternType.PREFIXED:
        return CLUSTER_NAME.startswith(name)
    return name in (CLUSTER_NAME, "*")


def named_principals(tables_of_type: Sequence[Table]) -> list[str]:
    """Return, sorted, all principals of whom the rights may differ from those of any other."""
    found: set[str] = set()
    for table in tables_of_type:
        found.update(table.owners)
    found.discard(WILDCARD_PRINCIPAL)
    for table in tables_of_type:
        found.update(table.rules.super_users, table.rules.groups)
    return sorted(found)
