"""Grants that can go without any use being lost, because others allow what they are for.

Most grants are for one principal and name, from everywhere: of these none can go once their
operations are the fewest. Several may allow one use where a grant is for some hosts alone, where a
session has several principals, and where names lie in a prefix. There all uses are gone through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from aclbroker.broker.acl.authorizer import Session
from aclbroker.broker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.acl.operations import GRANTED_BY
from aclbroker.broker.reasoning.names import PREFIX, key_of
from aclbroker.pipeline.analysis.least_privilege import (
    LISTENER,
    Grantee,
    NeededGrants,
    SessionUse,
    no_host_of,
)

_IMPLIED: Final = frozenset({AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS})

_Alternatives = frozenset[AclBinding]
"""The grants of which any one allows a use."""


def without_needless(
    grants: NeededGrants,
    uses: Sequence[SessionUse],
    beside: Collection[AclBinding] = (),
    *,
    cidr: bool,
) -> NeededGrants:
    """Return the grants without those that can go: what is left is needed for some use each.

    The operations of each name must be the fewest already, as `minimized` leaves them. ``beside``
    are ALLOW ACLs that there will be in any case. ``cidr`` tells that hosts in CIDR notation are
    subnets.
    """
    shared = _Shared(grants, uses, beside)
    if not shared:
        return grants
    kept = _fewest(set(_alternatives(grants, uses, shared, frozenset(beside), cidr=cidr)))

    def left(
        granted: dict[Grantee, dict[str, int]], pattern_type: PatternType
    ) -> dict[Grantee, dict[str, int]]:
        found: dict[Grantee, dict[str, int]] = {}
        for grantee, names in granted.items():
            for name, bits in names.items():
                if pattern_type is PatternType.PREFIXED or (grantee.resource_type, name) in shared:
                    bits &= kept.get((grantee, pattern_type, name), 0)
                if bits:
                    found.setdefault(grantee, {})[name] = bits
        return found

    return NeededGrants(
        left(grants.literal, PatternType.LITERAL),
        left(grants.prefixed, PatternType.PREFIXED),
        grants.unmet,
    )


class _Shared:
    """The resources on which several grants may allow one use."""

    def __init__(
        self, grants: NeededGrants, uses: Sequence[SessionUse], beside: Collection[AclBinding]
    ) -> None:
        self._names: set[tuple[ResourceType, str]] = set()
        for grantee, names in grants.literal.items():
            if grantee.host != WILDCARD:
                self._names.update((grantee.resource_type, name) for name in names)
        for use in uses:
            if len(use.principals) > 1:
                self._names.update((use.resource_type, name) for name in use.names)
        self._prefixes = {
            (grantee.resource_type, prefix)
            for grantee, prefixes in grants.prefixed.items()
            for prefix in prefixes
        }
        for acl in beside:
            name, kind = key_of(acl.pattern_type, acl.resource_name)
            known = self._prefixes if kind == PREFIX else self._names
            known.add((acl.resource_type, name))
        self._lengths = sorted({len(prefix) for _, prefix in self._prefixes})

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes)

    def __contains__(self, resource: tuple[ResourceType, str]) -> bool:
        resource_type, name = resource
        return resource in self._names or any(
            (resource_type, name[:length]) in self._prefixes for length in self._lengths
        )


def _alternatives(
    grants: NeededGrants,
    uses: Sequence[SessionUse],
    shared: _Shared,
    beside: frozenset[AclBinding],
    *,
    cidr: bool,
) -> Iterator[_Alternatives]:
    """Yield for each use of a shared resource the grants that allow it, if any has to."""
    index = AclIndex([*grants.bindings(), *beside], cidr=cidr)
    nowhere = no_host_of([*grants.bindings(), *beside])
    for use in uses:
        names = [name for name in use.names if (use.resource_type, name) in shared]
        if not names:
            continue
        host = nowhere if use.host is None else use.host
        peer = Session(use.principals, host, LISTENER).peer
        for name in names:
            found = frozenset(
                acl
                for acl in index.bindings_for(peer, use.resource_type, name)
                if GRANTED_BY[use.operation] >> acl.operation & 1
            )
            if found and found.isdisjoint(beside):
                yield found


def _fewest(asked: Collection[_Alternatives]) -> dict[tuple[Grantee, PatternType, str], int]:
    """Return grants of which each use has one, and none can go, as operations by grantee and name.

    They are left out one after the other, if those that remain allow the same uses.
    """
    choices = list(asked)
    left = [len(acls) for acls in choices]
    places: dict[AclBinding, list[int]] = {}
    for number, acls in enumerate(choices):
        for acl in acls:
            places.setdefault(acl, []).append(number)
    kept: dict[tuple[Grantee, PatternType, str], int] = {}
    for acl in sorted(places, key=_needless_first):
        if all(left[number] > 1 for number in places[acl]):
            for number in places[acl]:
                left[number] -= 1
        else:
            grantee = Grantee(acl.principal, acl.host, acl.resource_type)
            key = grantee, acl.pattern_type, acl.resource_name
            kept[key] = kept.get(key, 0) | 1 << acl.operation
    return kept


def _needless_first(acl: AclBinding) -> tuple[Any, ...]:
    """Return a key that sorts first what should go rather than another grant of the same use.

    A prefix stays: it was chosen to stand for the others.
    """
    is_prefix = acl.pattern_type is PatternType.PREFIXED
    return is_prefix, acl.operation not in _IMPLIED, acl.host != WILDCARD, acl
