"""ACLs that others of the same set make superfluous, and ALLOWs that DENYs take back.

What is found, and why it is so, is of `acl.reasoning.lint`.
"""

from __future__ import annotations

from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.reasoning.lint.findings import Finding
from aclbroker.acl.reasoning.lint.partly import contradictory
from aclbroker.acl.reasoning.lint.removal import Removal
from aclbroker.acl.reasoning.lint.scopes import kafka_form
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.opened import rules_of


class Covered(NamedTuple):
    """An ACL without which no decision changes, since ``by``, of which all stay, decide it alike.

    ``same`` tells that one of them means the same, with an address written in another form.
    ``proof`` says why it can go, in a sentence.
    """

    acl: AclBinding
    by: tuple[AclBinding, ...]
    same: bool
    proof: str


class Contradiction(NamedTuple):
    """An ALLOW, and the DENYs that take back all of it, or operations of it wherever it holds.

    If ``entire``, it never decides. ``proof`` says what is taken back, in a sentence.
    """

    allow: AclBinding
    denies: tuple[AclBinding, ...]
    entire: bool
    proof: str


class Redundancies(NamedTuple):
    """What was found in a set, in the order of the ACLs."""

    covered: list[Covered]
    contradictions: list[Contradiction]


def redundant(rules: Ruleset) -> list[Covered]:
    """Return the ACLs that can all go, or any of them, without any decision changing, in order."""
    return _covered(Removal(rules_of(rules)))


def redundancies(rules: Ruleset) -> Redundancies:
    """Return what is superfluous and what is contradictory.

    An ALLOW that never decides is a contradiction and stays, whatever else allows the same: which
    side was meant is for a person to say. Of two principals of one session, one may be allowed what
    the other is denied; which come together is not known here, so that is not found.
    """
    removal = Removal(rules_of(rules))
    found = [
        Contradiction(each.acl, each.because, True, each.proof)
        for each in removal.findings
        if each.code == "shadowed"
    ]
    gone = {each.acl for each in removal.findings}
    found += [
        Contradiction(each.acl, each.because, False, each.proof)
        for each in contradictory(removal.standing, gone)
    ]
    return Redundancies(_covered(removal), sorted(found))


def _covered(removal: Removal) -> list[Covered]:
    return sorted(
        Covered(each.acl, each.because, _is_same(removal, each), each.proof)
        for each in removal.findings
        if each.code == "redundant"
    )


def _is_same(removal: Removal, finding: Finding) -> bool:
    """Tell whether another ACL means the same, with its host written otherwise."""
    acl = finding.acl
    return removal.standing.same(acl) is not None or any(
        each._replace(host=acl.host) == acl and kafka_form(each.host) == kafka_form(acl.host)
        for each in finding.because
    )
