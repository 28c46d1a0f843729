"""The history of a cluster's ACLs: what was granted and revoked at which position, and by whom."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.ruleset import Ruleset


class Maker(NamedTuple):
    """Who made a change, None if it was the broker itself, and from which address."""

    principal: str | None
    host: str


class AclChange(NamedTuple):
    """One ACL that was granted or revoked.

    ``position`` is that of the transaction that it was part of. ``maker`` and ``time_ms``, in
    milliseconds since the epoch, are None where they are not known.
    """

    position: int
    acl: AclBinding
    removed: bool
    maker: Maker | None
    time_ms: int | None


UNKNOWN_TIME = -1


@dataclass(frozen=True, slots=True)
class AclHistory:
    """The changes of ACLs in their order, numbered from 0, as columns, and what they leave out.

    ``rules`` has each ACL that there ever was, once, and the settings to decide by. Of change *i*,
    the ACL is ``rules.acls[which[i]]``, ``removed[i]`` tells whether it was revoked,
    ``positions[i]`` the transaction, ``times[i]`` when it was made (`UNKNOWN_TIME` if that is not
    known), and ``makers[which_maker[i]]`` who made it.

    Up to the position ``horizon`` only those ACLs are told that were there at that position; what
    holds at it and later is known, up to ``last``. ``cluster`` is what the store calls it.
    """

    rules: Ruleset
    which: array[int]
    removed: bytes
    positions: array[int]
    times: array[int]
    which_maker: array[int]
    makers: tuple[Maker | None, ...]
    horizon: int
    last: int
    cluster: str | None = None

    def __len__(self) -> int:
        return len(self.positions)

    def under(self, settings: Ruleset) -> AclHistory:
        """Return the same changes under other settings."""
        return replace(self, rules=replace(settings, acls=self.rules.acls))

    def maker(self, number: int) -> Maker | None:
        """Return who made a change."""
        return self.makers[self.which_maker[number]]

    def acl(self, number: int) -> AclBinding:
        """Return what a change granted or revoked."""
        return self.rules.acls[self.which[number]]


def history_of(
    changes: Iterable[AclChange], *, horizon: int, last: int, cluster: str | None = None
) -> AclHistory:
    """Return changes, which come in their order, as a history."""
    acls: dict[AclBinding, int] = {}
    makers: dict[Maker | None, int] = {}
    which, which_maker = array("I"), array("I")
    positions, times, removed = array("q"), array("q"), bytearray()
    for change in changes:
        which.append(acls.setdefault(change.acl, len(acls)))
        which_maker.append(makers.setdefault(change.maker, len(makers)))
        positions.append(change.position)
        times.append(UNKNOWN_TIME if change.time_ms is None else change.time_ms)
        removed.append(change.removed)
    rules = Ruleset(tuple(acls))
    columns = which, bytes(removed), positions, times, which_maker
    return AclHistory(rules, *columns, tuple(makers), horizon, last, cluster)
