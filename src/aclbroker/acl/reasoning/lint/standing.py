"""The ACLs that are left of a set while some of it is taken away, and what they say together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
)
from aclbroker.acl.operations import DENIED_SHIFT, GRANTED_BY, NAMED_BY, bit, pairs
from aclbroker.acl.reasoning.lint.scopes import (
    HostTree,
    Pattern,
    PatternsAround,
    Scope,
    said_by,
)


class Outcome(NamedTuple):
    """Operations as bits that ACLs allow, denials aside, and those that they deny."""

    allowed: int
    denied: int


@lru_cache(maxsize=65536)
def outcome(bits: int) -> Outcome:
    """Return what the bits of ACLs (`acl.operations`) allow and deny."""
    concrete = [each for each in AclOperation if each > AclOperation.ALL]
    denied = bits >> DENIED_SHIFT
    return Outcome(
        sum(1 << each for each in concrete if bits & GRANTED_BY[each]),
        sum(1 << each for each in concrete if denied & NAMED_BY[each]),
    )


class Standing:
    """ACLs with a scope, each once, by scope.

    ``groups`` has for a principal those that its sessions have beside it.
    """

    def __init__(
        self,
        scopes: Mapping[AclBinding, Scope],
        hosts: HostTree,
        groups: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.scopes = scopes
        self.hosts = hosts
        self.patterns = PatternsAround(scope.pattern for scope in scopes.values())
        self._groups = groups
        # A group's own groups are not those of its members.
        self._nested = {each for of_one in groups.values() for each in of_one}
        self._principals: dict[str, tuple[str, ...]] = {}
        self._bits: dict[Pattern, dict[str, dict[int, int]]] = {}
        self._acls: dict[tuple[Scope, int], AclBinding] = {}

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._acls.values())

    def same(self, acl: AclBinding) -> AclBinding | None:
        """Return the ACL that is there of the same meaning as one."""
        return self._acls.get((self.scopes[acl], bit(acl.operation, acl.permission)))

    def add(self, acl: AclBinding) -> None:
        """Add an ACL, instead of one of the same meaning if there is one."""
        scope, own = self.scopes[acl], bit(acl.operation, acl.permission)
        by_principal = self._bits.setdefault(scope.pattern, {})
        by_host = by_principal.setdefault(scope.principal, {})
        by_host[scope.host] = by_host.get(scope.host, 0) | own
        self._acls[scope, own] = acl

    def remove(self, acl: AclBinding) -> None:
        """Remove an ACL that is there."""
        scope, own = self.scopes[acl], bit(acl.operation, acl.permission)
        self._bits[scope.pattern][scope.principal][scope.host] ^= own
        del self._acls[scope, own]

    def denied_without(self, acl: AclBinding) -> bool | None:
        """Tell what becomes of all that an ACL says if it, which is not there, stays away.

        True: it is denied. False: the others decide it as the ACL did, or deny it. None: some of it
        is decided otherwise.
        """
        said = said_by(acl)
        is_denied = True
        for bits in self._at_each_host(acl):
            if _undecided(acl, bits):
                return None
            is_denied = is_denied and not said & ~outcome(bits).denied
        return is_denied

    def _at_each_host(self, acl: AclBinding) -> Iterator[int]:
        """Yield the bits of the ACLs around one, from each host that has to be looked at by itself.

        Where other hosts together are all of one, what they say counts.
        """
        scope = self.scopes[acl]
        waiting = [scope.host]
        while waiting:
            host = waiting.pop()
            bits = self.around(scope, host)
            tiles = self.hosts.tiles(host)
            if tiles and _undecided(acl, bits):
                waiting.extend(tiles)
            else:
                yield bits

    def around(self, scope: Scope, host: int) -> int:
        """Return all bits of the ACLs whose scope holds all of one, narrowed to a host."""
        found = 0
        chain = self.hosts.around(host)
        principals = self.principals(scope.principal)
        for pattern in self.patterns(scope.pattern):
            by_principal = self._bits[pattern]
            for principal in principals:
                by_host = by_principal.get(principal)
                if by_host:
                    for each in chain:
                        found |= by_host.get(each, 0)
        return found

    def principals(self, principal: str) -> tuple[str, ...]:
        """Return those whose ACLs count wherever a principal's do, the principal last."""
        found = self._principals.get(principal)
        if found is None:
            found = self._principals[principal] = self._widening(principal)
        return found

    def _widening(self, principal: str) -> tuple[str, ...]:
        if principal == WILDCARD_PRINCIPAL:
            return (principal,)
        groups = () if principal in self._nested else self._groups.get(principal, ())
        others = dict.fromkeys((WILDCARD_PRINCIPAL, *groups))
        return (*(each for each in others if each != principal), principal)

    def deciding(self, acl: AclBinding, permissions: Iterable[AclPermission]) -> list[AclBinding]:
        """Return ACLs that decide all that another one says, few of them, wide ones first.

        The other is not there, and they have one of the permissions.
        """
        wanted = frozenset(permissions)
        found: dict[AclBinding, None] = {}
        scope = self.scopes[acl]
        waiting = [scope.host]
        while waiting:
            host = waiting.pop()
            around = [each for each in self._acls_around(scope, host) if each[-1] in wanted]
            chosen, is_all = _chosen(said_by(acl), around)
            if is_all or not self.hosts.tiles(host):
                found.update(dict.fromkeys(chosen))
            else:
                waiting.extend(self.hosts.tiles(host))
        return list(found)

    def _acls_around(self, scope: Scope, host: int) -> Iterator[AclBinding]:
        for pattern in self.patterns(scope.pattern):
            for principal in self.principals(scope.principal):
                by_host = self._bits[pattern].get(principal, {})
                for each in self.hosts.around(host):
                    for pair in pairs(by_host.get(each, 0)):
                        yield self._acls[Scope(pattern, principal, each), bit(*pair)]


def _undecided(acl: AclBinding, bits: int) -> int:
    """Return the operations of an ACL that others with these bits do not decide as it does."""
    allowed, denied = outcome(bits)
    decided = denied if acl.permission == AclPermission.DENY else allowed | denied
    return said_by(acl) & ~decided


def _chosen(said: int, acls: list[AclBinding]) -> tuple[list[AclBinding], bool]:
    """Return ACLs that say all of some operations, one if possible, and whether they do."""
    for acl in acls:
        if not said & ~said_by(acl):
            return [acl], True
    chosen = []
    for acl in acls:
        if said & said_by(acl):
            chosen.append(acl)
            said &= ~said_by(acl)
    return chosen, not said
