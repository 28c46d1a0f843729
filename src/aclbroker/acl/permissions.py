"""What each principal from each host is allowed and denied on resources of one type.

The ACLs that match a principal at an address are found with a few lookups. Hosts keep the text they
were written in. Subnets, and hosts whose text is not the canonical one, are found through a second
table, which costs nothing while it is empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from aclbroker.acl.bindings import (
    DENY,
    LITERAL,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
)
from aclbroker.acl.hosts import (
    Subnet,
    SubnetSize,
    canonical,
    enclosing_subnets,
    subnet,
    without_zone,
)
from aclbroker.acl.operations import bit, shared

_NOTHING: dict[str, int] = {}


class Permissions:
    """What the ACLs of one principal and host allow and deny, by resource pattern.

    ``literal`` and ``prefixed`` map patterns' names to the bits of `acl.operations`; None
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
        found = self.literal if pattern_type == LITERAL else self.prefixed
        return _NOTHING if found is None else found

    def add(self, pattern_type: PatternType, name: str, bits: int) -> int | None:
        """Add bits to those of a pattern; return what these were, None if there is nothing new."""
        if pattern_type == LITERAL:
            named = self.literal
            if named is None:
                named = self.literal = {}
        else:
            named = self.prefixed
            if named is None:
                named = self.prefixed = {}
        before = named.get(name, 0)
        after = before | bits
        if after == before:
            return None
        named[name] = shared(after)
        self.ever |= bits
        return before

    def add_new(self, pattern_type: PatternType, name: str, bits: int) -> None:
        """Add the bits of a pattern that has none; they are one of `operations.BITS`."""
        self.ever |= bits
        if pattern_type == LITERAL:
            if self.literal is None:
                self.literal = {name: bits}
            else:
                self.literal[name] = bits
        elif self.prefixed is None:
            self.prefixed = {name: bits}
        else:
            self.prefixed[name] = bits

    def set(self, pattern_type: PatternType, name: str, bits: int) -> None:
        """Take ``bits`` for what the ACLs of a pattern say; 0 if there are none any more."""
        named = self.of_type(pattern_type)
        if not bits:
            del named[name]
            return
        if named is _NOTHING:
            named = {}
            if pattern_type == LITERAL:
                self.literal = named
            else:
                self.prefixed = named
        named[name] = bits
        self.ever |= bits

    @property
    def is_empty(self) -> bool:
        """Whether no ACL is left."""
        return not self.literal and not self.prefixed

    def copy(self) -> Permissions:
        """Return permissions that do not change with these."""
        copied = Permissions(self.principal, self.host)
        copied.literal = None if self.literal is None else self.literal.copy()
        copied.prefixed = None if self.prefixed is None else self.prefixed.copy()
        copied.ever = self.ever
        return copied


class Principals:
    """All principals that ACLs of one resource type name: `Permissions` for each and its hosts.

    With ``cidr``, a host in CIDR notation is a subnet.
    """

    def __init__(self, cidr: bool) -> None:
        self._cidr = cidr
        # Most principals have one host, which needs no dict of its own.
        self._principals: dict[str, Permissions | dict[str, Permissions]] = {}
        self._rewritten: dict[tuple[str, str | Subnet], list[Permissions]] = {}
        self._sizes: dict[SubnetSize, int] = {}
        self.withheld = Permissions(WILDCARD_PRINCIPAL, WILDCARD)
        """What is denied to all because the ACLs of it are not known; in no list."""

    def withhold(self, pattern_type: PatternType, name: str) -> bool:
        """Deny everybody everything on a pattern; return whether that is new."""
        is_new = name not in self.withheld.of_type(pattern_type)
        self.withheld.set(pattern_type, name, bit(AclOperation.ALL, DENY))
        return is_new

    def release(self, pattern_type: PatternType, name: str) -> bool:
        """Take `withhold` back; return whether it was done before."""
        if name not in self.withheld.of_type(pattern_type):
            return False
        self.withheld.set(pattern_type, name, 0)
        return True

    def __bool__(self) -> bool:
        return bool(self._principals)

    def __iter__(self) -> Iterator[Permissions]:
        for principal in self._principals:
            yield from self.of_principal(principal)

    def get(self, principal: str, host: str) -> Permissions | None:
        """Return the permissions of a principal and host in exactly this text."""
        found = self._principals.get(principal)
        if isinstance(found, Permissions):
            return found if found.host == host else None
        return found.get(host) if found else None

    def of_principal(self, principal: str) -> Collection[Permissions]:
        """Return the permissions of a principal from all hosts."""
        found = self._principals.get(principal)
        if isinstance(found, Permissions):
            return (found,)
        return found.values() if found else ()

    def get_or_add(self, principal: str, host: str) -> Permissions:
        """As `get`, but add empty permissions if there are none."""
        found = self._principals.get(principal)
        if isinstance(found, Permissions):
            if found.host == host:
                return found
            found = self._principals[principal] = {found.host: found}
        permissions = found.get(host) if found else None
        if permissions is None:
            permissions = Permissions(principal, host)
            if found is None:
                self._principals[principal] = permissions
            else:
                found[host] = permissions
            if host != WILDCARD:
                self._rewrite(permissions)
        return permissions

    def discard(self, permissions: Permissions) -> None:
        """Forget permissions that are empty."""
        found = self._principals[permissions.principal]
        if isinstance(found, dict):
            del found[permissions.host]
        if found is permissions or not found:
            del self._principals[permissions.principal]
        key = self._key(permissions.host)
        if key != permissions.host:
            self._discard_rewritten(permissions, key)

    def matching(self, principals: tuple[str, ...], address: str) -> list[Permissions]:
        """Return the permissions of any of the principals at an address in canonical form.

        These are the ACLs of each principal and of ``User:*``, for that address, with its zone or
        without, a subnet around it, or ``*``.
        """
        found = []
        hosts = [*_written(address), WILDCARD]
        for principal in (*principals, WILDCARD_PRINCIPAL):
            for host in hosts:
                permissions = self.get(principal, host)
                if permissions is not None:
                    found.append(permissions)
        if self._rewritten:
            found += self._matching_rewritten(principals, address)
        if not self.withheld.is_empty:
            found.append(self.withheld)
        return found

    def _matching_rewritten(
        self, principals: tuple[str, ...], address: str
    ) -> Iterator[Permissions]:
        keys: list[str | Subnet] = [*_written(address)]
        if self._sizes:
            keys += enclosing_subnets(address, self._sizes)
        for principal in (*principals, WILDCARD_PRINCIPAL):
            for key in keys:
                yield from self._rewritten.get((principal, key), ())

    def _rewrite(self, permissions: Permissions) -> None:
        key = self._key(permissions.host)
        if key != permissions.host:
            self._rewritten.setdefault((permissions.principal, key), []).append(permissions)
            if isinstance(key, Subnet):
                self._sizes[key.size] = self._sizes.get(key.size, 0) + 1

    def _discard_rewritten(self, permissions: Permissions, key: str | Subnet) -> None:
        same = self._rewritten[permissions.principal, key]
        same.remove(permissions)
        if not same:
            del self._rewritten[permissions.principal, key]
        if isinstance(key, Subnet):
            self._sizes[key.size] -= 1
            if not self._sizes[key.size]:
                del self._sizes[key.size]

    def _key(self, host: str) -> str | Subnet:
        """Return the key under which peers at this host look for its ACLs."""
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
