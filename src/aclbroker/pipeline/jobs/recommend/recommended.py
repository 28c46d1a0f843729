"""What tasks found for `recommend`, put together by cluster, with no ACL as an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.by_principal import Grouped, Packed, every, every_change
from aclbroker.pipeline.acls.ruleset import Change, Ruleset
from aclbroker.pipeline.analysis.least_privilege import Principals, Unmet
from aclbroker.pipeline.jobs.recommend import pieces
from aclbroker.pipeline.jobs.recommend.known import denies_of
from aclbroker.pipeline.jobs.recommend.prefix_rows import ConsideredPrefix
from aclbroker.pipeline.jobs.recommend.replayed import ReplayCounts, added_up, session_of
from aclbroker.pipeline.usage.packing import unpacked


class RecommendedAcls:
    """The ACLs that are recommended for a cluster.

    ``current``: the current rules; None if they are unknown. ``allows``: the ALLOWs by principal,
    packed. ``denies``: the places of the DENYs that stay, among `denies_of` the current rules.
    ``doubted``: ALLOWs of other principals that stay because quarantined lines may have used them.
    """

    def __init__(
        self,
        current: Ruleset | None,
        allows: Mapping[str, bytes],
        denies: Iterable[int],
        doubted: Iterable[AclBinding] = (),
    ) -> None:
        self.super_users = frozenset[str]() if current is None else current.super_users
        self.now: Sequence[AclBinding] = () if current is None else current.acls
        every_deny = [] if current is None else denies_of(current)
        self.denies = [every_deny[place] for place in sorted(set(denies))]
        self.doubted = frozenset(doubted)
        self.by_principal = Packed(allows, [*self.denies, *self.doubted])
        self._allows = allows

    @property
    def acls(self) -> Iterator[AclBinding]:
        """All of them, one principal's after the other."""
        return every(self.by_principal)

    def changes(self) -> Iterator[tuple[AclBinding, Change]]:
        """Yield every ACL of now and every recommended one, and what becomes of it."""
        return every_change(Grouped(self.now), self.by_principal)

    def other_changes(self) -> Iterator[tuple[AclBinding, Change]]:
        """Yield the same of DENYs alone, and of those who have no recommended ALLOW."""
        kept = set(self.denies)
        for acl in self.now:
            if acl.permission is AclPermission.DENY:
                yield acl, "kept" if acl in kept else "removed"
            elif acl.principal not in self._allows:
                yield acl, "kept" if acl in self.doubted else "removed"

    @cached_property
    def tally(self) -> Tally:
        """What is counted of them."""
        return tallied(self.acls)

    def __len__(self) -> int:
        return sum(self.tally.by_type.values())


class Tally(NamedTuple):
    """What is counted of ACLs in one go.

    ``by_type``: how many there are of each resource type. ``prefixed``: how many are PREFIXED
    ALLOWs.
    """

    by_type: Mapping[ResourceType, int]
    prefixed: int


def tallied(acls: Iterable[AclBinding]) -> Tally:
    """Count ACLs."""
    by_type: Counter[ResourceType] = Counter()
    prefixed = 0
    for acl in acls:
        by_type[acl.resource_type] += 1
        if acl.permission is AclPermission.ALLOW:
            prefixed += acl.pattern_type is PatternType.PREFIXED
    return Tally(by_type, prefixed)


@dataclass
class PartsTogether:
    """What all parts of a cluster found.

    ``sessions``: the principals of every session. ``unmet``: what was used, and no ACL can be
    recommended for. ``considered``: the prefixes that could have been recommended.
    """

    sessions: list[Principals] = field(default_factory=list)
    counts: list[pa.Table] = field(default_factory=list)
    allows: dict[str, bytes] = field(default_factory=dict)
    denies: set[int] = field(default_factory=set)
    unmet: list[Unmet] = field(default_factory=list)
    considered: list[ConsideredPrefix] = field(default_factory=list)

    def take(self, kind: str, cluster: str, principal: str, packed: pa.Scalar) -> None:
        """Add what one piece has."""
        if kind == pieces.ALLOWS:
            self.allows[principal] = packed.as_py()
            return
        (table,) = unpacked([packed])
        if kind == pieces.SESSIONS:
            self.sessions += map(session_of, table.to_pylist())
        elif kind == pieces.COUNTS:
            self.counts.append(table)
        elif kind == pieces.DENIES:
            self.denies.update(table["place"].to_pylist())
        elif kind == pieces.UNMET:
            self.unmet += (_unmet(**row) for row in table.to_pylist())
        else:
            rows = (row.values() for row in table.to_pylist())
            self.considered += (ConsideredPrefix(cluster, *row) for row in rows)

    @property
    def counted(self) -> ReplayCounts:
        """What the replay says of all questions."""
        return added_up(self.counts)


def _unmet(principals: Sequence[str], operation: str, resource_type: str, **further: Any) -> Unmet:
    return Unmet(
        tuple(principals),
        further["host"],
        AclOperation[operation],
        ResourceType[resource_type],
        further["resource_name"],
        further["reason"],
    )


def put_together(found: pa.Table) -> dict[str, PartsTogether]:
    """Return what pieces have, but for the rights and the flips, by cluster in order."""
    parts: dict[str, PartsTogether] = {}
    keys = found.select(["kind", "cluster", "principal"])
    for row, packed in zip(keys.to_pylist(), found["packed"], strict=True):
        parts.setdefault(row["cluster"], PartsTogether()).take(packed=packed, **row)
    return dict(sorted(parts.items()))
