"""Findings about ACLs: what they are called, how bad they are, why they are so, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, AclPermission


class Severity(IntEnum):
    """How bad a finding is: something to know, something to mend, or something that deceives."""

    NOTE = 1
    WARNING = 2
    ERROR = 3


CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "redundant": "Other ACLs decide all of it as it does",
        "shadowed": "DENYs take back all that an ALLOW allows",
        "idle-deny": "A DENY that takes back nothing, since no ALLOW allows any of it",
        "super-user": "An ACL of a super user, for whom no ACL decides",
        "host-matches-nobody": "The host is no address, so that no peer has it",
        "subnet-matches-nobody": "The host is a subnet, and subnets are not switched on",
        "operation-never-asked": "Resources of the type do not have the operation",
        "name-of-no-cluster": "The cluster has another name",
        "contradictory": "DENYs take back a part of what an ALLOW allows, wherever it holds",
        "operation-not-of-type": "The operation counts only for another one that it implies",
        "host-form": "Kafka prints the address otherwise, and so never matches it",
        "impossible-name": "No topic can have such a name",
        "blanks": "There are blanks around a name",
        "literal-star": "A * that stands for itself, and for nothing else",
        "similar-principal": "Principals that differ in case or blanks alone",
        "over-broad": "It allows more than anybody needs",
        "risky-cluster": "It allows to take over the cluster",
        "risky-tokens": "It allows to act as others",
        "risky-transactions": "It allows to hold up the transactions of others",
        "risky-internal-topic": "It allows to change what Kafka keeps in topics of its own",
        "orphaned": "There is no such resource now",
    }
)
"""All codes, which stay what they are, and what each says."""

REMOVABLE: Final = frozenset(
    {
        *("redundant", "shadowed", "idle-deny", "super-user", "host-matches-nobody"),
        *("subnet-matches-nobody", "operation-never-asked", "name-of-no-cluster"),
    }
)
"""The codes of ACLs that can all go together without any decision changing."""

NEVER_MATCHING: Final = REMOVABLE - {"redundant", "shadowed", "idle-deny"}
"""The codes of ACLs that never decide about any request, whatever others say."""


class Fix(NamedTuple):
    """ACLs to add first, and then those to remove."""

    add: tuple[AclBinding, ...] = ()
    remove: tuple[AclBinding, ...] = ()


class Finding(NamedTuple):
    """What is wrong with an ACL, or may be.

    ``proof`` says why it is so, in a sentence; ``because`` are the ACLs that it speaks of. ``fix``
    is None if there is none now, and ``no_fix`` says why; ``is_safe`` tells that the fix changes no
    decision.
    """

    code: str
    severity: Severity
    acl: AclBinding
    proof: str
    because: tuple[AclBinding, ...] = ()
    fix: Fix | None = None
    is_safe: bool = False
    no_fix: str = ""


def removing(
    code: str, severity: Severity, acl: AclBinding, proof: str, *because: AclBinding
) -> Finding:
    """Return a finding whose fix is to remove the ACL."""
    fix = Fix(remove=(acl,))
    return Finding(code, severity, acl, proof, because, fix, code in REMOVABLE)


def worse_if_denied(acl: AclBinding) -> Severity:
    """Return how bad it is that an ACL does not do what it seems to: on a DENY somebody relies."""
    return Severity.ERROR if acl.permission == AclPermission.DENY else Severity.WARNING
