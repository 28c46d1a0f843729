"""Which ACLs stay, so that nothing that was used is lost and nothing opens; all others can go.

ALLOWs stay as far as questions need them, narrow ones before wide ones, and of those that are
equally wide the fewest that suffice: what goes closes as much as it can that nobody used. A DENY
stays if an ALLOW that stays would allow some of what it denies and no other DENYs hold for
all of that, whether or not anybody asked: the log cannot tell who would come. And where
everyone is allowed if no ACL is found, each pattern keeps an ACL that closes its names.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.acl.reasoning.lint.removal import Removal
from aclbroker.acl.reasoning.lint.scopes import Pattern, PatternsAround, pattern_of_acl
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.proof import (
    Breadth,
    Extent,
    breadth,
    extent,
    harm,
    is_overlooked,
    readings,
)

_ALLOW: Final = AclPermission.ALLOW


class Stay(Enum):
    """Why an ACL is not to be removed; the values are for tables."""

    NEEDED = "needed"
    CHOSEN = "others that do the same go"
    LOGGED = "the log has allowed events that it explains and the rules given deny"
    PROTECTS = "it denies what an ALLOW that stays allows"
    CLOSES = "the last one that keeps a resource closed"
    YOUNG = "younger than the log"
    KEPT = "on the keep-list"
    DOUBTED = "a line in quarantine may have used it"
    PUT_BACK = "without it something would open or be decided otherwise"


class Needs(NamedTuple):
    """The ACLs that must stay, as positions.

    All of ``young``, ``doubted``, ``kept`` and ``needed`` stay. Each set in ``allowing`` holds the
    ACLs that allow one question, so at least one ACL of each set stays. The same holds for
    ``logged``, whose events were allowed in the log but are denied by the rules.
    """

    young: Collection[int]
    doubted: Collection[int]
    needed: Collection[int]
    allowing: Collection[frozenset[int]]
    logged: Collection[frozenset[int]]
    kept: Collection[int] = ()


class Kept(NamedTuple):
    """Which ACLs stay, by position, and why; and why those of the DENYs can go that do."""

    stays: dict[int, Stay]
    why_denies_go: dict[int, str]


def staying(rules: Ruleset, needs: Needs) -> Kept:
    """Return what stays of the rules. None of the sets of ``needs`` is empty."""
    acls = rules.acls
    fixed = dict.fromkeys(needs.doubted, Stay.DOUBTED)
    fixed |= dict.fromkeys(needs.young, Stay.YOUNG) | dict.fromkeys(needs.kept, Stay.KEPT)
    for position in needs.needed:
        if acls[position].permission == _ALLOW:
            fixed[position] = Stay.NEEDED
    chosen = _chosen(rules, {*needs.allowing, *needs.logged}, fixed)
    current = frozenset().union(*needs.allowing)
    for position in chosen:
        fixed[position] = Stay.CHOSEN if position in current else Stay.LOGGED
    # An ALLOW that is kept to close names may be one that DENYs must take back from.
    while True:
        stays = dict(fixed)
        why_go = _denies(rules, stays)
        closing = _closing(rules, stays) if rules.allow_everyone_if_no_acl_found else []
        allows = [position for position in closing if acls[position].permission == _ALLOW]
        if not allows:
            stays |= dict.fromkeys(closing, Stay.CLOSES)
            needed = {each for each in needs.needed if each in stays}
            stays |= dict.fromkeys(needed, Stay.NEEDED)
            return Kept(stays, {each: why for each, why in why_go.items() if each not in stays})
        fixed |= dict.fromkeys(allows, Stay.CLOSES)


def _denies(rules: Ruleset, stays: dict[int, Stay]) -> dict[int, str]:
    """Add the DENYs that must stay beside the ALLOWs that do; return why each of the others can go.

    They can go together however hosts are read, and any of them alone.
    """
    denies = [at for at, acl in enumerate(rules.acls) if acl.permission != _ALLOW]
    if not denies:
        return {}
    kept = [acl for at, acl in enumerate(rules.acls) if at in stays and acl.permission == _ALLOW]
    # What closes names is looked at apart from this.
    left = replace(
        rules.with_acls([*kept, *(rules.acls[at] for at in denies)]),
        allow_everyone_if_no_acl_found=False,
    )
    why: dict[AclBinding, str] = {}
    for number, reading in enumerate(readings(left)):
        proofs = {each.acl: each.proof for each in Removal(reading).findings}
        given = zip(left.acls, reading.acls, strict=True)
        found = {acl: proofs[as_read] for acl, as_read in given if as_read in proofs}
        why = {acl: why[acl] for acl in why if acl in found} if number else found
    for position in denies:
        if rules.acls[position] not in why:
            stays.setdefault(position, Stay.PROTECTS)
    return {at: why[rules.acls[at]] for at in denies if rules.acls[at] in why}


def _closing(rules: Ruleset, stays: Mapping[int, Stay]) -> list[int]:
    """Return an ACL of each pattern that no pattern of an ACL that stays holds all names of.

    Of a pattern's ACLs it is rather a DENY than an ALLOW, and then the one that says least.
    """
    patterns = [pattern_of_acl(acl) for acl in rules.acls]
    known = [each for each in patterns if each is not None]
    around = PatternsAround(known)
    closed = {patterns[position] for position in stays}
    going: dict[Pattern, list[int]] = {}
    for position, pattern in enumerate(patterns):
        if position not in stays and pattern is not None:
            going.setdefault(pattern, []).append(position)
    found = []
    # In order, wide patterns come before those in them: what they close is closed for all within.
    for pattern in sorted(going):
        if closed.isdisjoint(around(pattern)):
            found.append(min(going[pattern], key=lambda position: harm(rules.acls[position])))
            closed.add(pattern)
    return found


def _chosen(
    rules: Ruleset, sets: Iterable[frozenset[int]], stays: Collection[int]
) -> Collection[int]:
    """Choose ACLs that stay beside others, so that each of the sets has one of them.

    Of a set stays one of those that say least, unless one that says more has to stay for another
    set. Among those that say equally much they are few.
    """
    acls = rules.acls
    # Where Kafka overlooks how a host is written, what it matches must stay for our broker's sake
    # and for Kafka's; only an ACL that both match can stand for others.
    weak = frozenset(
        at for at, acl in enumerate(acls) if not rules.cidr and is_overlooked(acl.host)
    )
    fixed = frozenset(stays)
    distinct = {each - weak or each for each in sets}
    left = [each for each in distinct if each.isdisjoint(fixed)]
    members: dict[int, list[int]] = {}
    for number, each in enumerate(left):
        for position in each:
            members.setdefault(position, []).append(number)
    by_extent: dict[Extent, list[int]] = {}
    for position in members:
        by_extent.setdefault(extent(acls[position]), []).append(position)
    needing = _needing(by_extent, members)
    chosen: list[int] = []
    served: set[int] = set()
    for width in sorted(by_extent, reverse=True):
        theirs: dict[int, set[int]] = {}
        ranks: dict[int, tuple[int, Breadth]] = {}
        for at in by_extent[width]:
            still = set(members[at]) - served
            # Of equal ones, that which serves most other sets as well.
            theirs[at], ranks[at] = still & needing[width], (-len(still), breadth(acls[at]))
        for at in _fewest(theirs, ranks):
            chosen.append(at)
            served.update(members[at])
    return chosen


def _needing(
    by_extent: Mapping[Extent, Sequence[int]], members: Mapping[int, Sequence[int]]
) -> Mapping[Extent, set[int]]:
    """Return by extent the sets that have no ACL which says less."""
    found: dict[Extent, set[int]] = {}
    known: set[int] = set()
    for each in sorted(by_extent):
        found[each] = {number for at in by_extent[each] for number in members[at]} - known
        known |= found[each]
    return found


def _fewest(
    members: Mapping[int, Collection[int]], ranks: Mapping[int, tuple[int, Breadth]]
) -> Collection[int]:
    """Choose few of some ACLs, so that each of the sets that they are in has one of them.

    The next one is always that in most of the sets left; of equals, that of the least rank.
    """
    left = {number for numbers in members.values() for number in numbers}
    queue = [(-len(numbers), ranks[at], at) for at, numbers in members.items() if numbers]
    heapq.heapify(queue)
    chosen: list[int] = []
    while left:
        size, rank, at = heapq.heappop(queue)
        still = left.intersection(members[at])
        if len(still) < -size:
            if still:
                heapq.heappush(queue, (-len(still), rank, at))
            continue
        chosen.append(at)
        left -= still
    return _without_superfluous(chosen, members)


def _without_superfluous(
    chosen: Sequence[int], members: Mapping[int, Collection[int]]
) -> Collection[int]:
    """Return the chosen ACLs without those that no set needs, as it has another chosen one."""
    counts = Counter(number for at in chosen for number in members[at])
    kept = dict.fromkeys(chosen)
    # ACLs that were chosen later may be in all the sets of an earlier one.
    for at in chosen:
        if all(counts[number] > 1 for number in members[at]):
            del kept[at]
            counts.subtract(members[at])
    return kept
