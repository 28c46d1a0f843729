"""Finds the smallest set of ACLs for what was used, and proves it by a replay."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.opened import Opened, opened
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft, Evidence
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.recommend.asked import (
    SESSION,
    AskedQuestions,
    RecommendationProof,
    decided_otherwise,
    session_of,
)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is recommended, by cluster, and what it follows from.

    ``forbidden``: prefixes that would allow what was denied. ``opened``: what the rules open and
    close, of the clusters whose current rules are known. ``any_topic_lost``: clusters and
    principals that could do something on any topic, and could on none.
    """

    drafts: Mapping[str, Draft]
    evidence: Mapping[str, Evidence]
    forbidden: Mapping[str, Collection[AclBinding]]
    rules: Mapping[str, Ruleset]
    proof: RecommendationProof
    opened: Mapping[str, Opened]
    any_topic_lost: Sequence[tuple[str, str]]


def find(inputs: Inputs, prefixes: PrefixOptions | None, most_hosts: int | None) -> Recommendation:
    """Return what is recommended. Raises InputError if the log has no allowed event.

    ``prefixes``: which PREFIXED ACLs there may be; None for none. ``most_hosts``: name the hosts of
    principals that came from no more; None names no hosts.
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
        proof = questions.proof(rules)
        asked = decided_otherwise(proof, list(inputs.current))
        changed = {
            cluster: opened(
                inputs.current[cluster],
                rules[cluster],
                evidence[cluster].sessions,
                asked.get(cluster, ()),
            )
            for cluster in rules
            if cluster in inputs.current
        }
        lost = _any_topic_lost(inputs, rules)
        return Recommendation(drafts, evidence, forbidden, rules, proof, changed, lost)
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


def _any_topic_lost(inputs: Inputs, rules: Mapping[str, Ruleset]) -> list[tuple[str, str]]:
    """The clusters and principals that could do something on any topic, and on none afterwards."""
    recorded = (
        inputs.usage.part(resource_type="TOPIC", resource_name=ANY_RESOURCE, allowed=True)
        .by(*SESSION, "operation", "rule")
        .where(~F.col("rule").eqNullSafe(RuleKind.SUPER_USER.value))
        .select(*SESSION, "operation")
        .distinct()
    )
    allowing = {
        (cluster, acl.principal, operation)
        for cluster, ruleset in rules.items()
        for acl in ruleset.acls
        if acl.permission is AclPermission.ALLOW and acl.resource_type is ResourceType.TOPIC
        for operation in _named_by(acl.operation)
    }
    lost = set()
    for row in recorded.toArrow().to_pylist():
        principals = session_of(row)
        super_users = rules[row["cluster"]].super_users if row["cluster"] in rules else frozenset()
        meant = {*principals, WILDCARD_PRINCIPAL}
        if super_users.isdisjoint(principals) and not any(
            (row["cluster"], each, row["operation"]) in allowing for each in meant
        ):
            lost.add((row["cluster"], principals[0]))
    return sorted(lost)


def _named_by(operation: AclOperation) -> tuple[str, ...]:
    if operation is AclOperation.ALL:
        return tuple(each.name for each in AclOperation)
    return (operation.name,)
