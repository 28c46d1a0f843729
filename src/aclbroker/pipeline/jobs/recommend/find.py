"""Finds the smallest set of ACLs for what was used, and proves it by a replay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.acls.acl_table import acl_values
from aclbroker.pipeline.analysis.least_privilege import Principals, Unmet
from aclbroker.pipeline.errors import DoubtedLogError, InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.coverage import too_little
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.left_out import left_out_lines
from aclbroker.pipeline.interface.opened_rights import (
    RIGHTS_IN_PARTS,
    OpenedInShort,
    rights_in_parts,
    rights_written,
)
from aclbroker.pipeline.jobs.recommend import pieces
from aclbroker.pipeline.jobs.recommend.asked import Gathered, pieces_of
from aclbroker.pipeline.jobs.recommend.changing import CHANGE_COLUMNS, changes_of
from aclbroker.pipeline.jobs.recommend.known import Known
from aclbroker.pipeline.jobs.recommend.options import RecommendOptions
from aclbroker.pipeline.jobs.recommend.part import rights_of_silent
from aclbroker.pipeline.jobs.recommend.pieces import unpacked_pieces
from aclbroker.pipeline.jobs.recommend.prefix_rows import ConsideredPrefix, best_first
from aclbroker.pipeline.jobs.recommend.recommended import (
    PartsTogether,
    RecommendedAcls,
    put_together,
)
from aclbroker.pipeline.jobs.recommend.replayed import ReplayCounts, flips_type
from aclbroker.pipeline.replay.drift import Drift, above, by_subnets, too_much_drift
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLIPS: Final = "recommend/flips"
"""The table of what would be decided otherwise."""

CHANGES: Final = "recommend/changes"
"""The table of what becomes of each ACL."""

OPENED: Final = "recommend/opened"
"""The table of all rights that are opened or closed."""


class RecommendationProof(NamedTuple):
    """The counts by cluster, and the table of what would be decided otherwise, if there is any."""

    counts: dict[str, ReplayCounts]
    flips: DataFrame | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended rules by cluster, with the evidence for them.

    ``unmet``: the use for which no ACL can be recommended. ``considered``: the prefixes that could
    have been recommended. ``sessions``: the principals of every session of the log. ``opened``: the
    rights that the rules open and close, for clusters with known current rules. ``left_out``: the
    clusters without a recommendation, with the reason. ``drift``: the number of events that were
    decided otherwise than the current rules decide, including clusters left out. ``is_doubted``:
    some clusters are left out because of quarantined lines, or because too few hours have allowed
    events. ``doubted_allows``: the number of ALLOWs in the other clusters that stay because
    quarantined lines may have used them.
    """

    unmet: Mapping[str, Sequence[Unmet]]
    considered: Sequence[ConsideredPrefix]
    sessions: Mapping[str, Collection[Principals]]
    rules: Mapping[str, RecommendedAcls]
    proof: RecommendationProof
    opened: Mapping[str, OpenedInShort]
    left_out: Mapping[str, str]
    drift: int
    is_doubted: bool = False
    doubted_allows: int = 0

    def principals_of(self, cluster: str) -> set[str]:
        """Return all principals that the log of a cluster has anything of."""
        return {principal for session in self.sessions[cluster] for principal in session}


def find(inputs: Inputs, options: RecommendOptions) -> Recommendation:
    """Return the recommendation under the options of the job.

    A cluster is left out if its log has no allowed events, too little coverage, too much drift, or
    too many quarantined lines. Raises InputError if no cluster is left.
    """
    if not inputs.window.allowed:
        raise DoubtedLogError(f"the log has no allowed event: {_LOG_ALLOWED}")
    most_hosts = options.most_hosts if options.hosts else None
    gathered = pieces_of(inputs, options.of_prefixes(), most_hosts)
    found = kept = gathered.pieces.persist()
    try:
        in_tables = F.col("kind").isin([pieces.RIGHTS, pieces.FLIPS])
        every_part = put_together(found.where(~in_tables).toArrow())
        counts = {cluster: each.counted for cluster, each in every_part.items()}
        drifts = {name: each.drift for name, each in counts.items() if name in inputs.current}
        drift = sum(each.events for each in drifts.values())
        events = {name: counts[name].events for name in drifts}
        doubted = inputs.quarantine.too_much(events, options.max_quarantined)
        left_out = {**_left_out(inputs, counts, drifts, options), **doubted}
        is_doubted = bool(doubted or too_little(inputs, left_out, options.min_coverage))
        parts = {name: each for name, each in every_part.items() if name not in left_out}
        if not parts:
            error = DoubtedLogError if is_doubted else InputError
            raise error("; ".join(left_out_lines(left_out)), {"drift": drift})
        if left_out:
            found = found.where(F.col("cluster").isin(list(parts)))
            gathered = gathered._replace(pieces=found)
        rules = {
            cluster: _put_together(gathered.known, cluster, each) for cluster, each in parts.items()
        }
        sessions = {cluster: each.sessions for cluster, each in parts.items()}
        opened = _rights(inputs, gathered, rules, sessions, options.top)
        _write_changes(inputs, gathered, rules)
        counts = {cluster: counts[cluster] for cluster in parts}
        proof = RecommendationProof(counts, _flips(inputs, found, counts))
    finally:
        kept.unpersist()
    return Recommendation(
        {cluster: each.unmet for cluster, each in parts.items()},
        best_first(one for each in parts.values() for one in each.considered),
        sessions,
        rules,
        proof,
        opened,
        left_out,
        drift,
        is_doubted,
        sum(len(gathered.known.doubted.get(cluster, ())) for cluster in parts),
    )


def _put_together(known: Known, cluster: str, parts: PartsTogether) -> RecommendedAcls:
    seen = {principal for session in parts.sessions for principal in session}
    return RecommendedAcls(
        known.current.ruleset(cluster),
        parts.allows,
        parts.denies,
        known.doubted_of_silent(cluster, seen),
    )


_LOG_ALLOWED: Final = (
    "the recommendation would be to take every right away. Brokers record denials alone by "
    "default. Set the level of Kafka's kafka.authorizer.logger to DEBUG, or "
    "aclbroker.audit.level=all here, and try again when the log covers all regular work"
)


def _left_out(
    inputs: Inputs,
    counts: Mapping[str, ReplayCounts],
    drifts: Mapping[str, Drift],
    options: RecommendOptions,
) -> dict[str, str]:
    """Return the clusters whose log does not show the needed rights, and why."""
    silent = {
        cluster: f"its log has no allowed event: {_LOG_ALLOWED}"
        for cluster, each in counts.items()
        if cluster in inputs.current and not each.recorded_events
    }
    silent |= too_little(inputs, counts.keys() - silent, options.min_coverage)
    events = {cluster: each.events for cluster, each in counts.items()}
    told = {cluster: each for cluster, each in drifts.items() if cluster not in silent}
    drifting = above(told, events, options.max_drift)
    fewer = by_subnets(inputs.usage, {cluster: inputs.current[cluster] for cluster in drifting})
    drifting = {
        cluster: each._replace(by_subnets=fewer.get(cluster, 0))
        for cluster, each in drifting.items()
    }
    return {
        **silent,
        **too_much_drift(drifting, events, options.max_drift, inputs.usage, inputs.current),
    }


def _write_changes(
    inputs: Inputs, gathered: Gathered, rules: Mapping[str, RecommendedAcls]
) -> None:
    """Write what becomes of each ACL of now, and which others are recommended."""
    allows = gathered.pieces.where(F.col("kind") == pieces.ALLOWS)
    # What goes by principal tasks tell, of those who have recommended ALLOWs.
    others = (
        (*acl_values(cluster, acl), change)
        for cluster, each in rules.items()
        for acl, change in each.other_changes()
    )
    rest = frame_of(inputs.spark, CHANGE_COLUMNS, others)
    theirs = allows.mapInArrow(partial(changes_of, gathered.shipped), rest.schema)
    inputs.output.table(CHANGES, theirs.unionByName(rest))


def _rights(
    inputs: Inputs,
    gathered: Gathered,
    rules: Mapping[str, RecommendedAcls],
    sessions: Mapping[str, Collection[Principals]],
    most_closed: int,
) -> dict[str, OpenedInShort]:
    """Write the rights that are opened and closed, and return them in short."""
    clusters = [cluster for cluster in rules if cluster in inputs.current]
    of_log = gathered.pieces.where(F.col("kind") == pieces.RIGHTS)
    of_log = of_log.mapInArrow(unpacked_pieces, rights_in_parts())
    # Those who asked for nothing are of no part.
    silent = (
        (cluster, *each.texts())
        for cluster in clusters
        for each in rights_of_silent(
            gathered.known.cluster(cluster),
            {*rules[cluster].denies, *rules[cluster].doubted},
            {each for session in sessions[cluster] for each in session},
        )
    )
    columns = pa.schema([pa.field("cluster", pa.string()), *RIGHTS_IN_PARTS])
    parts = of_log.unionByName(frame_of(inputs.spark, columns, silent))
    return rights_written(inputs.output, OPENED, parts, clusters, most_closed)


def _flips(
    inputs: Inputs, found: DataFrame, counts: Mapping[str, ReplayCounts]
) -> DataFrame | None:
    """Write what would be decided otherwise, if anything would be."""
    if not any(each.flips for each in counts.values()):
        return None
    flips = found.where(F.col("kind") == pieces.FLIPS)
    return inputs.output.table(FLIPS, flips.mapInArrow(unpacked_pieces, flips_type()))
