"""The smallest set of ACLs that still allows everything that was used, proven by a replay.

What was used are the questions of the log that the current rules allow, whatever they allowed when
they were asked; of a cluster whose rules are not given, those that were recorded as allowed. Super
users, and broker users on their listener, need no ACL.

Each principal gets one ACL for each operation and resource, without operations that others imply;
of a session with several principals, the first. `pipeline.analysis.prefixes` then finds PREFIXED
ACLs for many of them. Nothing that was asked and denied becomes allowed, and nothing else that the
current rules deny, except what prefixes newly allow: that is their price, which is listed. DENYs
are kept where they hold for something granted. Where resources without ACLs are open to everyone,
those that were used get ACLs, and so are closed to all others.

Whether a principal may write to *any* topic (KIP-679) is no question about one resource: it follows
from the ACLs for what was written, and a warning says where it does not.

What is collected here grows with the questions that differ to an authorizer, as the result does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Result
from aclbroker.pipeline.jobs.recommend_questions import SESSION, Questions, session_of
from aclbroker.pipeline.jobs.recommend_report import Found, report


@dataclass(frozen=True, slots=True)
class RecommendOptions:
    """How the ACLs are to be written.

    - ``prefixes``: whether PREFIXED ACLs may stand for several names
    - ``minimum_names``, ``minimum_length``, ``maximum_price``, ``any_prefix``: which ones may, see
      `pipeline.analysis.prefixes.PrefixOptions`
    - ``hosts``: name the hosts of principals that came from at most ``most_hosts``
    - ``top``: how many rows the tables of the report have

    Raises ValueError for a number below what is sensible.
    """

    prefixes: bool = True
    minimum_names: int = 3
    minimum_length: int = 4
    maximum_price: int = 0
    any_prefix: bool = False
    hosts: bool = False
    most_hosts: int = 3
    top: int = 20

    def __post_init__(self) -> None:
        self.of_prefixes()
        if self.most_hosts < 1:
            raise ValueError(f"most_hosts must be at least 1, not {self.most_hosts}")

    def of_prefixes(self) -> PrefixOptions | None:
        """Return the options of prefixes; None if there are to be none."""
        found = PrefixOptions(
            self.minimum_names, self.minimum_length, self.maximum_price, self.any_prefix
        )
        return found if self.prefixes else None


def run(inputs: Inputs, options: RecommendOptions | None = None) -> Result:
    """Return what is recommended, and write the ACLs and the prefixes that were considered.

    Raises InputError if the log has no allowed event.
    """
    options = options or RecommendOptions()
    _refuse_without_allowed(inputs)
    prefixes = options.of_prefixes()
    questions = Questions(inputs)
    try:
        evidence = questions.evidence(
            names=prefixes is not None, most_hosts=options.most_hosts if options.hosts else None
        )
        drafts = {
            cluster: Draft(found, inputs.current.get(cluster), prefixes)
            for cluster, found in evidence.items()
        }
        if options.hosts:
            questions.ask_again({cluster: draft.widest() for cluster, draft in drafts.items()})
        forbidden = questions.newly_allowing(
            {cluster: draft.widest() for cluster, draft in drafts.items() if draft.affordable}
        )
        rules = {
            cluster: draft.rules(forbidden.get(cluster, ())) for cluster, draft in drafts.items()
        }
        proof = questions.proof(rules)
        found = Found(drafts, evidence, forbidden, rules, proof, _any_topic_lost(inputs, rules))
        return report(inputs, found, maximum_price=options.maximum_price, top=options.top)
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
