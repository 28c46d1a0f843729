"""What the ACLs of a cluster were used for, and which can go together without loss or harm.

It follows the rules of `acl.decisions`. A question that is allowed by ACLs needs one of
them; one that a DENY answers needs one of these, as long as an ALLOW is there that would allow it;
and where everyone is allowed if no ACL is found, one that is denied by default needs some ACL whose
pattern matches the resource, whichever principal it names.

What goes is chosen (`pipeline.analysis.staying`) so that no answer to these questions changes, and
that nothing opens of what nobody has asked yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from enum import Enum
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.staying import Needs, Stay, staying


class Asked(NamedTuple):
    """Questions that are the same to all ACLs, which are given as positions in `Ruleset.acls`.

    ``allows`` and ``denies`` are the ACLs that allow and deny it, ``alone`` those of which each one
    decides: see `pipeline.replay.reasons`. ``events`` is how often it was asked, ``last_day`` when
    last. ``was_allowed`` tells that the log has it allowed by an ACL; if the rules deny it now for
    want of one, ``explaining`` are those that would have allowed it if hosts in CIDR notation are
    subnets. Questions of super users do not belong here.
    """

    allows: Sequence[int]
    denies: Sequence[int]
    alone: Sequence[int]
    events: int
    last_day: date
    was_allowed: bool = False
    explaining: Sequence[int] = ()


class UseKind(Enum):
    """What an ACL is to the questions of a log; the values are for tables."""

    UNMATCHED = "unmatched"
    """No question meets it."""

    NEVER_DECISIVE = "never decisive"
    """Questions meet it, but others answer each of them the same."""

    NEEDED = "needed"
    """If it alone were removed, the answer to a question would change."""


class AclUse(NamedTuple):
    """An ACL and what it was used for; it can go, together with all like it, if ``stays`` is None.

    ``events`` counts what it matched, allowed and denied ones, and ``last_day`` is the last of
    them; ``decisive_events`` those whose answer depends on it alone. ``why`` says, of an ACL that
    can go, why that opens nothing and closes nothing that was used.
    """

    acl: AclBinding
    use: UseKind
    stays: Stay | None
    events: int
    decisive_events: int
    last_day: date | None
    why: str | None = None


def acl_uses(
    rules: Ruleset,
    asked: Iterable[Asked],
    *,
    young: Collection[int] = (),
    kept: Collection[int] = (),
    doubted: Collection[int] = (),
) -> list[AclUse]:
    """Return the use of each ACL of ``rules``, in order.

    ACLs at three kinds of positions stay. ``young``: the ACL may have been created after the log
    began. ``kept``: the ACL is on the user's keep-list. ``doubted``: a quarantined line may have
    used the ACL.
    """
    questions = list(asked)
    matched, decisive = Counter[int](), Counter[int]()
    last: dict[int, date] = {}
    for each in questions:
        for position in (*each.allows, *each.denies):
            matched[position] += each.events
            last[position] = max(each.last_day, last.get(position, each.last_day))
        for position in each.alone:
            decisive[position] += each.events
    allowing = {frozenset(each.allows) for each in questions if each.allows and not each.denies}
    logged = {frozenset(each) for each in _logged(questions)}
    needs = Needs(young, doubted, decisive.keys(), allowing, logged, kept)
    found = staying(rules, needs)
    used = frozenset().union(*allowing)
    return [
        AclUse(
            acl,
            _use(matched[position], decisive[position]),
            found.stays.get(position),
            matched[position],
            decisive[position],
            last.get(position),
            None
            if position in found.stays
            else found.why_denies_go.get(position) or _why_unused(matched, used, position),
        )
        for position, acl in enumerate(rules.acls)
    ]


def _logged(questions: Iterable[Asked]) -> Iterable[Sequence[int]]:
    """Yield ACLs of which one has to stay, as the log has it allow what the rules deny now."""
    for each in questions:
        if each.was_allowed and each.allows and each.denies:
            yield each.allows
        # Nobody can tell which of them it was.
        yield from ([position] for position in each.explaining)


def _why_unused(matched: Counter[int], used: Collection[int], position: int) -> str:
    if not matched[position]:
        return "No event met it."
    if position in used:
        return "Others that stay allow what was used of it."
    return "It allowed no event: DENYs took back whatever was asked of it."


def _use(matched: int, decisive: int) -> UseKind:
    if decisive:
        return UseKind.NEEDED
    return UseKind.NEVER_DECISIVE if matched else UseKind.UNMATCHED
