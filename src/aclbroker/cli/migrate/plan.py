"""What a move has to change, and what it cannot bring along; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from aclbroker.acl.acl_text import acl_text
from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.cli.policy.plan import Plan, plan

SHOWN: Final = 20
"""How many ACLs of a kind are shown, unless all are asked for."""

Refusal = Callable[[AclBinding], str | None]


class Move(NamedTuple):
    """The changes of a target, in the order in which they are made.

    ``lost`` are the ACLs of the source that the target cannot hold, and those of the target that
    cannot be removed, each with why. ``stays`` is what the target has that the source has not.
    """

    source: Sequence[AclBinding]
    there: Sequence[AclBinding]
    changes: Plan
    lost: Mapping[AclBinding, str]
    stays: Sequence[AclBinding]

    def lines(self, *, prune: bool, shows_all: bool) -> Iterator[str]:
        """Yield what is told before the changes are made."""
        create, remove = self.changes
        known = set(self.there).intersection(self.source)
        yield f"to add: {counted(len(create))}; there already: {len(known):,}"
        limit = None if shows_all else SHOWN
        yield from _some("+", create, limit)
        if remove:
            yield f"only in the target, to remove: {counted(len(remove))}"
            yield from _some("-", remove, limit)
        if self.stays:
            why = "cannot be removed" if prune else "stays without --prune"
            yield f"only in the target, {why}: {counted(len(self.stays))}"
            yield from _some("=", self.stays, limit)


class Step(NamedTuple):
    """A change of one request or transaction."""

    added: Sequence[AclBinding]
    removed: Sequence[AclBinding]


def move(
    source: Sequence[AclBinding], there: Sequence[AclBinding], refusal: Refusal, *, prune: bool
) -> Move:
    """Return what brings the ACLs of a source to a target that has others.

    Unless told to prune, what is there and the source has not stays.
    """
    lost = lost_of(source, refusal)
    changes = plan(set(source).difference(lost), there, prune=prune)
    others = sorted(set(there).difference(source))
    kept = lost_of(changes.remove, refusal)
    changes = changes._replace(remove=tuple(acl for acl in changes.remove if acl not in kept))
    stays = [acl for acl in others if acl in kept] if prune else others
    return Move(source, there, changes, {**lost, **kept}, stays)


def lost_of(acls: Iterable[AclBinding], refusal: Refusal) -> dict[AclBinding, str]:
    """Return the ACLs that a target cannot hold, each with why."""
    reasons = ((acl, refusal(acl)) for acl in acls)
    return {acl: reason for acl, reason in reasons if reason is not None}


def denies(acls: Iterable[AclBinding]) -> list[AclBinding]:
    """Return the ACLs that deny, or whose permission is not known."""
    return [acl for acl in acls if acl.permission is not AclPermission.ALLOW]


def steps(changes: Plan, at_once: int | None, removed_at_once: int | None = None) -> Iterator[Step]:
    """Return changes of at most ``at_once`` ACLs each, or all as one.

    Of those to remove it is ``removed_at_once``, by default as many.

    None has DENYs beside ALLOWs, so that what the plan says of their order holds within it, too.
    """
    if at_once is None:
        yield Step(*changes)
        return
    for part in _parts(changes.create, at_once):
        yield Step(part, ())
    for part in _parts(changes.remove, removed_at_once or at_once):
        yield Step((), part)


def _parts(acls: Sequence[AclBinding], at_once: int) -> Iterator[Sequence[AclBinding]]:
    first = 0
    while first < len(acls):
        permission = acls[first].permission
        end = first
        while end < min(first + at_once, len(acls)) and acls[end].permission is permission:
            end += 1
        yield acls[first:end]
        first = end


def lost_lines(lost: Mapping[AclBinding, str], limit: int | None = None) -> Iterator[str]:
    """Yield a line for each ACL that is lost, with why."""
    ordered = sorted(lost, key=lambda acl: (acl.permission is AclPermission.ALLOW, acl))
    for acl in islice(ordered, limit):
        yield f"! {acl_text(acl)}: {lost[acl]}"
    if limit is not None and len(ordered) > limit:
        yield f"! and {len(ordered) - limit:,} more"


def _some(sign: str, acls: Collection[AclBinding], limit: int | None) -> Iterator[str]:
    for acl in islice(acls, limit):
        yield f"{sign} {acl_text(acl)}"
    if limit is not None and len(acls) > limit:
        yield f"{sign} and {len(acls) - limit:,} more, which --dry-run shows"


def counted(number: int) -> str:
    """Return so many ACLs, as text."""
    return f"{number:,} ACL{'s' * (number != 1)}"
