"""ACLs that others of the same set make superfluous, and ALLOWs that DENYs take back.

An ACL is covered if another one of the same permission holds for every resource, principal, host
and operation that it holds for. Then no decision of `broker.acl.decisions` changes when it goes:
whatever it matches, its cover matches with the same permission. That includes the default of
``allow.everyone.if.no.acl.found``, which depends on whether any ACL's pattern matches a resource:
the cover's pattern matches all resources that the covered one's does. To be covered is transitive,
and of ACLs that cover each other one is kept, so all that are found may go together.

One question is outside of this: whether an operation is allowed on *any* resource of a type
(KIP-679) looks for ACLs that name the operation or ALL. A DESCRIBE that only a READ covers would be
missed there, but brokers ask that question about WRITE alone, which nothing else implies.

Everything is found by lookups: the time grows with the number of ACLs, not of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
)
from aclbroker.broker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.scope import HostKey, PatternKey, Scopes

_ALLOW: Final = AclPermission.ALLOW
_DENY: Final = AclPermission.DENY
_CONCRETE: Final = tuple(each for each in AclOperation if each > AclOperation.ALL)


class Covered(NamedTuple):
    """An ACL that ``by``, which is not covered itself, makes superfluous.

    ``same`` tells that the two mean the same, with the host written in two ways.
    """

    acl: AclBinding
    by: AclBinding
    same: bool


class Contradiction(NamedTuple):
    """An ALLOW, and DENYs that take back all of it or a part.

    If ``entire``, the DENYs hold for all that it allows, and it never decides. Otherwise
    ``denies`` is one DENY that holds for some of it.
    """

    allow: AclBinding
    denies: tuple[AclBinding, ...]
    entire: bool


def covered(rules: Ruleset) -> list[Covered]:
    """Return the ACLs that can go without any decision changing, in order."""
    scopes = Scopes(rules.acls, rules.cidr)
    index = _Index(scopes)
    originals = _originals(rules.acls, scopes)
    for acl in originals.values():
        index.add(acl)
    found = []
    for acl in rules.acls:
        original = originals[_meaning(acl, scopes)]
        by = index.cover(original)
        if by is not None:
            found.append(Covered(acl, by, same=False))
        elif acl != original:
            found.append(Covered(acl, original, same=True))
    return found


def contradictions(rules: Ruleset) -> list[Contradiction]:
    """Return the ALLOWs that DENYs take back, all or a part, in order.

    A session with several principals may meet an ALLOW of one and a DENY of another; which
    principals come together is not known here, so those are not found.
    """
    scopes = Scopes(rules.acls, rules.cidr)
    allows = [acl for acl in rules.acls if acl.permission is _ALLOW]
    denials = _Denials(scopes, {scopes.pattern(acl) for acl in allows})
    for acl in rules.acls:
        if acl.permission is _DENY:
            denials.add(acl)
    found = []
    for acl in allows:
        around = denials.around(acl)
        if around:
            found.append(Contradiction(acl, around, entire=True))
            continue
        within = denials.overlapping(acl)
        if within is not None:
            found.append(Contradiction(acl, (within,), entire=False))
    return found


def granted(acl: AclBinding) -> tuple[AclOperation, ...]:
    """Return the operations that an ALLOW allows, implied ones included."""
    return tuple(each for each in _CONCRETE if GRANTED_BY[each] >> acl.operation & 1)


_Meaning = tuple[AclPermission, AclOperation, PatternKey, str, HostKey]


def _meaning(acl: AclBinding, scopes: Scopes) -> _Meaning:
    return acl.permission, acl.operation, scopes.pattern(acl), acl.principal, scopes.host(acl)


def _originals(acls: Iterable[AclBinding], scopes: Scopes) -> dict[_Meaning, AclBinding]:
    """Return one ACL for each meaning: the one whose host is written shortest."""
    found: dict[_Meaning, AclBinding] = {}
    for acl in acls:
        other = found.setdefault(_meaning(acl, scopes), acl)
        if (len(acl.host), acl.host) < (len(other.host), other.host):
            found[_meaning(acl, scopes)] = acl
    return found


def _sources(operation: AclOperation, permission: AclPermission) -> tuple[AclOperation, ...]:
    """The operations of ACLs that hold for an operation: ALL first, itself last."""
    bits = (GRANTED_BY if permission is _ALLOW else NAMED_BY)[operation]
    others = (each for each in AclOperation if bits >> each & 1 and each != operation)
    return *others, operation


_SOURCES: Final = {
    (operation, permission): _sources(operation, permission)
    for operation in AclOperation
    for permission in (_ALLOW, _DENY)
}

_Who = tuple[AclPermission, AclOperation, str, HostKey]


class _Index:
    """ACLs by all that they say; of those around an ACL, it finds the widest first."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._patterns: dict[PatternKey, dict[_Who, AclBinding]] = {}

    def add(self, acl: AclBinding) -> None:
        scopes = self._scopes
        who = acl.permission, acl.operation, acl.principal, scopes.host(acl)
        self._patterns.setdefault(scopes.pattern(acl), {})[who] = acl

    def cover(self, acl: AclBinding) -> AclBinding | None:
        """Return an ACL that covers one of these and is not covered itself.

        An ACL that covers the cover covers this one too, is narrower in no field, and so comes
        first.
        """
        scopes, permission = self._scopes, acl.permission
        operations = _SOURCES[acl.operation, permission]
        for pattern in scopes.patterns(acl):
            found = self._patterns.get(pattern)
            if found is None:
                continue
            for principal in scopes.principals(acl):
                for host in scopes.hosts(acl):
                    for operation in operations:
                        other = found.get((permission, operation, principal, host))
                        if other is not None:
                            return None if other == acl else other
        return None


_Place = tuple[str, bool, HostKey, bool]


class _Denials:
    """DENYs by the scopes where they hold, and by the scopes around these.

    A scope with True has a DENY of exactly this scope, one with False has a DENY somewhere inside.
    ``patterns`` are all that will be asked for, so no others are kept as scopes around a DENY.
    """

    def __init__(self, scopes: Scopes, patterns: set[PatternKey]) -> None:
        self._scopes = scopes
        self._asked = patterns
        self._at: dict[tuple[PatternKey, bool], dict[_Place, dict[AclOperation, AclBinding]]] = {}

    def add(self, deny: AclBinding) -> None:
        scopes = self._scopes
        *outside, own = scopes.patterns(deny)
        patterns = [(own, True), *((each, False) for each in outside if each in self._asked)]
        places = [
            (principal, principal == deny.principal, host, host == scopes.host(deny))
            for principal in scopes.principals(deny)
            for host in scopes.hosts(deny)
        ]
        for pattern in patterns:
            at = self._at.setdefault(pattern, {})
            for place in places:
                at.setdefault(place, {}).setdefault(deny.operation, deny)

    def around(self, allow: AclBinding) -> tuple[AclBinding, ...]:
        """Return DENYs that together hold for all that an ALLOW allows; none if they do not."""
        scopes = self._scopes
        places = [
            (principal, True, host, True)
            for principal in scopes.principals(allow)
            for host in scopes.hosts(allow)
        ]
        denied: dict[AclOperation, AclBinding] = {}
        for pattern in scopes.patterns(allow):
            for found in self._found((pattern, True), places):
                # The widest one comes first, and stands for all.
                denied = found | denied
        if AclOperation.ALL in denied:
            return (denied[AclOperation.ALL],)
        operations = granted(allow)
        if all(operation in denied for operation in operations):
            return tuple(denied[operation] for operation in operations)
        return ()

    def overlapping(self, allow: AclBinding) -> AclBinding | None:
        """Return a DENY that holds for some of what an ALLOW allows."""
        scopes = self._scopes
        principals = [(each, True) for each in scopes.principals(allow)]
        if allow.principal == WILDCARD_PRINCIPAL:
            principals.append((WILDCARD_PRINCIPAL, False))
        hosts = [*((each, True) for each in scopes.hosts(allow)), (scopes.host(allow), False)]
        places = [(*principal, *host) for principal in principals for host in hosts]
        patterns = [(each, True) for each in scopes.patterns(allow)]
        for pattern in (*patterns, (scopes.pattern(allow), False)):
            for found in self._found(pattern, places):
                for operation in (AclOperation.ALL, *granted(allow)):
                    if operation in found:
                        return found[operation]
        return None

    def _found(
        self, pattern: tuple[PatternKey, bool], places: Iterable[_Place]
    ) -> Iterator[dict[AclOperation, AclBinding]]:
        at = self._at.get(pattern)
        if at is not None:
            yield from (at[place] for place in places if place in at)
