"""Every request near some ACLs, each decided by the authorizer: what proposals are held to.

A universe has everybody whom ACLs name and somebody they do not, every address that they tell
apart, all operations, and of each pattern a name at it, one in it and one beside it. Who may write
topics is asked about any of them, too, as by an idempotent producer. So whatever two sets of these
ACLs decide otherwise shows in one of its requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from ipaddress import ip_address, ip_network
from itertools import combinations, product
from typing import NamedTuple

from aclbroker.acl.authorizer import ANY_RESOURCE, Session
from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.acl.hosts import canonical, subnet
from aclbroker.acl.reasoning.lint.scopes import is_named_user, kafka_form
from aclbroker.acl.reasoning.rules import operations_of
from aclbroker.pipeline.acls.ruleset import Ruleset

ELSEWHERE = "203.0.113.77"
"""An address that no ACL names."""


class Asking(NamedTuple):
    """A request: the principals of a session, the user's own one first, and what it asks."""

    principals: tuple[str, ...]
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str


def asked(principals: str, operation: str, resource: str, host: str = ELSEWHERE) -> Asking:
    """A request written ``User:a Group:g``, ``READ``, ``topic t``."""
    kind, name = resource.split()
    session = tuple(principals.split())
    return Asking(session, host, AclOperation[operation], ResourceType[kind.upper()], name)


class Universe:
    """The requests near some ACLs, which can be decided under any rules.

    ``requests`` are all of them; sets of requests are sets of their places in it, which are soon
    compared.
    """

    def __init__(
        self,
        acls: Iterable[AclBinding],
        sessions: Iterable[tuple[str, ...]] = (),
        hosts: Iterable[str] = (),
    ) -> None:
        """Enumerate the requests near ACLs, also those of other sessions, and from other hosts."""
        acls = list(acls)
        alone = [(each,) for each in _principals(acls)]
        self.sessions = list(dict.fromkeys([*alone, *sessions]))
        self.hosts = sorted(_hosts(acls) | {canonical(each) for each in hosts})
        self.resources = _resources(acls)
        self.requests = [
            Asking(principals, host, operation, kind, name)
            for principals, host in product(self.sessions, self.hosts)
            for kind, names in self.resources.items()
            for operation in operations_of(kind)
            for name in _asked_names(operation, kind, names)
        ]

    @property
    def named(self) -> list[Asking]:
        """The requests that name what they are about, without those about any topic."""
        return [each for each in self.requests if not is_of_any(*each[2:])]

    def allowed(self, rules: Ruleset) -> frozenset[int]:
        """Return the places of the requests that the authorizer of some rules allows."""
        core = rules.authorizer()
        decided: list[bool] = []
        for principals, host in product(self.sessions, self.hosts):
            session = Session(principals, host, "")
            for kind, names in self.resources.items():
                for operation in operations_of(kind):
                    decisions = core.decisions(session, operation, kind)
                    decided += [decisions[name].allowed for name in names]
                    if is_of_any(operation, kind, ANY_RESOURCE):
                        by_type = core.authorize_by_resource_type(session, operation, kind)
                        decided.append(by_type.allowed)
        return frozenset(at for at, is_allowed in enumerate(decided) if is_allowed)


def allowed(rules: Ruleset, requests: Iterable[Asking]) -> set[Asking]:
    """Return those of some requests that rules allow."""
    core = rules.authorizer()
    together: dict[tuple[tuple[str, ...], str, AclOperation, ResourceType], list[str]] = {}
    for each in requests:
        together.setdefault(each[:4], []).append(each.name)
    found: set[Asking] = set()
    for (principals, host, operation, kind), names in together.items():
        session = Session(principals, host, "")
        decisions = core.decisions(session, operation, kind)
        for name in names:
            decision = decisions[name]
            if is_of_any(operation, kind, name):
                decision = core.authorize_by_resource_type(session, operation, kind)
            if decision.allowed:
                found.add(Asking(principals, host, operation, kind, name))
    return found


def _asked_names(operation: AclOperation, kind: ResourceType, names: list[str]) -> list[str]:
    """The names that an operation is asked on: no request asks for another one on any topic."""
    return [*names, ANY_RESOURCE] if is_of_any(operation, kind, ANY_RESOURCE) else names


def is_of_any(operation: AclOperation, kind: ResourceType, name: str) -> bool:
    """Whether it is asked whether any topic may be written."""
    return (operation, kind, name) == (AclOperation.WRITE, ResourceType.TOPIC, ANY_RESOURCE)


def is_allowed(rules: Ruleset, request: Asking) -> bool:
    """Decide one request."""
    return bool(allowed(rules, [request]))


def companies(acls: Iterable[AclBinding]) -> list[tuple[str, ...]]:
    """Return sessions of a user and one or two groups that ACLs name; two users are in none."""
    named = sorted({acl.principal for acl in acls} - {"User:*"})
    groups = [each for each in named if not is_named_user(each)]
    users = [*(each for each in named if is_named_user(each)), "User:nobody"]
    several = [*combinations(groups, 1), *combinations(groups, 2)]
    return [(user, *each) for user, each in product(users, several)]


def on_kafka(rules: Ruleset) -> Ruleset:
    """Return what the rules are to a Kafka, which compares hosts as texts.

    With subnets they are no Kafka's, and stay as they are.
    """
    if rules.cidr:
        return rules
    return rules.with_acls(
        acl if acl.host in ("*", kafka_form(acl.host)) else acl._replace(host="nobody's")
        for acl in rules.acls
    )


def with_subnets(rules: Ruleset) -> Ruleset:
    """Return the rules where hosts in CIDR notation are subnets."""
    return replace(rules, cidr=True)


def _principals(acls: Collection[AclBinding]) -> list[str]:
    return [*sorted({acl.principal for acl in acls} - {"User:*"}), "User:nobody"]


def _hosts(acls: Collection[AclBinding]) -> set[str]:
    found = {ELSEWHERE, "2001:db8::77"}
    for host in {acl.host for acl in acls}:
        if subnet(host) is not None:
            network = ip_network(host, strict=False)
            found.update(str(address) for address in _around(network))
            continue
        try:
            address = ip_address(canonical(host))
        except ValueError:
            continue
        found.add(str(address))
        found.add(str(address).partition("%")[0])
        found.add(f"{str(address).partition('%')[0]}%other" if address.version == 6 else host)
    return {canonical(each) for each in found}


def _around(network) -> Iterator[object]:
    """Yield addresses at both ends of a subnet, and the first one behind it."""
    first, last = network.network_address, network.broadcast_address
    yield first + 1 if network.num_addresses > 1 else first
    yield last
    if int(last) + 1 < 1 << network.max_prefixlen:
        yield last + 1


def _resources(acls: Collection[AclBinding]) -> dict[ResourceType, list[str]]:
    found: dict[ResourceType, set[str]] = {}
    for acl in acls:
        kind, name = acl.resource_type, acl.resource_name
        names = found.setdefault(kind, set())
        if kind is ResourceType.CLUSTER:
            names.add(CLUSTER_NAME)
            continue
        names.update({"~elsewhere", name, f"{name}~"})
        if acl.pattern_type is PatternType.PREFIXED:
            names.add(name[:-1])
    return {kind: sorted(names - {""}) for kind, names in found.items()}
