"""Which ACLs of a set never decide, found for some names at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission
from aclbroker.acl.reasoning.lint.findings import Finding
from aclbroker.acl.reasoning.lint.removal import Removal
from aclbroker.acl.reasoning.lint.scopes import is_named_user, pattern_of_acl
from aclbroker.acl.reasoning.names import PREFIX
from aclbroker.acl.reasoning.rules import Rules, operations_of
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.opened import SessionPrincipals
from aclbroker.pipeline.analysis.proof import other_readings, readings, removed

AT_ONCE: Final = 50_000
"""How many ACLs on single names are looked at together: each takes 0.7 KB meanwhile."""


def without_idle(
    rules: Ruleset, sessions: Iterable[SessionPrincipals], at_once: int = AT_ONCE
) -> Ruleset:
    """Return the rules without the ACLs that never decide; every request is decided as before.

    They never decide however hosts are read (`pipeline.analysis.proof`), and nothing opens without
    them under any reading, which is proven if there are several. A DENY of a group decides for
    everybody who may be a member. A user's DENY decides for others whose ``sessions`` have that
    user beside them, too; all of these are kept.
    """
    beside = {
        each
        for principals in sessions
        if sum(map(is_named_user, principals)) > 1
        for each in principals
    }
    idle: set[AclBinding] | None = None
    for reading in readings(rules):
        found = _idle(reading, beside, at_once)
        here = {
            acl for acl, as_read in zip(rules.acls, reading.acls, strict=True) if as_read in found
        }
        idle = here if idle is None else idle & here
    if not idle:
        return rules
    if other_readings(rules):
        return removed(rules, idle).remaining
    return rules.with_acls(acl for acl in rules.acls if acl not in idle)


def _idle(rules: Rules, beside: Collection[str], at_once: int) -> set[AclBinding]:
    return {
        each.acl
        for each in _findings(rules, at_once)
        if each.fix is not None
        and not _is_odd_use(each)
        and not (each.code == "idle-deny" and each.acl.principal in beside)
    }


def _is_odd_use(finding: Finding) -> bool:
    """Tell whether an ACL allows an operation that no broker asks about, but a log had it."""
    kind, operation = finding.acl.resource_type, finding.acl.operation
    is_allow = finding.acl.permission is AclPermission.ALLOW
    return is_allow and operation not in (AclOperation.ALL, *operations_of(kind))


def _findings(rules: Rules, at_once: int) -> Iterator[Finding]:
    """Yield what `Removal` finds in all rules, without keeping all of them in its trees.

    ACLs of different names have nothing to do with each other. Those of prefixes, and of all names,
    are looked at beside each part of the others; they are idle if they are so beside all parts.
    """
    wide = {acl for acl in rules.acls if _is_wide(acl)}
    # Where names are open that have no ACL, which of two of a pattern goes depends on all parts.
    is_open = rules.allow_everyone_if_no_acl_found
    size = len(rules.acls) if is_open else max(at_once, 4 * len(wide))
    idle: dict[AclBinding, Finding] | None = None
    for part in _parts([acl for acl in rules.acls if acl not in wide], size):
        found = Removal(replace(rules, acls=ordered([*wide, *part]))).findings
        yield from (each for each in found if each.acl not in wide)
        here = {each.acl: each for each in found if each.acl in wide}
        known = here if idle is None else idle
        idle = {acl: each for acl, each in known.items() if acl in here}
    yield from (idle or {}).values()


def _is_wide(acl: AclBinding) -> bool:
    pattern = pattern_of_acl(acl)
    return pattern is not None and pattern[1][1] == PREFIX


def _parts(acls: Sequence[AclBinding], size: int) -> Iterator[list[AclBinding]]:
    """Yield ACLs in their order, those of one name together, in parts of about ``size``."""
    part: list[AclBinding] = []
    for _, alike in groupby(acls, key=lambda acl: (acl.resource_type, acl.resource_name)):
        part += alike
        if len(part) >= size:
            yield part
            part = []
    yield part
