"""What would allow something that was denied: the smallest ACLs, no DENY any more, or nothing.

What is smallest says `acl.reasoning.explain`, of each host from which it was denied. It is the
same whatever else was denied: who may describe a cluster need not alter it. Who is given several
ACLs needs none of them that another one implies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from itertools import islice
from typing import NamedTuple

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.explain import Change, explain
from aclbroker.acl.reasoning.regions import Region, Request
from aclbroker.acl.reasoning.rules import Rules, matches


class Denied(NamedTuple):
    """One principal, operation and resource that was denied. ``name`` None: none was named."""

    principal: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None


class Standing(NamedTuple):
    """What the current rules decide on it, for some hosts and one set of principals.

    ``allowed``: whether it is allowed by now. ``allows``, ``denies``: the ACLs that do so, from
    each of ``hosts``, which are those that were denied, or some of them. ``others``: the further
    principals of the sessions.
    """

    allowed: bool
    allows: Sequence[AclBinding] = ()
    denies: Sequence[AclBinding] = ()
    hosts: Sequence[str] = ()
    others: tuple[str, ...] = ()


class Kind(Enum):
    """Which remedy there is; the values are words for people."""

    ALLOW = "an ACL would allow it"
    DENY = "a DENY ACL blocks it"
    HOSTS = "an ACL for all hosts would allow it"
    NOW = "allowed by now"
    NEVER = "no resource was named: nobody can be allowed that"
    NONE = "no ACL can be made"
    SUSPECT = "no ACL is proposed, because the principal behaves like an intruder"
    UNKNOWN = "the current ACLs are not given"


class Remedy(NamedTuple):
    """What would allow something that was denied.

    ``acls``: the smallest ACLs, of ALLOW alone. ``denies``: the DENY ACLs that block it, if only
    from some hosts; no ALLOW helps against them. ``note``: what else there is to say.
    """

    kind: Kind
    acls: tuple[AclBinding, ...] = ()
    denies: tuple[AclBinding, ...] = ()
    note: str = ""


def remedies(
    asked: Mapping[Denied, Sequence[Standing]], *, most_hosts: int | None, cidr: bool = False
) -> dict[Denied, Remedy]:
    """Return what would allow each of what was denied on one cluster.

    See `remedy`. The notes say which others of these imply what is suggested.
    """
    found = {
        denied: remedy(denied, standings, most_hosts=most_hosts, cidr=cidr)
        for denied, standings in asked.items()
    }
    suggested = {acl for each in found.values() for acl in each.acls}
    return {denied: _with_implying(each, suggested) for denied, each in found.items()}


def without_implied(acls: Iterable[AclBinding]) -> list[AclBinding]:
    """Return those of some ALLOWs that together allow all that they do, in their order.

    Left out is each that another one for the same principal, resource and host implies.
    """
    given = dict.fromkeys(acls)
    return [acl for acl in given if _implying(acl, given) is None]


def remedy(
    denied: Denied,
    standings: Sequence[Standing],
    *,
    most_hosts: int | None,
    cidr: bool = False,
) -> Remedy:
    """Return what would allow it. Without ``standings`` the current rules are not known.

    The ACLs are for the hosts from which it was denied, if these are no more than ``most_hosts``;
    with None, for all hosts. ``cidr``: hosts of ACLs may be subnets.
    """
    if denied.name is None:
        return Remedy(Kind.NEVER)
    if not standings:
        return Remedy(Kind.UNKNOWN)
    left = [each for each in standings if not each.allowed]
    if not left:
        return Remedy(Kind.NOW)
    blocked = [each for each in left if each.denies]
    free = [each for each in left if not each.denies]
    denies = tuple(sorted({acl for each in blocked for acl in each.denies}))
    if not free:
        is_more = any(each.add for each in _changes(denied, denied.name, blocked, 1, cidr))
        return Remedy(Kind.DENY, (), denies, "and no ACL allows it besides" if is_more else "")
    reason = _why_none(denied, denied.name)
    if reason is not None:
        return Remedy(Kind.NONE, (), denies, reason)
    note = "from some hosts a DENY blocks it" if denies else ""
    hosts = {host for each in free for host in each.hosts}
    if most_hosts is not None and len(hosts) > most_hosts:
        many = f"denied from more than {most_hosts} hosts"
        return Remedy(Kind.HOSTS, (), denies, _noted(many, note))
    acls = {
        acl for each in _changes(denied, denied.name, free, most_hosts, cidr) for acl in each.add
    }
    if not acls:
        return Remedy(Kind.NONE, (), denies, _noted("it came from no address", note))
    return Remedy(Kind.ALLOW, tuple(sorted(acls)), denies, note)


def _changes(
    denied: Denied, name: str, standings: Sequence[Standing], most_hosts: int | None, cidr: bool
) -> list[Change]:
    """Return what would allow it to sessions from so many hosts of each standing."""
    found = []
    for each in standings:
        rules = Rules(
            [*each.allows, *each.denies], cidr=cidr, groups={denied.principal: each.others}
        )
        for host in islice(each.hosts, most_hosts or 1):
            request = Request(denied.principal, host, *denied[1:3], name)
            with suppress(ValueError):  # a host that is no address
                change = explain(rules, request, from_anywhere=most_hosts is None).change
                found += [] if change is None else [change]
    return found


def _why_none(denied: Denied, name: str) -> str | None:
    """Return why no ACL is to allow it, whatever the hosts."""
    if denied.principal == WILDCARD_PRINCIPAL:
        return f"an ACL of {WILDCARD_PRINCIPAL} would hold for everyone"
    literal = PatternType.LITERAL
    kind, operation = denied.resource_type, denied.operation
    return invalid_reason(
        AclBinding(kind, name, literal, denied.principal, WILDCARD, operation, AclPermission.ALLOW)
    )


def _noted(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _with_implying(found: Remedy, suggested: Collection[AclBinding]) -> Remedy:
    """Return a remedy that notes which others imply its ACLs."""
    by = {_implying(acl, suggested) for acl in found.acls} - {None}
    names = sorted({each.operation.name for each in by if each is not None})
    note = f"{' and '.join(names)}, denied as well, {'implies' if len(names) == 1 else 'imply'} it"
    return found._replace(note=_noted(note if names else "", found.note))


def _implying(acl: AclBinding, suggested: Collection[AclBinding]) -> AclBinding | None:
    """Return one of the suggested ACLs that says more than an ACL, or None."""
    for operation in sorted(AclOperation):
        wider = acl._replace(operation=operation)
        if wider != acl and GRANTED_BY[acl.operation] >> operation & 1 and wider in suggested:
            return wider
    return None


class Opened(NamedTuple):
    """What an ACL allows that nobody was seen to be denied: some operations of a region."""

    operations: tuple[AclOperation, ...]
    region: Region

    def __str__(self) -> str:
        listed = ", ".join(each.name for each in self.operations)
        hosts = "; ".join(map(str, self.region.hosts))
        return f"{listed} on {self.region.names_text} from {hosts}"


def opened_besides(
    acl: AclBinding,
    acls: Iterable[AclBinding],
    denied: Collection[tuple[AclOperation, str]],
    *,
    cidr: bool = False,
) -> list[Opened]:
    """Return what a new ALLOW opens to its principal besides what was denied.

    ``acls`` are those of the principal and of everyone, ``denied`` the operations on the resource
    that were denied, each with a host. The resource must not be open for lack of ACLs, and is not
    since something was denied on it. Of an ACL for all hosts all is told.
    """
    around = [each for each in acls if _meets(each, acl)]
    compared = compare(Rules(around, cidr=cidr), Rules([*around, acl], cidr=cidr))
    found = []
    for difference in compared.differences:
        region = difference.region
        is_one = region.names.pattern.pattern_type is PatternType.LITERAL
        asked = {operation for operation, host in denied if is_one and host == acl.host}
        rest = tuple(each for each in region.operations if each not in asked)
        if rest:
            found.append(Opened(rest, region))
    return found


def _meets(other: AclBinding, acl: AclBinding) -> bool:
    """Tell whether an ACL's pattern has a name in common with that of a new one."""
    kind, name = acl.resource_type, acl.resource_name
    if acl.pattern_type is PatternType.LITERAL or other.resource_type != kind:
        return matches(other, kind, name)
    return other.resource_name.startswith(name) or matches(other, kind, name)
