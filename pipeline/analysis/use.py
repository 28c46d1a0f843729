"""Which ACLs the questions of a log needed, and which can go together without any answer changing.

It follows the rules of `broker.acl.decisions`. A question that is allowed by ACLs needs one of
them; one that a DENY answers needs one of these, as long as an ALLOW is there that would allow it;
and where everyone is allowed if no ACL is found, one that is denied by default needs some ACL whose
pattern matches the resource, whichever principal it names.

What goes is chosen so that no answer to these questions changes, and with two precautions about
what nobody has asked yet:

- Where everyone is allowed if no ACL is found, no resource loses its last ACL: the log cannot tell
  who would come.
- A DENY that no question met stays, unless it is asked for.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from enum import Enum
from typing import NamedTuple

from aclbroker.broker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.scope import PatternKey, Scopes, kafka_overlooks


class Asked(NamedTuple):
    """Questions that are the same to all ACLs, which are given as positions in `Ruleset.acls`.

    ``allows`` and ``denies`` are the ACLs that allow and deny it. ``only`` is the one ACL on the
    resource, if there is one alone and everyone is allowed where there is none. ``events`` is how
    often it was asked, ``last_day`` when last. Questions of super users do not belong here.
    """

    allows: Sequence[int]
    denies: Sequence[int]
    only: int | None
    events: int
    last_day: date


class UseKind(Enum):
    """What an ACL is to the questions of a log; the values are for tables."""

    UNMATCHED = "unmatched"
    """No question meets it."""

    NEVER_DECISIVE = "never decisive"
    """Questions meet it, but others answer each of them the same."""

    NEEDED = "needed"
    """If it alone were removed, the answer to a question would change."""


class Stay(Enum):
    """Why an ACL is not to be removed; the values are for tables."""

    NEEDED = "needed"
    CHOSEN = "others that do the same go"
    CLOSES = "the last one that keeps a resource closed"
    UNMATCHED_DENY = "what it denies was not tried yet"
    YOUNG = "younger than the log"
    PUT_BACK = "a replay without it changed decisions"


class AclUse(NamedTuple):
    """An ACL and what it was used for; it can go, together with all like it, if ``stays`` is None.

    ``events`` counts what it matched, allowed and denied ones, and ``last_day`` is the last of
    them; ``decisive_events`` those whose answer depends on it alone.
    """

    acl: AclBinding
    use: UseKind
    stays: Stay | None
    events: int
    decisive_events: int
    last_day: date | None


def acl_uses(
    rules: Ruleset,
    asked: Iterable[Asked],
    *,
    young: Collection[int] = (),
    unmatched_denies: bool = False,
) -> list[AclUse]:
    """Return the use of each ACL of ``rules``, in order.

    ``young`` are the positions of ACLs that are not to be removed, because the log may be older
    than they are. With ``unmatched_denies``, a DENY that no question met may go too.
    """
    questions = list(asked)
    matched, decisive = Counter[int](), Counter[int]()
    last: dict[int, date] = {}
    for each in questions:
        for position in (*each.allows, *each.denies):
            matched[position] += each.events
            last[position] = max(each.last_day, last.get(position, each.last_day))
        alone = _decides_alone(each)
        if alone is not None:
            decisive[alone] += each.events
    stays = dict.fromkeys(young, Stay.YOUNG) | dict.fromkeys(decisive, Stay.NEEDED)
    stays = _staying(rules, questions, matched, stays, unmatched_denies=unmatched_denies)
    return [
        AclUse(
            acl,
            _use(matched[position], decisive[position]),
            stays.get(position),
            matched[position],
            decisive[position],
            last.get(position),
        )
        for position, acl in enumerate(rules.acls)
    ]


def _use(matched: int, decisive: int) -> UseKind:
    if decisive:
        return UseKind.NEEDED
    return UseKind.NEVER_DECISIVE if matched else UseKind.UNMATCHED


def _decides_alone(question: Asked) -> int | None:
    """Return the ACL without which the answer would be another, if all others stay."""
    allows, denies, only, *_ = question
    if denies:
        # Without the last DENY it would be allowed by an ALLOW, or because no ACL is left.
        return denies[0] if len(denies) == 1 and (allows or only is not None) else None
    if allows:
        # If it is the only ACL there is, it is allowed without it too.
        return allows[0] if len(allows) == 1 and only is None else None
    return only


def _staying(
    rules: Ruleset,
    questions: list[Asked],
    matched: Counter[int],
    stays: dict[int, Stay],
    *,
    unmatched_denies: bool,
) -> dict[int, Stay]:
    """Return which ACLs stay and why, those of ``stays`` among them."""
    found = dict(stays)
    acls = rules.acls
    allowed = (each.allows for each in questions if each.allows and not each.denies)
    _choose(acls, allowed, found, cidr=rules.cidr)
    if not unmatched_denies:
        for position, acl in enumerate(acls):
            if acl.permission is AclPermission.DENY and not matched[position]:
                found.setdefault(position, Stay.UNMATCHED_DENY)
    # Where the default allows, something has to deny in any case.
    default = rules.allow_everyone_if_no_acl_found
    denied = (
        each.denies
        for each in questions
        if each.denies and (default or any(position in found for position in each.allows))
    )
    _choose(acls, denied, found, cidr=rules.cidr)
    if default:
        _keep_closed(rules, found)
    return found


def _choose(
    acls: Sequence[AclBinding],
    sets: Iterable[Sequence[int]],
    stays: dict[int, Stay],
    *,
    cidr: bool,
) -> None:
    """Choose few ACLs that stay, so that each of the sets has one of them.

    The next one is always the ACL in most of the sets left, and of equals the one that grants
    least.
    """
    # Where Kafka overlooks how a host is written, what it matches must stay for our broker's sake
    # and for Kafka's; only an ACL that both match can stand for others.
    weak = frozenset(p for p, acl in enumerate(acls) if not cidr and kafka_overlooks(acl.host))
    distinct = {frozenset(each) - weak or frozenset(each) for each in sets}
    left = [each for each in distinct if not any(position in stays for position in each)]
    members: dict[int, list[frozenset[int]]] = {}
    for each in left:
        for position in each:
            members.setdefault(position, []).append(each)
    open_sets = set(left)
    queue = [(-len(each), _breadth(acls[p]), p) for p, each in members.items()]
    heapq.heapify(queue)
    chosen: list[int] = []
    while open_sets:
        size, breadth, position = heapq.heappop(queue)
        still = [each for each in members[position] if each in open_sets]
        if len(still) < -size:
            if still:
                heapq.heappush(queue, (-len(still), breadth, position))
            continue
        chosen.append(position)
        open_sets.difference_update(still)
    stays.update(dict.fromkeys(_without_superfluous(chosen, members), Stay.CHOSEN))


def _without_superfluous(
    chosen: list[int], members: dict[int, list[frozenset[int]]]
) -> Iterable[int]:
    """Return the chosen ACLs without those that no set needs, as it has another chosen one."""
    kept = set(chosen)
    # ACLs that were chosen later may be in all the sets of an earlier one.
    for position in chosen:
        if all(len(each & kept) > 1 for each in members[position]):
            kept.discard(position)
    return kept


def _breadth(acl: AclBinding) -> tuple[bool, int, bool, bool]:
    """Return a key to sort ACLs by how much they say: of whom, which names, hosts, operations."""
    literal = acl.pattern_type is PatternType.LITERAL
    if acl.resource_name == WILDCARD and literal:
        names = 1
    else:
        names = -len(acl.resource_name) if not literal else -(1 << 30)
    return (
        acl.principal == WILDCARD_PRINCIPAL,
        names,
        acl.host == WILDCARD,
        acl.operation is AclOperation.ALL,
    )


def _keep_closed(rules: Ruleset, stays: dict[int, Stay]) -> None:
    """Add an ACL of each pattern that no pattern of a staying ACL covers.

    Of a pattern's ACLs it is rather a DENY than an ALLOW, and then the one that says least.
    """
    scopes = Scopes(rules.acls, rules.cidr)
    closed = {scopes.pattern(rules.acls[position]) for position in stays}
    going: dict[PatternKey, list[int]] = {}
    for position, acl in enumerate(rules.acls):
        if position not in stays:
            going.setdefault(scopes.pattern(acl), []).append(position)
    # Wide patterns first: what they close is closed for all within.
    for pattern in sorted(going, key=_widest_first):
        first = rules.acls[going[pattern][0]]
        if closed.isdisjoint(scopes.patterns(first)):
            best = min(going[pattern], key=lambda position: _harm(rules.acls[position]))
            stays[best] = Stay.CLOSES
            closed.add(pattern)


def _widest_first(pattern: PatternKey) -> tuple[int, int, str]:
    _, pattern_type, name = pattern
    if pattern_type is PatternType.PREFIXED:
        return 1, len(name), name
    return (0 if name == WILDCARD else 2), 0, name


def _harm(acl: AclBinding) -> tuple[bool, tuple[bool, int, bool, bool]]:
    return acl.permission is AclPermission.ALLOW, _breadth(acl)
