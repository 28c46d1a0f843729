"""Why two sets of rules decide a question differently: the changes that made the decision flip.

Where both have the same settings and the default is to deny, the causes are complete: with the
removed ACLs put back and the added ones taken away, the decision is as it was before. Otherwise one
cause can hide another, such as the name of a super user the ACLs that this principal has as well.
For a right on any topic (KIP-679) they may not be all: a DENY that came with the loss of the ALLOW
that it takes back is none.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import StrEnum
from typing import NamedTuple

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import AclBinding


class DecisiveSetting(StrEnum):
    """A setting of the broker that can decide beside the ACLs."""

    SUPER_USER = "super.users or broker.users"
    DEFAULT = "allow.everyone.if.no.acl.found"
    SUBNETS = "subnets as hosts of ACLs"


class Decided(NamedTuple):
    """How one set of rules decides a question.

    ``allows`` and ``denies``: its ACLs that allow and deny it. ``on_resource``: all of its ACLs on
    the resource, or None if the default without ACLs is to deny. ``acls``: all that it has.
    ``cidr``: whether hosts may be subnets (see `Ruleset`).
    """

    rule: RuleKind
    allows: Sequence[AclBinding]
    denies: Sequence[AclBinding]
    on_resource: Sequence[AclBinding] | None
    acls: Container[AclBinding]
    cidr: bool = False


class Causes(NamedTuple):
    """ACLs that only one set has, and settings that differ, because of which a decision flips."""

    removed: Sequence[AclBinding]
    added: Sequence[AclBinding]
    settings: Sequence[DecisiveSetting]


def causes(before: Decided, after: Decided, *, allowed_before: bool) -> Causes:
    """Return why a decision flipped. ``allowed_before``: what it was.

    Only what has to be undone is a cause. So ALLOWs that the stricter rules have beside their DENYs
    are none, and where they have ALLOWs, that they lack others is none.
    """
    # A change that newly denies in one direction newly allows in the other.
    allowing, denying = (before, after) if allowed_before else (after, before)
    granted, refused, settings = _why_denied(allowing, denying)
    lost = [acl for acl in granted if acl not in denying.acls]
    imposed = [acl for acl in refused if acl not in allowing.acls]
    is_shared = len(lost) + len(imposed) < len(granted) + len(refused)
    if is_shared and before.cidr != after.cidr:
        # The same ACL is in both, and only one of them takes its host for a subnet.
        settings.append(DecisiveSetting.SUBNETS)
    removed, added = (lost, imposed) if allowed_before else (imposed, lost)
    return Causes(removed, added, settings)


def _why_denied(
    allowing: Decided, denying: Decided
) -> tuple[Sequence[AclBinding], Sequence[AclBinding], list[DecisiveSetting]]:
    """Return why one set of rules allows and another denies.

    The causes are the ACLs of the first that allow, if the second has none that do; the ACLs of the
    second that deny; and settings.
    """
    if allowing.rule is RuleKind.SUPER_USER:
        return (), (), [DecisiveSetting.SUPER_USER]
    if allowing.rule is RuleKind.DEFAULT_ALLOW:
        if denying.on_resource is None:
            return (), denying.denies, [DecisiveSetting.DEFAULT]
        return (), denying.on_resource, []
    # Of any topic, DENYs that both have may take back the ALLOWs that are left.
    is_new = allowing.cidr != denying.cidr or all(
        acl not in allowing.acls for acl in denying.denies
    )
    is_granted = bool(denying.allows) and is_new
    return (() if is_granted else allowing.allows), denying.denies, []
