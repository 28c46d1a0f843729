"""The scopes of ACLs: for whom, from where and on which names one holds.

Of two resource patterns, or of two hosts, one holds all that the other does, or they have nothing
in common. So what lies around an ACL is found by a few lookups, and no pair of ACLs is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.acl.hosts import canonical, subnet
from aclbroker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.acl.reasoning.names import PREFIX, ROOT, Key, key_of
from aclbroker.acl.reasoning.rules import TYPES, matches, operations_of

Pattern = tuple[ResourceType, Key]
"""A resource pattern. All of the cluster are one, since it has only one resource."""

NOWHERE: Final = -1
"""The number of hosts that match nobody."""

ANYWHERE: Final = 0
"""The number of the host ``*``."""

_BITS: Final = {4: 32, 6: 128}
_MAPPED: Final = 1 << 32
_MAPPED_LENGTH: Final = 96
_MAPPED_PREFIX: Final = 0xFFFF
"""``::ffff:0:0/96``: so many IPv6 addresses are IPv4 ones to the authorizer, and so no peer's."""


def pattern_of_acl(acl: AclBinding) -> Pattern | None:
    """Return the pattern of an ACL; None for one of a cluster of another name: there is none."""
    kind = acl.resource_type
    if kind is not ResourceType.CLUSTER:
        return kind, key_of(acl.pattern_type, acl.resource_name)
    return (kind, ROOT) if matches(acl, kind, CLUSTER_NAME) else None


def _said(kind: ResourceType, operation: AclOperation, permission: AclPermission) -> int:
    sources = GRANTED_BY if permission is AclPermission.ALLOW else NAMED_BY
    return sum(1 << each for each in operations_of(kind) if sources[each] >> operation & 1)


_SAID: Final = {
    (kind, operation, permission): _said(kind, operation, permission)
    for kind in TYPES
    for operation in AclOperation
    for permission in (AclPermission.ALLOW, AclPermission.DENY)
}


def said_by(acl: AclBinding) -> int:
    """Return the operations that an ACL allows or denies, as bits: those that are ever asked."""
    return _SAID[acl.resource_type, acl.operation, acl.permission]


_ASKED: Final = {kind: frozenset(operations_of(kind)) for kind in TYPES}


def is_asked(acl: AclBinding) -> bool:
    """Tell whether the operation of an ACL is itself one that requests ask for; ALL is not."""
    return acl.operation in _ASKED[acl.resource_type]


def is_named_user(principal: str) -> bool:
    """Tell whether a principal is one user's, whose sessions have no other user's beside it."""
    return principal.startswith("User:") and principal != WILDCARD_PRINCIPAL


@lru_cache(maxsize=65536)
def kafka_form(host: str) -> str:
    """Return a host as Kafka compares it: an address as Java prints it, all else as it is.

    Java prints all eight groups of an IPv6 address, without leading zeros, and an IPv4 address that
    is mapped into IPv6 as such.
    """
    try:
        address = ip_address(canonical(host))
    except ValueError:
        return host
    if isinstance(address, IPv4Address):
        return str(address)
    digits = f"{int(address):032x}"
    groups = (digits[at : at + 4].lstrip("0") or "0" for at in range(0, len(digits), 4))
    zone = f"%{address.scope_id}" if address.scope_id else ""
    return ":".join(groups) + zone


class _Span(NamedTuple):
    """The addresses that share leading bits; with a zone, one address as one interface reaches it.

    ``is_overlooked`` stands for an address in a form that Kafka never matches: it lies in the
    address, so that an ACL which works on this broker alone never makes another superfluous.
    """

    version: int
    length: int
    prefix: int
    zone: str = ""
    is_overlooked: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a subnet or an address, however it came by."""
        return not self.zone and not self.is_overlooked

    def size(self) -> int:
        """Return the number of addresses that peers may have."""
        size = 1 << (_BITS[self.version] - self.length)
        shorter = _MAPPED_LENGTH - self.length
        has_mapped = self.version == 6 and shorter >= 0 and self.prefix == _MAPPED_PREFIX >> shorter
        return size - _MAPPED if has_mapped else size


_EVERYWHERE: Final = _Span(0, 0, 0)


def _span(host: str, cidr: bool) -> _Span | None:
    """Return what the host of an ACL matches, None if it is nobody."""
    if host == WILDCARD:
        return _EVERYWHERE
    found = subnet(host) if cidr else None
    if found is not None:
        return _Span(*found.size, found.prefix)
    try:
        address = ip_address(canonical(host))
    except ValueError:
        return None
    zone = address.scope_id or "" if isinstance(address, IPv6Address) else ""
    # Subnets are this broker's alone; without them, this may be a Kafka.
    is_overlooked = not cidr and kafka_form(host) != host
    return _Span(address.version, _BITS[address.version], int(address), zone, is_overlooked)


class HostTree:
    """The hosts that ACLs name, by number, and which lie around which."""

    def __init__(self, hosts: Iterable[str], cidr: bool) -> None:
        spans = {host: _span(host, cidr) for host in {WILDCARD, *hosts}}
        known = sorted({span for span in spans.values() if span is not None})
        self._numbers = {span: number for number, span in enumerate(known)}
        self._of_host = {
            host: NOWHERE if span is None else self._numbers[span] for host, span in spans.items()
        }
        sizes = {(span.version, span.length) for span in known}
        self._lengths = {
            version: sorted(length for each, length in sizes if each == version)
            for version in (0, *_BITS)
        }
        self._around = [tuple(self._widening(span)) for span in known]
        self._tiles = self._filled(known)

    def number(self, host: str) -> int:
        """Return the number of a host as ACLs write it; `NOWHERE` if it matches nobody."""
        return self._of_host[host]

    def around(self, number: int) -> tuple[int, ...]:
        """Return the hosts that hold one, widest first, itself last."""
        return self._around[number]

    def tiles(self, number: int) -> Sequence[int]:
        """Return the hosts in one that together are all of it; none if there is anything else."""
        return self._tiles.get(number, ())

    def _widening(self, span: _Span) -> Iterator[int]:
        found = [_EVERYWHERE]
        version, length, prefix, zone, is_overlooked = span
        for shorter in self._lengths[version]:
            if shorter < length:
                found.append(_Span(version, shorter, prefix >> (length - shorter)))
        if version:
            found.append(_Span(version, length, prefix))
            found.append(_Span(version, length, prefix, zone))
        if is_overlooked:
            found.append(_Span(version, length, prefix, "", True))
            found.append(span)
        for each in dict.fromkeys(found):
            if each in self._numbers:
                yield self._numbers[each]

    def _filled(self, known: Sequence[_Span]) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {}
        sizes: dict[int, int] = {ANYWHERE: 1 << _BITS[6]}
        for number, span in enumerate(known):
            if number != ANYWHERE and span.is_plain:
                sizes[number] = span.size()
                children.setdefault(self._around[number][-2], []).append(number)
        return {
            number: inner
            for number, inner in children.items()
            if sum(sizes[each] for each in inner) == sizes[number]
        }


class Scope(NamedTuple):
    """Where an ACL holds: the pattern, whom it names, and the number of its host."""

    pattern: Pattern
    principal: str
    host: int


class PatternsAround:
    """Finds the patterns around another one, among those that ACLs have."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._known = set(patterns)
        lengths: dict[ResourceType, set[int]] = {}
        for kind, (name, form) in self._known:
            if form == PREFIX:
                lengths.setdefault(kind, set()).add(len(name))
        self._lengths = {kind: sorted(each) for kind, each in lengths.items()}
        self._found: dict[Pattern, tuple[Pattern, ...]] = {}

    def __call__(self, pattern: Pattern) -> tuple[Pattern, ...]:
        """Return the patterns that hold all names of one, widest first, itself last if known."""
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = tuple(self._widening(pattern))
        return found

    def _widening(self, pattern: Pattern) -> Iterator[Pattern]:
        kind, (name, form) = pattern
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                break
            wider = kind, (name[:length], PREFIX)
            if wider in self._known:
                yield wider
        if form != PREFIX and pattern in self._known:
            yield pattern
