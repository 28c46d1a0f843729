"""Who can, and what can: exact answers about one set of rules, for all names and hosts at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission, ResourceType
from aclbroker.acl.reasoning.asked import Asked, Found, OfType
from aclbroker.acl.reasoning.by_host import by_host
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.acl.reasoning.names import ROOT, Key, NameRegion
from aclbroker.acl.reasoning.possible import possible_rules
from aclbroker.acl.reasoning.regions import Principals, Region, Request
from aclbroker.acl.reasoning.rules import (
    TYPES,
    Rules,
    named_principals,
    operations_of,
    tables,
)

_MOST_ASKED: Final = 64
"""How many questions are remembered; each may have a word for each pattern."""


class Holder(NamedTuple):
    """Somebody who may do what was asked, on all names that were asked about or on some.

    ``on_all`` and ``on_some`` are the sets of hosts from which that is so (`HostCut`); all of the
    first are in the second. ``example`` is one such request.
    """

    principals: Principals
    on_all: int
    on_some: int
    example: Request


class Reasoner:
    """Answers questions about a set of rules, which must not change.

    Raises ValueError for a resource type or operation that no resource has. What it works out for
    one question it keeps for the next.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.cut = HostCut(rules.hosts(), rules.cidr)
        self.tables = tables(rules, self.cut)
        self._of_type: dict[ResourceType, OfType] = {}
        self._asked: dict[tuple[AclOperation, ResourceType, Key, int], Asked] = {}
        self._allows: dict[str, list[AclBinding]] | None = None
        self._named: frozenset[str] | None = None
        self._of_possible: Reasoner | None = None

    def of_possible(self) -> Reasoner:
        """Return what knows the names alone that resources can have: see `possible_rules`."""
        if self._of_possible is None:
            rules = possible_rules(self.rules)
            self._of_possible = self if rules is self.rules else Reasoner(rules)
        return self._of_possible

    def of_type(self, resource_type: ResourceType) -> OfType:
        """Return what is known of a resource type. Raises ValueError."""
        if resource_type not in self.tables:
            raise ValueError(f"{resource_type.name} is not the type of a resource")
        found = self._of_type.get(resource_type)
        if found is None:
            found = self._of_type[resource_type] = OfType(self.tables[resource_type])
        return found

    def who_can(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        key: Key,
        host: str | None = None,
    ) -> Iterator[Holder]:
        """Yield everybody who may do an operation on a name, or on names that begin alike.

        ``host`` is an address, by default any. The last holder is everyone else, if they may.
        Who may on some names only differs in ``on_all``.
        """
        asked = self.asked(operation, resource_type, key, host)
        of_everyone = asked.of_everyone()
        others: list[str] = []
        for principal in asked.candidates():
            found = asked.of_principal(principal)
            if found[:2] != of_everyone[:2]:
                others.append(principal)
                if found.on_some:
                    holding = Principals((principal,))
                    yield self._holder(holding, found, asked.where(found), operation)
        if of_everyone.on_some:
            holding = Principals(tuple(others), is_everyone=True)
            yield self._holder(holding, of_everyone, asked.where(of_everyone), operation)

    def asked(
        self, operation: AclOperation, resource_type: ResourceType, key: Key, host: str | None
    ) -> Asked:
        """Return a question about an operation on a name or prefix. Raises ValueError."""
        of_type = self.of_type(resource_type)
        if operation not in operations_of(resource_type):
            raise ValueError(f"no {resource_type.name} has the operation {operation.name}")
        hosts = self.cut.everywhere if host is None else self._at(host)
        if resource_type is ResourceType.CLUSTER:
            key = ROOT
        question = operation, resource_type, key, hosts
        found = self._asked.get(question)
        if found is None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            found = self._asked[question] = Asked(of_type, key, 1 << operation, hosts)
        return found

    def allows_of(self, principal: str) -> list[AclBinding]:
        """Return the ALLOWs that name a principal."""
        if self._allows is None:
            self._allows = {}
            for acl in self.rules.acls:
                if acl.permission == AclPermission.ALLOW:
                    self._allows.setdefault(acl.principal, []).append(acl)
        return self._allows.get(principal, [])

    def named(self) -> frozenset[str]:
        """Return all principals who are not just anybody."""
        if self._named is None:
            self._named = frozenset(named_principals(list(self.tables.values())))
        return self._named

    def _holder(
        self,
        principals: Principals,
        found: Found,
        where: tuple[int, NameRegion],
        operation: AclOperation,
    ) -> Holder:
        mask, names = where
        region = Region(principals, self.cut, mask, 1 << operation, names)
        example = region.request(self.of_type(names.resource_type).named)
        return Holder(principals, found.on_all, found.on_some, example)

    def _at(self, host: str) -> int:
        found = self.cut.at(host)
        if not found:
            raise ValueError(f"{host!r} is no address, and so no peer's")
        return found

    def what_can(self, principal: str, host: str | None = None) -> Iterator[Region]:
        """Yield all that somebody may do; no request is of two regions."""
        hosts = self.cut.everywhere if host is None else self._at(host)
        for resource_type in TYPES:
            for component in self.of_type(resource_type).everything(principal):
                names = NameRegion(resource_type, component.key, tuple(component.excepted))
                for mask, bits in by_host(component.value, self.cut.everywhere):
                    if bits and mask & hosts:
                        yield Region(Principals((principal,)), self.cut, mask & hosts, bits, names)
