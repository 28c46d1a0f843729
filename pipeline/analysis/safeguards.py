"""What a set of grants needs besides, so that it allows nothing that the current rules deny.

These are the DENY ACLs that hold for something granted, and, where resources without ACLs are open
to everyone, an ACL on each resource that the current rules close.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.acl.hosts import Subnet, canonical, enclosing_subnets, subnet, without_zone
from aclbroker.broker.acl.operations import supported_operations
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.coverage import covered
from aclbroker.pipeline.analysis.least_privilege import Principals, effective


def safeguards(
    allows: Iterable[AclBinding], rules: Ruleset, sessions: Iterable[Principals]
) -> list[AclBinding]:
    """Return the ACLs that a set of ALLOW ACLs needs besides, to allow nothing denied by ``rules``.

    ``sessions``: the principals of every session seen. A PREFIXED ACL may still allow more: what
    the rules deny for want of an ACL.
    """
    allows, sessions = list(allows), list(sessions)
    denying = denials(allows, rules, sessions)
    closing = closings([*allows, *denying], rules)
    if any(acl.permission is AclPermission.ALLOW for acl in closing):
        denying = denials([*allows, *closing], rules, sessions)
    return sorted({*denying, *closing})


def denials(
    allows: Iterable[AclBinding], rules: Ruleset, sessions: Iterable[Principals]
) -> list[AclBinding]:
    """Return the current DENYs of something allowed, without those that others cover.

    A denial of one principal counts against an ACL of another if a session had both.
    """
    denying = [acl for acl in rules.acls if acl.permission is AclPermission.DENY]
    if not denying:
        return []
    companions: dict[str, set[str]] = {}
    for principals in sessions:
        for principal in principals if len(principals) > 1 else ():
            companions.setdefault(principal, set()).update(principals)
    holdings = _Holdings(allows, rules)
    found = [acl for acl in denying if holdings.meet(acl, companions.get(acl.principal, ()))]
    needless = {each.acl for each in covered(Ruleset(cidr=rules.cidr).with_acls(found))}
    return [acl for acl in found if acl not in needless]


class _Holding:
    """What one principal from one host is allowed on resources of one type."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._literal: dict[str, int] = {}
        self._prefixed: dict[str, int] = {}
        self._sorted: list[str] | None = None

    def add(self, acl: AclBinding) -> None:
        """Add an ACL. All must be added before anything is asked."""
        is_prefix = acl.pattern_type is PatternType.PREFIXED
        names = self._prefixed if is_prefix else self._literal
        names[acl.resource_name] = names.get(acl.resource_name, 0) | 1 << acl.operation

    def meets(self, acl: AclBinding) -> bool:
        """Tell whether an ACL is about a resource and operation that is allowed here."""
        wanted = ~0 if acl.operation is AclOperation.ALL else 1 << acl.operation
        return any(effective(bits) & wanted for bits in self._matching(acl))

    def _matching(self, acl: AclBinding) -> Iterator[int]:
        """The operations on each pattern that has resources in common with an ACL's."""
        name = acl.resource_name
        if acl.pattern_type is PatternType.LITERAL and name == WILDCARD:
            yield from chain(self._literal.values(), self._prefixed.values())
            return
        yield self._literal.get(WILDCARD, 0)
        if acl.pattern_type is PatternType.LITERAL:
            yield self._literal.get(name, 0)
            yield from (bits for each, bits in self._prefixed.items() if name.startswith(each))
            return
        yield from (self._literal[each] for each in self._beginning_with(name))
        for prefix, bits in self._prefixed.items():
            if prefix.startswith(name) or name.startswith(prefix):
                yield bits

    def _beginning_with(self, prefix: str) -> Iterator[str]:
        if self._sorted is None:
            self._sorted = sorted(self._literal)
        for at in range(bisect_left(self._sorted, prefix), len(self._sorted)):
            name = self._sorted[at]
            if not name.startswith(prefix):
                return
            yield name


class _Holdings:
    """Everything that is allowed, by resource type and principal."""

    def __init__(self, allows: Iterable[AclBinding], rules: Ruleset) -> None:
        self._cidr = rules.cidr
        self._types: dict[ResourceType, dict[str, dict[str, _Holding]]] = {}
        for acl in allows:
            # No ACL denies a super user anything.
            if acl.principal not in rules.super_users:
                hosts = self._types.setdefault(acl.resource_type, {}).setdefault(acl.principal, {})
                hosts.setdefault(acl.host, _Holding(acl.host)).add(acl)

    def meet(self, acl: AclBinding, companions: Collection[str]) -> bool:
        """Tell whether an ACL is about something that is allowed to whom it means."""
        of_type = self._types.get(acl.resource_type, {})
        is_anyone = acl.principal == WILDCARD_PRINCIPAL
        whom = of_type if is_anyone else {acl.principal, WILDCARD_PRINCIPAL, *companions}
        return any(
            hosts_meet(holding.host, acl.host, cidr=self._cidr) and holding.meets(acl)
            for principal in whom
            for holding in of_type.get(principal, {}).values()
        )


def hosts_meet(one: str, other: str, *, cidr: bool) -> bool:
    """Tell whether a peer may be meant by both hosts of ACLs."""
    return host_covers(one, other, cidr=cidr) or host_covers(other, one, cidr=cidr)


def host_covers(wide: str, narrow: str, *, cidr: bool) -> bool:
    """Tell whether the one host of an ACL means all peers that the other means."""
    if wide in (WILDCARD, narrow):
        return True
    around = subnet(wide) if cidr else None
    if around is None:
        return canonical(wide) in {canonical(narrow), without_zone(canonical(narrow))}
    inner = subnet(narrow)
    if inner is None:
        return around in enclosing_subnets(narrow, [around.size])
    return _subnet_covers(around, inner)


def _subnet_covers(wide: Subnet, narrow: Subnet) -> bool:
    if wide.size.version != narrow.size.version:
        return False
    longer = narrow.size.prefix_length - wide.size.prefix_length
    return longer >= 0 and narrow.prefix >> longer == wide.prefix


def closings(acls: Iterable[AclBinding], rules: Ruleset) -> list[AclBinding]:
    """Return the ACLs that keep closed what the current rules close, and ``acls`` would not.

    Only where ``allow_everyone_if_no_acl_found`` holds. A super user is allowed everything anyway,
    so an ACL for one closes a resource and grants nothing. Without super users an ACL that is there
    already is kept, if possible one that denies.
    """
    if not rules.allow_everyone_if_no_acl_found:
        return []
    closed = _Patterns()
    for acl in acls:
        closed.add(acl)
    found = []
    super_user = min(rules.super_users - {WILDCARD_PRINCIPAL}, default=None)
    for acl in sorted(rules.acls, key=_openness):
        if not closed.covers(acl):
            closed.add(acl)
            found.append(acl if super_user is None else _closing(acl, super_user))
    return found


def _openness(acl: AclBinding) -> tuple[object, ...]:
    """A key that sorts wide patterns first, and of one pattern's ACLs those that grant little."""
    return (
        not (acl.pattern_type is PatternType.LITERAL and acl.resource_name == WILDCARD),
        acl.pattern_type is not PatternType.PREFIXED,
        len(acl.resource_name),
        acl.permission is not AclPermission.DENY,
        acl.principal == WILDCARD_PRINCIPAL,
        acl.operation is AclOperation.ALL,
        acl.host == WILDCARD,
        acl,
    )


def _closing(acl: AclBinding, super_user: str) -> AclBinding:
    operations = supported_operations(acl.resource_type)
    operation = AclOperation.DESCRIBE if AclOperation.DESCRIBE in operations else operations[-1]
    return acl._replace(
        principal=super_user, host=WILDCARD, operation=operation, permission=AclPermission.ALLOW
    )


class _Patterns:
    """Resource patterns, to find whether they cover another one."""

    def __init__(self) -> None:
        self._known: set[tuple[ResourceType, PatternType, str]] = set()
        self._lengths: set[int] = set()

    def add(self, acl: AclBinding) -> None:
        """Take an ACL's pattern."""
        self._known.add((acl.resource_type, acl.pattern_type, acl.resource_name))
        if acl.pattern_type is PatternType.PREFIXED:
            self._lengths.add(len(acl.resource_name))

    def covers(self, acl: AclBinding) -> bool:
        """Tell whether one pattern covers that of an ACL."""
        resource_type, name = acl.resource_type, acl.resource_name
        everything = (resource_type, PatternType.LITERAL, WILDCARD)
        if everything in self._known or (resource_type, acl.pattern_type, name) in self._known:
            return True
        if acl.pattern_type is PatternType.LITERAL and name == WILDCARD:
            return False
        return any(
            (resource_type, PatternType.PREFIXED, name[:length]) in self._known
            for length in self._lengths
            if length <= len(name)
        )
