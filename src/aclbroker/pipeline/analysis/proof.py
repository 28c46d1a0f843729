"""Removes ACLs only as far as that opens nothing: no request, asked or not, becomes allowed.

What is proven is a comparison of all requests (`acl.reasoning.difference`), by regions. It is
made under each reading of hosts that a cluster may have, since the ACLs may be those of a Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
)
from aclbroker.acl.hosts import subnet
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import NAMED_BY
from aclbroker.acl.reasoning.difference import Compared, compare
from aclbroker.acl.reasoning.lint.scopes import kafka_form, said_by
from aclbroker.acl.reasoning.regions import Region, Request
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.opened import ChangedRights, Opened, rules_of

_NOBODY: Final = "nobody's"
"""A host that is no address, and so matches no peer."""


class Removed(NamedTuple):
    """What is left when ACLs are removed: it allows nothing that was denied before.

    ``put_back`` are ACLs that were to go, but without which something would open. ``changed`` are
    the requests that were allowed and now are not; there are no others.
    """

    remaining: Ruleset
    put_back: set[AclBinding]
    changed: Opened


def is_overlooked(host: str) -> bool:
    """Tell whether a host is an address in a form that no peer has to Kafka, which compares texts.

    Kafka prints IPv6 with all eight groups, without leading zeros, and an IPv4 address as such even
    if it came mapped into IPv6.
    """
    return host not in (WILDCARD, kafka_form(host))


def readings(rules: Ruleset) -> Iterator[Rules]:
    """Yield the rules as they are given, and as hosts may be read otherwise, by `other_readings`.

    Each has its ACLs in the same places.
    """
    yield rules_of(rules)
    for read in other_readings(rules):
        yield rules_of(read(rules))


Reading = Callable[[Ruleset], Ruleset]
"""Returns rules as their hosts may be read; the ACLs stay in their places."""


def other_readings(rules: Ruleset) -> list[Reading]:
    """Return how hosts may be read otherwise than they are given.

    Without ``cidr`` these may be the ACLs of a Kafka, to which some forms of an address are
    nobody's; or the setting was forgotten, and what is written as a subnet is one.
    """
    found: list[Reading] = []
    if not rules.cidr and any(is_overlooked(acl.host) for acl in rules.acls):
        found.append(on_kafka)
    if not rules.cidr and any(subnet(acl.host) is not None for acl in rules.acls):
        found.append(with_subnets)
    return found


def as_given(rules: Ruleset) -> Ruleset:
    """Return rules whose hosts are what they are given as."""
    return rules


def on_kafka(rules: Ruleset) -> Ruleset:
    """Return rules in which no address is in a form that Kafka overlooks."""
    return replace(rules, acls=tuple(map(_of_kafka, rules.acls)))


def with_subnets(rules: Ruleset) -> Ruleset:
    """Return rules in which hosts in CIDR notation are subnets."""
    return replace(rules, cidr=True)


def _of_kafka(acl: AclBinding) -> AclBinding:
    return acl._replace(host=_NOBODY) if is_overlooked(acl.host) else acl


def removed(rules: Ruleset, going: Collection[AclBinding]) -> Removed:
    """Remove those of the ACLs ``going`` without which nothing opens, however hosts are read."""
    left = set(going).intersection(rules.acls)
    put_back: set[AclBinding] = set()
    while True:
        found: list[Compared] = []
        back: set[AclBinding] = set()
        for reading in readings(rules):
            as_read = dict(zip(rules.acls, reading.acls, strict=True))
            kept = {as_read[acl] for acl in rules.acls if acl not in left}
            compared = compare(reading, replace(reading, acls=sorted(kept)))
            gone: dict[AclBinding, list[AclBinding]] = {}
            for acl in left:
                gone.setdefault(as_read[acl], []).append(acl)
            back.update(_behind(compared, reading, gone))
            found.append(compared)
        if not back:
            remaining = rules.with_acls(set(rules.acls) - left)
            return Removed(remaining, put_back, _changed(found[0]))
        put_back |= back
        left -= back


def _changed(compared: Compared) -> Opened:
    return Opened(
        tuple(
            ChangedRights(is_gained, region, region.example(compared.named))
            for is_gained, region in compared.differences
        )
    )


def _behind(
    compared: Compared, rules: Rules, gone: Mapping[AclBinding, list[AclBinding]]
) -> Iterator[AclBinding]:
    """Yield the ACLs without which something opens; ``gone`` maps those as read to all such."""
    index = AclIndex(gone, cidr=rules.cidr)
    for is_gained, region in compared.differences:
        for request in _requests(region, compared.named) if is_gained else ():
            for acl in _closing(request, rules, index):
                yield from gone[acl]


def _requests(region: Region, named: Collection[str]) -> Iterator[Request]:
    """Yield a request for everybody, every host and every operation that a region tells apart."""
    example = region.request(named)
    principals = region.principals
    names = (example.principal,) if principals.is_everyone else principals.names
    for principal, host, operation in product(
        names, region.cut.examples(region.mask), region.operations
    ):
        request = example._replace(principal=principal, host=host, operation=operation)
        # On that name it may not be true of every one of the principals.
        if request in region:
            yield request


def _closing(request: Request, rules: Rules, gone: AclIndex) -> list[AclBinding]:
    """Return those of the ACLs gone that kept a request closed: DENYs, else the last ACL there."""
    _, _, operation, resource_type, name = request
    peer = rules.session(request.principal, request.host).peer
    denying = [
        acl
        for acl in gone.bindings_for(peer, resource_type, name)
        if acl.permission == AclPermission.DENY and NAMED_BY[operation] >> acl.operation & 1
    ]
    if denying:
        return denying
    matching = gone.find(AclFilter(resource_type, name, PatternType.MATCH))
    return [min(matching, key=harm)]


Extent = tuple[bool, int, int, int]
Breadth = tuple[Extent, AclOperation]


def harm(acl: AclBinding) -> tuple[bool, Breadth]:
    """Return a key to sort ACLs by what comes of keeping one: a DENY first, then who says least."""
    return acl.permission == AclPermission.ALLOW, breadth(acl)


def breadth(acl: AclBinding) -> Breadth:
    """Return a key to sort ACLs by how much they say, which is another one for each operation."""
    return extent(acl), acl.operation


def extent(acl: AclBinding) -> Extent:
    """Return how much an ACL says: of whom, which names, hosts, and how many operations.

    The operations are those that it allows or denies, implied ones among them: ALTER says more than
    DESCRIBE, which it implies, and as much as READ.
    """
    literal = acl.pattern_type == PatternType.LITERAL
    if acl.resource_name == WILDCARD and literal:
        names = 1
    else:
        names = -len(acl.resource_name) if not literal else -(1 << 30)
    return (
        acl.principal == WILDCARD_PRINCIPAL,
        names,
        host_breadth(acl.host),
        said_by(acl).bit_count(),
    )


def host_breadth(host: str) -> int:
    """Return how many bits of an address are free; more than in any subnet if it is any host."""
    if host == WILDCARD:
        return 129
    found = subnet(host)
    if found is None:
        return 0
    version, length = found.size
    return (32 if version == 4 else 128) - length
