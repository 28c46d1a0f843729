"""All addresses that a peer can have, cut into regions by the hosts that ACLs name.

A region is an address or a subnet without what is named inside of it, or any other address. A set
of regions is an integer with a bit for each, so that sets of hosts are joined by ``|`` and ``&``.
Hosts of ACLs that are no address match no peer, and so are of no region.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from aclbroker.acl.bindings import WILDCARD
from aclbroker.acl.hosts import canonical, subnet

_BITS: Final = {4: 32, 6: 128}
_MAPPED: Final = (0xFFFF << 32, (0xFFFF << 32) + (1 << 32) - 1)
"""The IPv6 addresses that are IPv4 ones to the authorizer, and so are no peer's."""

_EXAMPLES: Final = ("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1")

_MOST_KNOWN: Final = 65_536
"""How many peers' addresses are remembered with their regions."""


class HostArea(NamedTuple):
    """A host as ACLs name it, ``*`` for any, without other hosts that lie in it."""

    host: str
    exceptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = "any host" if self.host == WILDCARD else self.host
        return f"{name} but {', '.join(self.exceptions)}" if self.exceptions else name


class _Span(NamedTuple):
    """Addresses that follow each other; in order, each stands before those that lie in it.

    With a zone it is one address as it is reached by one interface.
    """

    version: int
    first: int
    wide: int
    """Minus the number of addresses, so that the widest comes first."""

    zone: str

    @property
    def last(self) -> int:
        return self.first - self.wide - 1

    def holds(self, other: _Span) -> bool:
        """Tell whether all of another span lies in this one."""
        return (
            not self.zone
            and self.version == other.version
            and self.first <= other.first
            and other.last <= self.last
        )


class HostCut:
    """The regions that some hosts make. With ``cidr``, hosts in CIDR notation are subnets."""

    def __init__(self, hosts: Iterable[str], cidr: bool) -> None:
        self._masks: dict[tuple[str, bool], int] = {}
        self._known: dict[str, int] = {}
        self._cidr = cidr
        spans = {span for host in set(hosts) if (span := _span(host, cidr)) is not None}
        self._spans: list[_Span | None] = [None, *sorted(spans)]
        self._numbers = {span: number for number, span in enumerate(self._spans)}
        self._parents = [-1]
        self._ends = [len(self._spans)] * len(self._spans)
        self._nest()
        self._examples = [self._example(number) for number in range(len(self._spans))]
        self._places = [0]
        for example in self._examples:
            self._places.append(self._places[-1] + (example is not None))
        self.everywhere = self._cover(0)
        """All regions that hold an address."""

    def _nest(self) -> None:
        stack: list[int] = []
        self._children: list[list[_Span]] = [[] for _ in self._spans]
        for number, span in enumerate(self._spans):
            if span is None:
                continue
            while stack and not _held(self._spans[stack[-1]], span):
                self._ends[stack.pop()] = number
            parent = stack[-1] if stack else 0
            self._parents.append(parent)
            if not span.zone:
                self._children[parent].append(span)
            stack.append(number)

    def _cover(self, number: int) -> int:
        """Return the regions in the span of a number, its own among them."""
        start, end = self._places[number], self._places[self._ends[number]]
        return ((1 << (end - start)) - 1) << start

    def mask(self, host: str, cidr: bool) -> int:
        """Return the regions that an ACL's host matches; it is one of those of this cut, or ``*``.

        Without ``cidr`` a subnet matches nobody.
        """
        if host == WILDCARD:
            return self.everywhere
        found = self._masks.get((host, cidr))
        if found is None:
            span = _span(host, cidr)
            found = 0 if span is None else self._cover(self._numbers[span])
            self._masks[host, cidr] = found
        return found

    def at(self, address: str) -> int:
        """Return the region of a peer's address, 0 if the text is no address."""
        found = self._known.get(address)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[address] = self._place_of(address)
        return found

    def _place_of(self, address: str) -> int:
        asked = _span(canonical(address), cidr=False)
        if asked is None:
            return 0
        # Of the spans that hold it, each lies in the one before: the last is the innermost.
        inner = 0
        for number, span in enumerate(self._spans):
            if span is not None and span.holds(asked):
                inner = number
        inner = self._numbers.get(asked, inner)
        return 1 << self._places[inner]

    @property
    def other(self) -> str | None:
        """An address that no host of this cut names or holds; None if they hold all."""
        return self._examples[0]

    def example(self, mask: int) -> str:
        """Return an address of the first region of a set that has any."""
        number = (mask & -mask).bit_length() - 1
        return next(
            example
            for place, example in zip(self._places, self._examples, strict=False)
            if place == number and example is not None
        )

    def examples(self, mask: int) -> Iterator[str]:
        """Return an address of each region of a set."""
        for place, example in zip(self._places, self._examples, strict=False):
            if example is not None and mask >> place & 1:
                yield example

    def areas(self, mask: int) -> tuple[HostArea, ...]:
        """Return a set of regions in as few words as hosts and exceptions allow."""
        shown: list[bool] = []
        tops: list[int] = []
        exceptions: dict[int, list[str]] = {}
        for number, parent in enumerate(self._parents):
            inherited = shown[parent] if number else False
            is_shown = bool(mask >> self._places[number] & 1)
            if self._examples[number] is None:
                # What lies in it is all there is of it.
                is_shown = not self._cover(number) & ~mask
            shown.append(is_shown)
            if is_shown == inherited:
                tops.append(tops[parent] if number else 0)
                continue
            tops.append(number)
            if is_shown:
                exceptions[number] = []
            else:
                exceptions[tops[parent]].append(self._text(number))
        return tuple(
            HostArea(self._text(top), tuple(without)) for top, without in exceptions.items()
        )

    def _text(self, number: int) -> str:
        span = self._spans[number]
        if span is None:
            return WILDCARD
        address = _address(span.version, span.first)
        if span.zone:
            return f"{address}%{span.zone}"
        length = _BITS[span.version] - (-span.wide).bit_length() + 1
        return address if length == _BITS[span.version] else f"{address}/{length}"

    def _example(self, number: int) -> str | None:
        """Return an address of a region, None if what lies in it is all there is of it."""
        span = self._spans[number]
        if span is not None:
            if span.zone:
                return self._text(number)
            found = _free(span.version, span.first, span.last, self._children[number])
            return None if found is None else _address(span.version, found)
        for example in _EXAMPLES:
            asked = _span(example, cidr=False)
            if asked is not None and not any(each.holds(asked) for each in self._children[0]):
                return example
        for version, bits in _BITS.items():
            children = [each for each in self._children[0] if each.version == version]
            found = _free(version, 0, (1 << bits) - 1, children)
            if found is not None:
                return _address(version, found)
        return None


def _held(outer: _Span | None, inner: _Span) -> bool:
    return outer is not None and outer.holds(inner)


def _span(host: str, cidr: bool) -> _Span | None:
    """Return the addresses that an ACL's host matches; None for ``*``, and if it matches nobody."""
    found = subnet(host) if cidr else None
    if found is not None:
        version, length = found.size
        free = _BITS[version] - length
        return _Span(version, found.prefix << free, -(1 << free), "")
    try:
        address = ip_address(canonical(host))
    except ValueError:
        return None
    zone = address.scope_id or "" if isinstance(address, IPv6Address) else ""
    return _Span(address.version, int(address), -1, zone)


def _address(version: int, number: int) -> str:
    return str(IPv4Address(number) if version == 4 else IPv6Address(number))


def _free(version: int, first: int, last: int, taken: Iterable[_Span]) -> int | None:
    """Return an address of a range that no span holds, not its very first if there is another."""
    ranges = [(span.first, span.last) for span in taken]
    if version == 6:
        ranges = sorted([*ranges, _MAPPED])
    for start in (first + 1, first):
        for low, high in ranges:
            if start < low:
                break
            start = max(start, high + 1)
        if start <= last:
            return start
    return None
