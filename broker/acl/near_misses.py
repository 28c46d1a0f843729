"""Which ACLs nearly allow what is denied: those on the resource for another host or operation.

They answer why somebody was denied. Anybody can be denied often, so the work is bounded, whatever
ACLs there are: where there are many, not all are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final

from aclbroker.broker.acl.authorizer import Peer
from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.operations import ALLOWED_BITS, GRANTED_BY, pairs
from aclbroker.broker.acl.permissions import Permissions, Principals

_MOST_SHOWN: Final = 3
_MOST_FOUND: Final = 50
_MOST_LOOKUPS: Final = 250
"""How many patterns are looked up, which takes 0.4 ms."""


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
