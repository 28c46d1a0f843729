"""Removes ACLs only as far as nothing opens, and a replay of all that was asked flips nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.opened import Opened
from aclbroker.pipeline.analysis.proof import Removed, removed
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Acls = Mapping[str, Collection[AclBinding]]
"""ACLs by cluster."""


class Replayed(NamedTuple):
    """How many events there were, by cluster, and how many of all were decided otherwise."""

    events: dict[str, int]
    flipped: int


class Removal(NamedTuple):
    """What is left when ACLs are removed, by cluster, with the proof that it does no harm.

    ``by_cluster`` proves for all requests, asked or not, that none becomes allowed. ``events``
    counts the events that were replayed under what remains; none of them is decided otherwise than
    under the rules as they are. ``put_back`` are ACLs that were to go, but without which one of the
    two would not hold.
    """

    by_cluster: dict[str, Removed]
    put_back: dict[str, set[AclBinding]]
    events: dict[str, int]

    @property
    def remaining(self) -> dict[str, Ruleset]:
        """The rules without what goes."""
        return {cluster: found.remaining for cluster, found in self.by_cluster.items()}

    @property
    def changed(self) -> dict[str, Opened]:
        """The rights that it closes; it opens none."""
        return {cluster: found.changed for cluster, found in self.by_cluster.items()}


def proven(usage: Usage, current: Mapping[str, Ruleset], going: Acls) -> Removal:
    """Remove those of the ACLs ``going`` without which nothing opens and no event flips.

    Decisions are compared with those under the ``current`` rules, not with those in the log.
    """
    left = {cluster: set(going.get(cluster, ())) for cluster in current}
    put_back: dict[str, set[AclBinding]] = {cluster: set() for cluster in current}
    while True:
        proofs = {cluster: removed(rules, left[cluster]) for cluster, rules in current.items()}
        for cluster, proof in proofs.items():
            put_back[cluster] |= proof.put_back
            left[cluster] -= proof.put_back
        remaining = {cluster: proof.remaining for cluster, proof in proofs.items()}
        found = replayed(usage, current, remaining)
        if not found.flipped:
            return Removal(proofs, put_back, found.events)
        for cluster, positions in _behind(usage, current, remaining).items():
            acls = {current[cluster].acls[position] for position in positions}
            # Only a removed ACL can be at fault. If none is found, all of them are put back.
            back = left[cluster] & acls or set(left[cluster])
            put_back[cluster] |= back
            left[cluster] -= back


def rules_of(current: Mapping[str, Ruleset], job: str) -> dict[str, Ruleset]:
    """Return the current rules. Raises InputError, which names the job, if there are none."""
    if not any(rules.acls for rules in current.values()):
        raise InputError(f"{job} needs the ACLs of a cluster: give them with --acls")
    return dict(current)


def _decided(
    usage: Usage,
    before: Mapping[str, Ruleset],
    after: Mapping[str, Ruleset],
    *,
    explain: bool = False,
) -> DataFrame:
    sets = {"before": before, "after": after}
    return replay.replayed(usage, sets, explain=explain)


def replayed(usage: Usage, before: Mapping[str, Ruleset], after: Mapping[str, Ruleset]) -> Replayed:
    """Decide all usage under two sets of rules, and count."""
    counted = (
        _decided(usage, before, after)
        .groupBy("cluster")
        .agg(
            F.sum("events").alias("events"),
            F.sum(F.when(_is_flipped(), F.col("events")).otherwise(0)).alias("flipped"),
        )
        .collect()
    )
    return Replayed(
        {row["cluster"]: row["events"] for row in counted}, sum(row["flipped"] for row in counted)
    )


def _is_flipped() -> Column:
    return F.col("before_allowed") != F.col("after_allowed")


def _behind(
    usage: Usage, before: Mapping[str, Ruleset], after: Mapping[str, Ruleset]
) -> dict[str, set[int]]:
    """Return the ACLs behind what is decided otherwise, as positions, by cluster."""
    lists = (f"before_{name}" for name in ("allows", "denies", "on_resource"))
    acls = F.concat(*(F.coalesce(F.col(name), F.array().cast("array<int>")) for name in lists))
    found = _decided(usage, before, after, explain=True).where(_is_flipped())
    behind: dict[str, set[int]] = {}
    for cluster, position in found.select("cluster", F.explode_outer(acls)).distinct().collect():
        behind.setdefault(cluster, set())
        if position is not None:
            behind[cluster].add(position)
    return behind
