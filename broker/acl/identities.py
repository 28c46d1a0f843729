"""The distinct (principal, host) pairs of all ACLs, each one object however many ACLs name it.

To find who is meant by a principal at an address costs a few lookups here, once per decision; the
entries of the resource patterns are then looked up by object. Hosts keep the text they were written
in; those whose text is not the canonical one, and subnets, are found through a second table, so
that nobody pays for them where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL
from broker.acl.hosts import Subnet, SubnetSize, canonical, enclosing_subnets, subnet


class Identity:
    """A principal and a host as ACLs write them, and how many patterns have an entry for them."""

    __slots__ = ("host", "principal", "uses")

    def __init__(self, principal: str, host: str) -> None:
        self.principal = principal
        self.host = host
        self.uses = 0


class Identities:
    """All identities that are in use; with ``cidr``, a host in CIDR notation is a subnet."""

    def __init__(self, cidr: bool) -> None:
        self.cidr = cidr
        self._written: dict[tuple[str, str], Identity] = {}
        self._rewritten: dict[tuple[str, str | Subnet], list[Identity]] = {}
        self._sizes: dict[SubnetSize, int] = {}

    def __iter__(self) -> Iterator[Identity]:
        return iter(self._written.values())

    def get(self, principal: str, host: str) -> Identity | None:
        """Return the identity written exactly so."""
        return self._written.get((principal, host))

    def get_or_add(self, principal: str, host: str) -> Identity:
        """Return the identity written exactly so, new if there was none."""
        identity = self._written.get((principal, host))
        if identity is None:
            identity = self._written[principal, host] = Identity(principal, host)
            key = self._key(host)
            if key != host:
                self._rewritten.setdefault((principal, key), []).append(identity)
                if isinstance(key, Subnet):
                    self._sizes[key.size] = self._sizes.get(key.size, 0) + 1
        return identity

    def discard(self, identity: Identity) -> None:
        """Forget an identity that no entry uses any more."""
        del self._written[identity.principal, identity.host]
        key = self._key(identity.host)
        if key == identity.host:
            return
        same = self._rewritten[identity.principal, key]
        same.remove(identity)
        if not same:
            del self._rewritten[identity.principal, key]
        if isinstance(key, Subnet):
            self._sizes[key.size] -= 1
            if not self._sizes[key.size]:
                del self._sizes[key.size]

    def matching(self, principals: tuple[str, ...], address: str) -> list[Identity]:
        """Return whom ACLs may name to mean one of the principals at an address in canonical form.

        That is each principal and ``User:*``, from that address, a subnet around it, or ``*``.
        """
        written = self._written
        hosts = (address, WILDCARD)
        found = []
        for principal in (*principals, WILDCARD_PRINCIPAL):
            for host in hosts:
                identity = written.get((principal, host))
                if identity is not None:
                    found.append(identity)
        if self._rewritten:
            found += self._matching_rewritten(principals, address)
        return found

    def _matching_rewritten(self, principals: tuple[str, ...], address: str) -> list[Identity]:
        keys: list[str | Subnet] = [address]
        if self._sizes:
            keys += enclosing_subnets(address, self._sizes)
        return [
            identity
            for principal in (*principals, WILDCARD_PRINCIPAL)
            for key in keys
            for identity in self._rewritten.get((principal, key), ())
        ]

    def _key(self, host: str) -> str | Subnet:
        if self.cidr:
            found = subnet(host)
            if found is not None:
                return found
        return canonical(host)
