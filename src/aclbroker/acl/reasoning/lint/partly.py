"""ALLOWs of which DENYs take back a part, wherever they hold."""

from __future__ import annotations

from collections.abc import Container, Iterator

from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.acl.reasoning.lint.findings import Finding, Fix, Severity, removing
from aclbroker.acl.reasoning.lint.scopes import said_by
from aclbroker.acl.reasoning.lint.standing import Standing, outcome

_CODE = "contradictory"


def contradictory(standing: Standing, gone: Container[AclBinding]) -> Iterator[Finding]:
    """Yield a finding for each ALLOW that allows less than it says.

    A DENY that holds only for some of its names or hosts is an exception, and no contradiction.
    ``gone`` are the ACLs that other findings say to remove, so that no fix adds one of them.
    """
    there = list(standing)
    denying = {standing.scopes[each].pattern for each in there if each[-1] == AclPermission.DENY}
    for acl in there:
        scope = standing.scopes[acl]
        is_deny = acl.permission == AclPermission.DENY
        if is_deny or denying.isdisjoint(standing.patterns(scope.pattern)):
            continue
        if said_by(acl) & outcome(standing.around(scope, scope.host)).denied:
            yield _found(standing, acl, gone)


def _found(standing: Standing, acl: AclBinding, gone: Container[AclBinding]) -> Finding:
    scope = standing.scopes[acl]
    standing.remove(acl)
    others = outcome(standing.around(scope, scope.host))
    because = standing.deciding(acl, (AclPermission.DENY,))
    standing.add(acl)
    said = said_by(acl)
    lost, left = said & others.denied, said & ~others.denied
    names = ", ".join(each.name for each in _operations(lost))
    needed = [each for each in _operations(lost) if left & GRANTED_BY[each]]
    if needed:
        implying = next(each for each in _operations(left) if GRANTED_BY[needed[0]] >> each & 1)
        proof = (
            f"DENYs take back {names} wherever it holds, and {implying.name} is of little use "
            f"without {needed[0].name}: remove it, or the DENYs."
        )
        return removing(_CODE, Severity.WARNING, acl, proof, *because)
    kept = tuple(
        acl._replace(operation=each) for each in _operations(_least(left & ~others.allowed))
    )
    proof = f"DENYs take back {names} wherever it holds."
    found = Finding(_CODE, Severity.NOTE, acl, proof, tuple(because))
    if any(each in gone for each in kept):
        return found._replace(no_fix="first remove what is redundant beside it")
    return found._replace(fix=Fix(kept, (acl,)), is_safe=True)


def _least(operations: int) -> int:
    """Return operations that allow all of some, without those that others imply."""
    return sum(
        1 << each
        for each in _operations(operations)
        if not operations & GRANTED_BY[each] & ~(1 << each)
    )


def _operations(bits: int) -> list[AclOperation]:
    return [each for each in AclOperation if bits >> each & 1]
