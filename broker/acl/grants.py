"""What the ACLs of one resource type say to each principal from each host.

To find who is meant by a principal at an address costs a few lookups. Hosts keep the text they
were written in; those whose text is not the canonical one, and subnets, are found through a second
table, so that nobody pays for them where there are none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from aclbroker.broker.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL, PatternType
from aclbroker.broker.acl.hosts import (
    Subnet,
    SubnetSize,
    canonical,
    enclosing_subnets,
    subnet,
    without_zone,
)

_NOTHING: dict[str, int] = {}


class Grants:
    """What one principal from one host, as ACLs write them, is allowed and denied, by pattern.

    ``literal`` and ``prefixed`` map patterns' names to the bits of `broker.acl.operations`; None
    stands for an empty one. ``ever`` has every bit that was ever set, even if it is not any more.
    """

    __slots__ = ("ever", "host", "literal", "prefixed", "principal")

    def __init__(self, principal: str, host: str) -> None:
        self.principal = principal
        self.host = host
        self.literal: dict[str, int] | None = None
        self.prefixed: dict[str, int] | None = None
        self.ever = 0

    def of_type(self, pattern_type: PatternType) -> dict[str, int]:
        """Return the bits by name of the LITERAL or the PREFIXED patterns; not to be changed."""
        found = self.literal if pattern_type == PatternType.LITERAL else self.prefixed
        return _NOTHING if found is None else found

    def set(self, pattern_type: PatternType, name: str, bits: int) -> None:
        """Take ``bits`` for what the ACLs of a pattern say; 0 if there are none any more."""
        named = self.of_type(pattern_type)
        if not bits:
            del named[name]
            return
        if named is _NOTHING:
            named = {}
            if pattern_type == PatternType.LITERAL:
                self.literal = named
            else:
                self.prefixed = named
        named[name] = bits
        self.ever |= bits

    @property
    def is_empty(self) -> bool:
        """Whether no ACL is left."""
        return not self.literal and not self.prefixed


class Grantees:
    """Whom the ACLs of one resource type name: a `Grants` for each principal and host.

    With ``cidr``, a host in CIDR notation is a subnet.
    """

    def __init__(self, cidr: bool) -> None:
        self._cidr = cidr
        # Most principals have one host, which needs no dict of its own.
        self._principals: dict[str, Grants | dict[str, Grants]] = {}
        self._rewritten: dict[tuple[str, str | Subnet], list[Grants]] = {}
        self._sizes: dict[SubnetSize, int] = {}

    def __bool__(self) -> bool:
        return bool(self._principals)

    def __iter__(self) -> Iterator[Grants]:
        for principal in self._principals:
            yield from self.of_principal(principal)

    def get(self, principal: str, host: str) -> Grants | None:
        """Return the grants of a principal and host written exactly so."""
        found = self._principals.get(principal)
        if isinstance(found, Grants):
            return found if found.host == host else None
        return found.get(host) if found else None

    def of_principal(self, principal: str) -> Collection[Grants]:
        """Return the grants of a principal from all hosts."""
        found = self._principals.get(principal)
        if isinstance(found, Grants):
            return (found,)
        return found.values() if found else ()

    def get_or_add(self, principal: str, host: str) -> Grants:
        """Return the grants of a principal and host written exactly so, empty if they are new."""
        found = self._principals.get(principal)
        if isinstance(found, Grants):
            if found.host == host:
                return found
            found = self._principals[principal] = {found.host: found}
        grants = found.get(host) if found else None
        if grants is None:
            grants = Grants(principal, host)
            if found is None:
                self._principals[principal] = grants
            else:
                found[host] = grants
            if host != WILDCARD:
                self._rewrite(grants)
        return grants

    def discard(self, grants: Grants) -> None:
        """Forget grants that are empty."""
        found = self._principals[grants.principal]
        if isinstance(found, dict):
            del found[grants.host]
        if found is grants or not found:
            del self._principals[grants.principal]
        key = self._key(grants.host)
        if key != grants.host:
            self._discard_rewritten(grants, key)

    def matching(self, principals: tuple[str, ...], address: str) -> list[Grants]:
        """Return the grants to any of the principals at an address in canonical form.

        ACLs mean them by each principal and by ``User:*``, from that address, with its zone or
        without, a subnet around it, or ``*``.
        """
        found = []
        hosts = [*_written(address), WILDCARD]
        for principal in (*principals, WILDCARD_PRINCIPAL):
            for host in hosts:
                grants = self.get(principal, host)
                if grants is not None:
                    found.append(grants)
        if self._rewritten:
            found += self._matching_rewritten(principals, address)
        return found

    def _matching_rewritten(self, principals: tuple[str, ...], address: str) -> Iterator[Grants]:
        keys: list[str | Subnet] = [*_written(address)]
        if self._sizes:
            keys += enclosing_subnets(address, self._sizes)
        for principal in (*principals, WILDCARD_PRINCIPAL):
            for key in keys:
                yield from self._rewritten.get((principal, key), ())

    def _rewrite(self, grants: Grants) -> None:
        key = self._key(grants.host)
        if key != grants.host:
            self._rewritten.setdefault((grants.principal, key), []).append(grants)
            if isinstance(key, Subnet):
                self._sizes[key.size] = self._sizes.get(key.size, 0) + 1

    def _discard_rewritten(self, grants: Grants, key: str | Subnet) -> None:
        same = self._rewritten[grants.principal, key]
        same.remove(grants)
        if not same:
            del self._rewritten[grants.principal, key]
        if isinstance(key, Subnet):
            self._sizes[key.size] -= 1
            if not self._sizes[key.size]:
                del self._sizes[key.size]

    def _key(self, host: str) -> str | Subnet:
        """Return what a peer at such a host is looked up by."""
        if host == WILDCARD:
            return host
        if self._cidr:
            found = subnet(host)
            if found is not None:
                return found
        return canonical(host)


def _written(address: str) -> tuple[str, ...]:
    """Return what ACLs may call an address: itself, and that without its zone."""
    everywhere = without_zone(address)
    return (address,) if everywhere == address else (address, everywhere)
