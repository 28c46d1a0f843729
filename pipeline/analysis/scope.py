"""What an ACL applies to, as scopes that lie one in another, or apart.

Of two resource patterns, two principals or two hosts, either one holds everything that the other
does, or they have nothing in common: so all that can lie around an ACL is found by a few lookups,
and no pair of ACLs ever has to be compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.hosts import Subnet, SubnetSize, canonical, enclosing_subnets, subnet

PatternKey = tuple[ResourceType, PatternType, str]


class Overlooked(NamedTuple):
    """An address in a form that Kafka never matches (`kafka_overlooks`), and our broker does."""

    address: str


HostKey = str | Subnet | Overlooked
"""A host, however it is written: `*`, an address in canonical form or other text, or a subnet."""

_EVERYTHING: Final = (PatternType.LITERAL, WILDCARD)
_IPV4_BITS: Final = 32


class Scopes:
    """Finds the scopes around those of an ACL, among all that some ACLs have.

    ``cidr``: whether hosts in CIDR notation are subnets (see `pipeline.acls.ruleset.Ruleset`).
    """

    def __init__(self, acls: Iterable[AclBinding], cidr: bool) -> None:
        self._cidr = cidr
        lengths: dict[ResourceType, set[int]] = {each: set() for each in ResourceType}
        hosts: dict[str, None] = {}
        for acl in acls:
            hosts[acl.host] = None
            if acl.pattern_type is PatternType.PREFIXED:
                lengths[acl.resource_type].add(len(acl.resource_name))
        self._lengths = {kind: sorted(each) for kind, each in lengths.items()}
        self._keys = {host: _host_key(host, cidr) for host in hosts}
        sizes = {key.size for key in self._keys.values() if isinstance(key, Subnet)}
        self._sizes = sorted(sizes)
        self._hosts = {host: self._around_host(key) for host, key in self._keys.items()}

    def pattern(self, acl: AclBinding) -> PatternKey:
        """Return the resource pattern of an ACL."""
        return acl.resource_type, acl.pattern_type, acl.resource_name

    def patterns(self, acl: AclBinding) -> list[PatternKey]:
        """Return the patterns that hold each resource of an ACL's, widest first, its own last."""
        kind, name, own = acl.resource_type, acl.resource_name, acl.pattern_type
        # The name * of a LITERAL is no name that begins like others.
        if (own, name) == _EVERYTHING:
            return [(kind, *_EVERYTHING)]
        longest = len(name) - (own is PatternType.PREFIXED)
        return [
            (kind, *_EVERYTHING),
            *(
                (kind, PatternType.PREFIXED, name[:length])
                for length in self._lengths[kind]
                if length <= longest
            ),
            (kind, own, name),
        ]

    def principals(self, acl: AclBinding) -> tuple[str, ...]:
        """Return the principals that mean whom an ACL means, widest first, its own last."""
        if acl.principal == WILDCARD_PRINCIPAL:
            return (WILDCARD_PRINCIPAL,)
        return WILDCARD_PRINCIPAL, acl.principal

    def host(self, acl: AclBinding) -> HostKey:
        """Return what the host of an ACL means, however it is written."""
        return self._keys[acl.host]

    def hosts(self, acl: AclBinding) -> tuple[HostKey, ...]:
        """Return the hosts that hold those of an ACL, widest first, its own last."""
        return self._hosts[acl.host]

    def _around_host(self, key: HostKey) -> tuple[HostKey, ...]:
        if key == WILDCARD:
            return (WILDCARD,)
        if isinstance(key, Subnet):
            around = [_widened(key, size) for size in self._sizes if _is_wider(size, key.size)]
            return (WILDCARD, *around, key)
        if isinstance(key, Overlooked):
            return (WILDCARD, key.address, key)
        return (WILDCARD, *enclosing_subnets(key, self._sizes), key)


def kafka_overlooks(host: str) -> bool:
    """Tell whether a host is an address in a form that no peer has to Kafka.

    Kafka compares an ACL's host with what Java prints for the peer's address: IPv6 with all eight
    groups, without leading zeros, and an IPv4 address as such even if it came mapped into IPv6.
    """
    return host != WILDCARD and host != _java_text(host)


@lru_cache(maxsize=4096)
def _java_text(host: str) -> str:
    text = canonical(host)
    try:
        address = ip_address(text)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return text
    words = struct.unpack(">8H", address.packed)
    groups = ":".join(f"{word:x}" for word in words)
    return groups if address.scope_id is None else f"{groups}%{address.scope_id}"


def _host_key(host: str, cidr: bool) -> HostKey:
    if host == WILDCARD:
        return host
    if not cidr:
        # Only our broker has subnets: where there are none, this may be the ACLs of a Kafka.
        return Overlooked(canonical(host)) if kafka_overlooks(host) else canonical(host)
    found = subnet(host)
    if found is None:
        return canonical(host)
    if found.size == SubnetSize(4, _IPV4_BITS):
        return str(ip_address(found.prefix.to_bytes(4)))
    return found


def _is_wider(size: SubnetSize, than: SubnetSize) -> bool:
    return size.version == than.version and size.prefix_length < than.prefix_length


def _widened(inner: Subnet, size: SubnetSize) -> Subnet:
    return Subnet(size, inner.prefix >> (inner.size.prefix_length - size.prefix_length))
