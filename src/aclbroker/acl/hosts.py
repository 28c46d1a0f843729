"""Hosts of ACLs as addresses and subnets (KIP-252), not as text.

Kafka compares the text of an ACL's host with what Java prints for the peer's address, so that an
ACL for ``::1`` never matches there. Here both are brought to one form first. A host that is neither
an address nor a subnet stays as it is.

The address of a link-local peer has a zone, the interface that it came by: ``fe80::1%eth0`` (RFC
4007). An ACL without a zone is for the address on every interface, one with a zone for it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from typing import NamedTuple

from aclbroker.acl.bindings import WILDCARD


class SubnetSize(NamedTuple):
    """The IP version (4 or 6) and the prefix length in bits of a subnet."""

    version: int
    prefix_length: int


class Subnet(NamedTuple):
    """A subnet: its size, and the leading bits that all its addresses share, as a number."""

    size: SubnetSize
    prefix: int


def canonical(host: str) -> str:
    """Return the one text of an address, however it was written; any other text unchanged.

    An IPv4 address mapped into IPv6 (``::ffff:a.b.c.d``) becomes the IPv4 address.
    """
    if ":" not in host:
        # There is one way to write an IPv4 address, and none of IPv6 is without colons.
        return host
    address = _address(host)
    return host if address is None else str(address)


def without_zone(address: str) -> str:
    """Return an address in canonical form without its zone; a text that has none unchanged."""
    return address.partition("%")[0] if "%" in address and _address(address) else address


def subnet(host: str) -> Subnet | None:
    """Return the subnet that a host in CIDR notation names, None if it is not in that notation.

    Bits behind the prefix are ignored: ``10.1.2.3/16`` is ``10.1.0.0/16``.
    """
    _, slash, length = host.partition("/")
    # ip_network would also take a netmask, which is not CIDR notation.
    if not slash or not (length.isascii() and length.isdigit()):
        return None
    try:
        network = ip_network(host, strict=False)
    except ValueError:
        return None
    first = network.network_address
    if isinstance(first, IPv6Address) and first.ipv4_mapped:
        network = IPv4Network((first.ipv4_mapped, network.prefixlen - 96))
    return _subnet(network.network_address, SubnetSize(network.version, network.prefixlen))


def matches_nobody(host: str) -> bool:
    """Return whether an ACL's host is no address, subnet or ``*``, so that no peer ever has it.

    Kafka accepts such hosts: a name, an address with a blank, a prefix that is too long.
    """
    return host != WILDCARD and _address(host) is None and subnet(host) is None


def host_fault(host: str, *, cidr: bool) -> str | None:
    """Tell why an ACL's host can match no client; None if it can. ``cidr`` allows subnets."""
    if matches_nobody(host):
        subnets = ", a subnet such as 10.1.0.0/16" if cidr else ""
        return f"is no host that a client can have: write an IP address{subnets}, or * for all"
    if not cidr and subnet(host) is not None:
        return (
            "is a subnet, and aclbroker.acl.host.cidr is false: "
            "write an ACL for each IP address, or set it to true"
        )
    return None


def is_malformed_subnet(host: str) -> bool:
    """Return whether a host has the slash of CIDR notation and names no subnet (KIP-1276)."""
    return "/" in host and subnet(host) is None


def enclosing_subnets(host: str, sizes: Iterable[SubnetSize]) -> list[Subnet]:
    """Return the subnet of each size that an address lies in; none if the host is no address."""
    address = _address(host)
    if address is None:
        return []
    return [_subnet(address, size) for size in sizes if size.version == address.version]


@lru_cache(maxsize=1024)
def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def _subnet(address: IPv4Address | IPv6Address, size: SubnetSize) -> Subnet:
    return Subnet(size, int(address) >> (address.max_prefixlen - size.prefix_length))
