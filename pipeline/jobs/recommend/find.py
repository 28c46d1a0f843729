"""Finds the smallest set of ACLs for what was used, and proves it by a replay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import Principals, Unmet
from aclbroker.pipeline.analysis.opened import changed_rights
from aclbroker.pipeline.analysis.prefixes import Candidate, PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.opened_rights import OpenedInShort, rights_written
from aclbroker.pipeline.jobs.recommend.asked import (
    SESSION,
    AskedQuestions,
    RecommendationProof,
    decided_otherwise,
    session_of,
)

OPENED: Final = "recommend/opened"
"""The table of all rights that are opened or closed."""


class AnyTopicSession(NamedTuple):
    """A session that asked for an operation on any topic, and whether ACLs allowed it once."""

    cluster: str
    principals: Principals
    operation: str
    was_allowed: bool


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is recommended, by cluster, and what it follows from.

    ``unmet``: what was used, and no ACL can be recommended for. ``considered``: the prefixes that
    could have been recommended; ``forbidden``: those that would allow what was denied.
    ``sessions``: the principals of every session of the log. ``opened``: what the rules open and
    close, of the clusters whose current rules are known. ``of_any_topic``: the sessions that asked
    for something on any topic. ``any_topic_lost``: clusters and principals that could do something
    on any topic, and could on none.
    """

    unmet: Mapping[str, Sequence[Unmet]]
    considered: Mapping[str, Sequence[Candidate]]
    sessions: Mapping[str, Collection[Principals]]
    forbidden: Mapping[str, Collection[AclBinding]]
    rules: Mapping[str, Ruleset]
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
    questions = AskedQuestions(inputs)
    try:
        evidence = questions.evidence(names=prefixes is not None, most_hosts=most_hosts)
        drafts = {
            cluster: Draft(found, inputs.current.get(cluster), prefixes)
            for cluster, found in evidence.items()
        }
        if most_hosts is not None:
            questions.ask_again({cluster: draft.widest() for cluster, draft in drafts.items()})
        forbidden = questions.newly_allowing(
            {cluster: draft.widest() for cluster, draft in drafts.items() if draft.affordable}
        )
        rules = {
            cluster: draft.rules(forbidden.get(cluster, ())) for cluster, draft in drafts.items()
        }
        unmet = {cluster: draft.grants.unmet for cluster, draft in drafts.items()}
        considered = {cluster: draft.considered for cluster, draft in drafts.items()}
        sessions = {cluster: found.sessions for cluster, found in evidence.items()}
        # What was used, and the grants for it, take as much memory as the rules.
        del drafts, evidence
        proof = questions.proof(rules)
        asked = decided_otherwise(proof, list(inputs.current))
        changes = {
            cluster: changed_rights(
                inputs.current[cluster], rules[cluster], sessions[cluster], asked.get(cluster, ())
            )
            for cluster in rules
            if cluster in inputs.current
        }
        opened = rights_written(inputs.output, OPENED, changes, most_closed)
        of_any = _of_any_topic(inputs)
        lost = any_topic_lost(of_any, rules)
        return Recommendation(
            unmet, considered, sessions, forbidden, rules, proof, opened, of_any, lost
        )
    finally:
        questions.close()


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
    asked: Iterable[AnyTopicSession], rules: Mapping[str, Ruleset]
) -> list[tuple[str, str]]:
    """Return the clusters and principals that could do something on any topic, and could on none.

    ``rules`` are those that are recommended; nothing is said of other clusters.
    """
    allowing = {
        (cluster, acl.principal, operation)
        for cluster, ruleset in rules.items()
        for acl in ruleset.acls
        if acl.permission is AclPermission.ALLOW and acl.resource_type is ResourceType.TOPIC
        for operation in _named_by(acl.operation)
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
