"""Which ACLs nearly allow what is denied: those on the resource for another host or operation.

Where any resource of a type would do (KIP-679), they are those on any of them, with the DENYs that
take away what another ACL allows.

They answer why somebody was denied. Anybody can be denied often, so the work is bounded, whatever
ACLs there are: where there are many, not all are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Final

from aclbroker.broker.acl.authorizer import Peer
from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.operations import ALLOWED_BITS, DENIED_SHIFT, GRANTED_BY, NAMED_BY, pairs
from aclbroker.broker.acl.permissions import Permissions, Principals

_MOST_SHOWN: Final = 3
_MOST_FOUND: Final = 50
_MOST_LOOKUPS: Final = 250
"""How many patterns are looked up, which takes 0.4 ms."""

_MOST_OF_ONE: Final = 50
"""How many of those may be of one principal and host, so that others are looked at, too."""


def near_misses(
    principals: Principals,
    peer: Peer,
    lengths: Sequence[int],
    operation: AclOperation,
    resource: tuple[ResourceType, str],
) -> list[AclBinding]:
    """Return up to three ALLOWs of a peer's principals, or of everyone, on a resource.

    First come those that grant the operation to another host, then those of another operation for
    the peer's own, then those that differ in both. ``lengths`` are those of the names of PREFIXED
    patterns, ``resource`` is of the type that ``principals`` are of.
    """
    resource_type, resource_name = resource
    matching = {id(each) for each in principals.matching(*peer)}
    ranked: list[tuple[int, AclBinding]] = []
    looked_up = _looked_up(principals, peer[0], lengths, resource_name)
    for permissions, pattern_type, name in islice(looked_up, _MOST_LOOKUPS):
        found = permissions.of_type(pattern_type).get(name, 0) & ALLOWED_BITS
        pattern_of = resource_type, name, pattern_type, permissions.principal, permissions.host
        for each, permission in pairs(found):
            grants = GRANTED_BY[operation] >> each & 1
            rank = 2 * (not grants) - (id(permissions) in matching)
            ranked.append((rank, AclBinding(*pattern_of, each, permission)))
        if len(ranked) >= _MOST_FOUND:
            break
    ranked.sort(key=itemgetter(0))
    return [binding for _, binding in ranked[:_MOST_SHOWN]]


def near_misses_of_any(
    principals: Principals, peer: Peer, operation: AclOperation, resource_type: ResourceType
) -> list[AclBinding]:
    """Return up to three ACLs of a peer's principals, or of everyone, on resources of a type.

    First come ALLOWs of the operation for the peer, which a DENY takes away, and the DENYs of it;
    then ALLOWs of it for another host, then those of another operation for the peer's own, then
    those that differ in both. DENYs that take nothing away come behind ALLOWs of the operation.
    ``principals`` are those of the type.
    """
    matching = {id(each) for each in principals.matching(*peer)}
    named = NAMED_BY[operation]
    ranks: list[list[AclBinding]] = [[] for _ in range(4)]
    denials: list[AclBinding] = []
    for permissions, pattern_type, name, found in _any_of(principals, peer[0], named):
        is_own = id(permissions) in matching
        shown = ALLOWED_BITS | (named << DENIED_SHIFT if is_own else 0)
        pattern_of = resource_type, name, pattern_type, permissions.principal, permissions.host
        for each, permission in pairs(found & shown):
            is_denial = permission is AclPermission.DENY
            rank = 2 * (not named >> each & 1) + (not is_own)
            of_rank = denials if is_denial else ranks[rank]
            if len(of_rank) < _MOST_SHOWN:
                of_rank.append(AclBinding(*pattern_of, each, permission))
    ranks.insert(1 if ranks[0] else 2, denials)
    return list(islice(chain.from_iterable(ranks), _MOST_SHOWN))


def _any_of(
    principals: Principals, names: Sequence[str], bits: int
) -> Iterator[tuple[Permissions, PatternType, str, int]]:
    """Return some patterns of each who may have some, and what is said of them.

    Those who ever had one of the allowed ``bits`` come first.
    """
    of_each = (principals.of_principal(each) for each in (*names, WILDCARD_PRINCIPAL))
    some = list(islice(chain.from_iterable(of_each), _MOST_LOOKUPS))
    some.sort(key=lambda permissions: not permissions.ever & bits)
    patterns = chain.from_iterable(islice(_patterns(each), _MOST_OF_ONE) for each in some)
    return islice(patterns, _MOST_LOOKUPS)


def _patterns(permissions: Permissions) -> Iterator[tuple[Permissions, PatternType, str, int]]:
    for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
        for name, found in permissions.of_type(pattern_type).items():
            yield permissions, pattern_type, name, found


def _looked_up(
    principals: Principals, names: Sequence[str], lengths: Sequence[int], resource_name: str
) -> Iterator[tuple[Permissions, PatternType, str]]:
    """Return the patterns that match the resource, for each who may have some."""
    for principal in (*names, WILDCARD_PRINCIPAL):
        for permissions in principals.of_principal(principal):
            yield permissions, PatternType.LITERAL, resource_name
            yield permissions, PatternType.LITERAL, WILDCARD
            if permissions.prefixed:
                for length in lengths:
                    if length > len(resource_name):
                        break
                    yield permissions, PatternType.PREFIXED, resource_name[:length]
