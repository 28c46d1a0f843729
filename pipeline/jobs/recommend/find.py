"""Finds the smallest set of ACLs for what was used, and proves it by a replay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclOperation,
)
from aclbroker.pipeline.acls.acl_table import acl_values
from aclbroker.pipeline.analysis.least_privilege import Principals, Unmet
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.opened_rights import (
    RIGHTS_IN_PARTS,
    OpenedInShort,
    rights_in_parts,
    rights_written,
)
from aclbroker.pipeline.jobs.recommend import pieces
from aclbroker.pipeline.jobs.recommend.asked import SESSION, Gathered, pieces_of
from aclbroker.pipeline.jobs.recommend.changing import CHANGE_COLUMNS, changes_of
from aclbroker.pipeline.jobs.recommend.part import rights_of_silent
from aclbroker.pipeline.jobs.recommend.pieces import unpacked_pieces
from aclbroker.pipeline.jobs.recommend.prefix_rows import ConsideredPrefix, best_first
from aclbroker.pipeline.jobs.recommend.recommended import RecommendedAcls, put_together
from aclbroker.pipeline.jobs.recommend.replayed import ReplayCounts, flips_type, session_of
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLIPS: Final = "recommend/flips"
"""The table of what would be decided otherwise."""

CHANGES: Final = "recommend/changes"
"""The table of what becomes of each ACL."""

OPENED: Final = "recommend/opened"
"""The table of all rights that are opened or closed."""


class AnyTopicSession(NamedTuple):
    """A session that asked for an operation on any topic, and whether ACLs allowed it once."""

    cluster: str
    principals: Principals
    operation: str
    was_allowed: bool


class RecommendationProof(NamedTuple):
    """The counts by cluster, and the table of what would be decided otherwise, if there is any."""

    counts: dict[str, ReplayCounts]
    flips: DataFrame | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is recommended, by cluster, and what it follows from.

    ``unmet``: what was used, and no ACL can be recommended for. ``considered``: the prefixes that
    could have been recommended. ``sessions``: the principals of every session of the log.
    ``opened``: what the rules open and close, of the clusters whose current rules are known.
    ``of_any_topic``: the sessions that asked for something on any topic. ``any_topic_lost``:
    clusters and principals that could do something on any topic, and could on none.
    """

    unmet: Mapping[str, Sequence[Unmet]]
    considered: Sequence[ConsideredPrefix]
    sessions: Mapping[str, Collection[Principals]]
    rules: Mapping[str, RecommendedAcls]
    proof: RecommendationProof
    opened: Mapping[str, OpenedInShort]
    of_any_topic: Sequence[AnyTopicSession]
    any_topic_lost: Sequence[tuple[str, str]]

    def principals_of(self, cluster: str) -> set[str]:
        """Return all principals that the log of a cluster has anything of."""
        sessions = [
            *self.sessions[cluster],
            *(each.principals for each in self.of_any_topic if each.cluster == cluster),
        ]
        return {principal for session in sessions for principal in session}


def find(
    inputs: Inputs, prefixes: PrefixOptions | None, most_hosts: int | None, most_closed: int
) -> Recommendation:
    """Return what is recommended. Raises InputError if the log has no allowed event.

    ``prefixes``: which PREFIXED ACLs there may be; None for none. ``most_hosts``: name the hosts of
    principals that came from no more; None names no hosts. ``most_closed``: how many of the rights
    that are closed are returned; a table has all.
    """
    _refuse_without_allowed(inputs)
    gathered = pieces_of(inputs, prefixes, most_hosts)
    found = gathered.pieces.persist()
    try:
        in_tables = F.col("kind").isin([pieces.RIGHTS, pieces.FLIPS])
        parts = put_together(found.where(~in_tables).toArrow())
        rules = {
            cluster: RecommendedAcls(inputs.current.get(cluster), each.allows, each.denies)
            for cluster, each in parts.items()
        }
        sessions = {cluster: each.sessions for cluster, each in parts.items()}
        opened = _rights(inputs, gathered, rules, sessions, most_closed)
        _write_changes(inputs, gathered, rules)
        counts = {cluster: each.counted for cluster, each in parts.items()}
        proof = RecommendationProof(counts, _flips(inputs, found, counts))
    finally:
        found.unpersist()
    of_any = _of_any_topic(inputs)
    return Recommendation(
        {cluster: each.unmet for cluster, each in parts.items()},
        best_first(one for each in parts.values() for one in each.considered),
        sessions,
        rules,
        proof,
        opened,
        of_any,
        any_topic_lost(of_any, rules),
    )


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
            rules[cluster].denies,
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


def _refuse_without_allowed(inputs: Inputs) -> None:
    if not inputs.window.allowed:
        raise InputError(
            "the log has no allowed event: the recommendation would be to take every right away. "
            "Brokers record denials alone by default. Set the level of Kafka's "
            "kafka.authorizer.logger to DEBUG, or aclbroker.audit.level=all here, and try again "
            "when the log covers all regular work"
        )


def _of_any_topic(inputs: Inputs) -> list[AnyTopicSession]:
    is_by_acl = F.col("allowed") & ~F.col("rule").eqNullSafe(RuleKind.SUPER_USER.value)
    asked = (
        inputs.usage.part(resource_type="TOPIC", resource_name=ANY_RESOURCE)
        .by(*SESSION, "operation", "allowed", "rule")
        .groupBy(*SESSION, "operation")
        .agg(F.max(is_by_acl).alias("was_allowed"))
    )
    return [
        AnyTopicSession(row["cluster"], session_of(row), row["operation"], row["was_allowed"])
        for row in asked.toArrow().to_pylist()
    ]


def any_topic_lost(
    asked: Iterable[AnyTopicSession], rules: Mapping[str, RecommendedAcls]
) -> list[tuple[str, str]]:
    """Return the clusters and principals that could do something on any topic, and could on none.

    ``rules`` are those that are recommended; nothing is said of other clusters.
    """
    allowing = {
        (cluster, principal, operation)
        for cluster, each in rules.items()
        for principal, granted in each.tally.on_topics
        for operation in _named_by(granted)
    }
    return sorted(
        {
            (each.cluster, each.principals[0])
            for each in asked
            if each.was_allowed
            and each.cluster in rules
            and rules[each.cluster].super_users.isdisjoint(each.principals)
            and not any(
                (each.cluster, who, each.operation) in allowing
                for who in (*each.principals, WILDCARD_PRINCIPAL)
            )
        }
    )


def _named_by(operation: AclOperation) -> tuple[str, ...]:
    if operation is AclOperation.ALL:
        return tuple(each.name for each in AclOperation)
    return (operation.name,)
