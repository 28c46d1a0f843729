"""What has to change so that a cluster has the ACLs of a policy, and in which order; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding, AclPermission, PatternType


class Plan(NamedTuple):
    """The ACLs to create and then to remove, each in the order in which that is done.

    A DENY is created before any ALLOW, and removed after any: nobody is allowed in between what is
    denied before and after. Creations come before removals, so that nobody loses in between what is
    allowed before and after.
    """

    create: tuple[AclBinding, ...]
    remove: tuple[AclBinding, ...]

    def __bool__(self) -> bool:
        return bool(self.create or self.remove)

    def lines(self) -> Iterator[str]:
        """Yield a line for each change: + and what is created, - and what is removed."""
        for sign, acls in (("+", self.create), ("-", self.remove)):
            for acl in acls:
                yield f"{sign} {acl_line(acl)}"

    def outcome(self, there: Iterable[AclBinding]) -> set[AclBinding]:
        """Return the ACLs afterwards, of a cluster that has these."""
        return (set(there) | set(self.create)) - set(self.remove)


def plan(wanted: Iterable[AclBinding], there: Iterable[AclBinding], *, prune: bool) -> Plan:
    """Return what changes the ACLs that are there into those that are wanted.

    Unless told to prune, what is there and not wanted stays.
    """
    wanted, there = set(wanted), set(there)
    return Plan(
        tuple(sorted(wanted - there, key=_denies_first)),
        tuple(sorted(there - wanted, key=_denies_last)) if prune else (),
    )


def acl_line(acl: AclBinding) -> str:
    """Return an ACL as one line that reads as a sentence."""
    resource = acl.resource_type.name.lower().replace("_", "-")
    prefixed = "prefixed " if acl.pattern_type is PatternType.PREFIXED else ""
    host = "" if acl.host == "*" else f" from {acl.host}"
    return (
        f"{acl.permission.name} {acl.principal}{host} {acl.operation.name} "
        f"{prefixed}{resource} {acl.resource_name}"
    )


def _denies_first(acl: AclBinding) -> tuple[bool, AclBinding]:
    return acl.permission is not AclPermission.DENY, acl


def _denies_last(acl: AclBinding) -> tuple[bool, AclBinding]:
    return acl.permission is AclPermission.DENY, acl
