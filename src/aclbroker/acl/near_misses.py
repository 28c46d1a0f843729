"""Which ACLs nearly allow what is denied: those on the resource for another host or operation.

Where any resource of a type would do (KIP-679), they are those on any of them, with the DENYs that
take back what another ACL allows.

They answer why somebody was denied. Anybody can be denied often, so the work is bounded, whatever
ACLs there are: where there are many, not all are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import Peer
from aclbroker.acl.bindings import (
    DENY,
    LITERAL,
    PREFIXED,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import ALLOWED_BITS, DENIED_SHIFT, GRANTED_BY, NAMED_BY, pairs
from aclbroker.acl.permissions import Permissions, Principals
from aclbroker.acl.reasons import NearMiss, why_not

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
) -> list[NearMiss]:
    """Return up to three ALLOWs of a peer's principals, or of everyone, on a resource.

    First come those that grant the operation to another host, then those of another operation for
    the peer's own, then those that differ in both. ``lengths`` are those of the names of PREFIXED
    patterns, ``resource`` is of the type that ``principals`` are of.
    """
    resource_type, resource_name = resource
    matching = {id(each) for each in principals.matching(*peer)}
    ranked: list[tuple[int, AclBinding]] = []
    who = chain.from_iterable(map(principals.of_principal, (*peer[0], WILDCARD_PRINCIPAL)))
    looked_up = _looked_up(who, lengths, resource_name)
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
    # The ranks of what the peer's own host has are odd.
    return [
        NearMiss(acl, why_not(acl, operation, is_own_host=rank % 2 == 1))
        for rank, acl in ranked[:_MOST_SHOWN]
    ]


class Decisive(NamedTuple):
    """The DENYs of an operation on a resource for a peer, and whether an ALLOW grants it."""

    denials: tuple[AclBinding, ...]
    is_granted: bool


def decisive(
    principals: Principals,
    peer: Peer,
    lengths: Sequence[int],
    operation: AclOperation,
    resource: tuple[ResourceType, str],
) -> Decisive | None:
    """Return what decides an operation of a peer on a resource; None if that is too much to tell.

    It is where there are more than three DENYs, or too many patterns to look at.
    """
    resource_type, resource_name = resource
    denials: dict[AclBinding, None] = {}
    granted = 0
    looked_up = _looked_up(principals.matching(*peer), lengths, resource_name)
    for number, (permissions, pattern_type, name) in enumerate(looked_up):
        found = permissions.of_type(pattern_type).get(name, 0)
        granted |= found & GRANTED_BY[operation]
        pattern_of = resource_type, name, pattern_type, permissions.principal, permissions.host
        denied = found & NAMED_BY[operation] << DENIED_SHIFT
        # The name * is looked up twice, and so is who stands twice in a session.
        denials |= {AclBinding(*pattern_of, *each): None for each in pairs(denied)}
        if len(denials) > _MOST_SHOWN or number == _MOST_LOOKUPS:
            return None
    return Decisive(tuple(denials), bool(granted))


def near_misses_of_any(
    principals: Principals, peer: Peer, operation: AclOperation, resource_type: ResourceType
) -> list[NearMiss]:
    """Return up to three ACLs of a peer's principals, or of everyone, on resources of a type.

    First come ALLOWs of the operation for the peer, which a DENY takes back, and the DENYs of it;
    then ALLOWs of it for another host, then those of another operation for the peer's own, then
    those that differ in both. DENYs that take nothing back come behind ALLOWs of the operation.
    ``principals`` are those of the type.
    """
    matching = {id(each) for each in principals.matching(*peer)}
    named = NAMED_BY[operation]
    ranks: list[list[NearMiss]] = [[] for _ in range(4)]
    denials: list[NearMiss] = []
    for permissions, pattern_type, name, found in _any_of(principals, peer[0], named):
        is_own = id(permissions) in matching
        shown = ALLOWED_BITS | (named << DENIED_SHIFT if is_own else 0)
        pattern_of = resource_type, name, pattern_type, permissions.principal, permissions.host
        for each, permission in pairs(found & shown):
            is_denial = permission is DENY
            rank = 2 * (not named >> each & 1) + (not is_own)
            of_rank = denials if is_denial else ranks[rank]
            if len(of_rank) < _MOST_SHOWN:
                acl = AclBinding(*pattern_of, each, permission)
                of_rank.append(NearMiss(acl, why_not(acl, operation, is_own_host=is_own)))
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
    for pattern_type in (LITERAL, PREFIXED):
        for name, found in permissions.of_type(pattern_type).items():
            yield permissions, pattern_type, name, found


def _looked_up(
    who: Iterable[Permissions], lengths: Sequence[int], resource_name: str
) -> Iterator[tuple[Permissions, PatternType, str]]:
    """Return the patterns that match the resource, for each who may have some."""
    for permissions in who:
        yield permissions, LITERAL, resource_name
        yield permissions, LITERAL, WILDCARD
        if permissions.prefixed:
            for length in lengths:
                if length > len(resource_name):
                    break
                yield permissions, PREFIXED, resource_name[:length]
