"""Makes the changes of a move in steps, and compares the target with what it should have then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.cli.migrate.places import Place
from aclbroker.cli.migrate.plan import denies, steps
from aclbroker.cli.migrate.progress import Progress
from aclbroker.cli.policy.plan import Plan

_PAUSE_S: Final = 0.1


class LostDenies(Exception):
    """The target refused DENYs, and nothing after them was done; ``lost`` has each with why."""

    def __init__(self, lost: Mapping[AclBinding, str]) -> None:
        super().__init__(f"{len(lost)} DENYs were refused")
        self.lost = lost


class Difference(NamedTuple):
    """What a place lacks of what it should have, and what it has beside that."""

    missing: set[AclBinding]
    others: set[AclBinding]

    def __bool__(self) -> bool:
        return bool(self.missing or self.others)


def make(changes: Plan, target: Place, *, may_lose_denies: bool) -> dict[AclBinding, str]:
    """Make changes in their order; return the ACLs that the target refused, each with why.

    DENYs come first: unless they may be lost, `LostDenies` is raised before anything else is added
    if the target refuses one. Raises `PlaceError`; what was done until then stays, and the same
    changes may be made again.
    """
    refused: dict[AclBinding, str] = {}
    progress = Progress(len(changes.create) + len(changes.remove))
    try:
        for step in steps(changes, target.at_once, target.removed_at_once):
            refused |= target.write(step.added, step.removed)
            if not may_lose_denies and denies(refused):
                raise LostDenies(refused)
            progress.add(len(step.added) + len(step.removed))
    finally:
        progress.end()
    return refused


def difference(
    target: Place, wanted: Iterable[AclBinding], gone: Iterable[AclBinding] | None = None
) -> Difference:
    """Return how a target differs from what it should have, once it has settled.

    ``gone`` is what it should not have; None is all but what is wanted.
    """
    wanted = set(wanted)
    unwanted = None if gone is None else set(gone)
    deadline = time.monotonic() + target.settles_within
    while True:
        there = set(target.read(may_be_new=True).acls)
        others = there - wanted if unwanted is None else there & unwanted
        found = Difference(wanted - there, others)
        if not found or time.monotonic() >= deadline:
            return found
        time.sleep(_PAUSE_S)
