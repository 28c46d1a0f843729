"""Parses `listeners` and `advertised.listeners` with the rules of Kafka's SocketServerConfigs."""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

# A dot in the name would make `listener.name.<listener>.` ambiguous.
_ENDPOINT = re.compile(r"([^.:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


class Endpoint(NamedTuple):
    """A listener's name in upper case, its host (None: none was written) and its port."""

    name: str
    host: str | None
    port: int


def parse_endpoints(items: Iterable[str]) -> list[Endpoint]:
    """The endpoints in order.

    Raises ValueError for one that is no endpoint and for a name that is there twice.
    """
    endpoints = [_parse(item) for item in items]
    seen = set()
    for endpoint in endpoints:
        if endpoint.name in seen:
            raise ValueError(f"listener {endpoint.name!r} is there twice")
        seen.add(endpoint.name)
    return endpoints


def _parse(text: str) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not NAME://HOST:PORT")
    name, host, port = match[1].strip().upper(), match[2], int(match[3])
    if not 0 <= port <= 65535:
        raise ValueError(f"{text!r} has a port that is not from 0 to 65535")
    if ":" in host and address_of(host) is None:
        raise ValueError(f"{text!r} has a host that is not an IPv6 address")
    return Endpoint(name, host or None, port)


def refuse_shared_ports(endpoints: Iterable[Endpoint]) -> None:
    """Raise ValueError if two endpoints have one port, unless one is IPv4 and the other IPv6."""
    hosts_of_port = defaultdict(list)
    for endpoint in endpoints:
        if endpoint.port:
            hosts_of_port[endpoint.port].append(endpoint.host)
    for port, hosts in hosts_of_port.items():
        addresses = [address_of(host) for host in hosts]
        versions = {address.version for address in addresses if address is not None}
        both_kinds = None not in addresses and versions == {4, 6}
        if len(hosts) > 1 and not (len(hosts) == 2 and both_kinds):
            raise ValueError(
                f"port {port} is there twice, which only one IPv4 and one IPv6 address may have"
            )


def address_of(host: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The host as an address, None if it is a name or every interface."""
    try:
        return ipaddress.ip_address(host or "")
    except ValueError:
        return None


def is_loopback(host: str | None) -> bool:
    """Whether only this machine can reach the host."""
    address = address_of(host)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return host == "localhost" if address is None else address.is_loopback


def is_every_interface(host: str) -> bool:
    """Whether the host is 0.0.0.0 or ::, which nobody can connect to from elsewhere."""
    address = address_of(host)
    return address is not None and address.is_unspecified
