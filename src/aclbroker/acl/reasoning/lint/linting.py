"""Looks for all that is wrong with a set of ACLs, or may be."""

from __future__ import annotations

from aclbroker.acl.reasoning.lint.findings import Finding
from aclbroker.acl.reasoning.lint.orphans import Live, orphaned
from aclbroker.acl.reasoning.lint.partly import contradictory
from aclbroker.acl.reasoning.lint.power import too_powerful
from aclbroker.acl.reasoning.lint.removal import Removal
from aclbroker.acl.reasoning.lint.writing import written_wrongly
from aclbroker.acl.reasoning.rules import Rules

_NOTHING_KNOWN = Live()


def lint(rules: Rules, live: Live = _NOTHING_KNOWN) -> list[Finding]:
    """Return what is found, the worst first, then in the order of the ACLs.

    An ACL that never decides has one finding, and the ACLs with these findings can all go together,
    or any of them, without a decision changing. What else is found is about the others.
    """
    removal = Removal(rules)
    left = list(removal.standing)
    found = [
        *removal.findings,
        *contradictory(removal.standing, {each.acl for each in removal.findings}),
        *written_wrongly(left, cidr=rules.cidr),
        *too_powerful(left, rules.super_users),
        *orphaned(left, live),
    ]
    return sorted(found, key=lambda each: (-each.severity, each.acl, each.code))
