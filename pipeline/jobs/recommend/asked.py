"""The questions of a log, as `recommend` asks about them: what was used, and what would change."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import AclBinding, AclOperation, ResourceType
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import Principals, SessionUse
from aclbroker.pipeline.analysis.opened import AskedQuestion
from aclbroker.pipeline.analysis.prefixes import PREFIXABLE
from aclbroker.pipeline.analysis.recommendation import Evidence
from aclbroker.pipeline.frames import Window
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.questions import QUESTION, RuleSets
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SESSION: Final = ("cluster", "principal", "other_principals")
"""The columns that tell a session's principals."""

_ROWS_AT_ONCE: Final = 1000
_FLIPS: Final = "recommend/flips"
_FURTHER: Final = ("example_host", "events", "first_seen", "last_seen", "wanted")


class ReplayCounts(NamedTuple):
    """What a replay says of one cluster, in questions and in events.

    ``lost`` is allowed now and would not be, ``gained`` the other way round. ``exempt_events`` were
    of super users and broker users. ``denied_since`` were recorded as allowed, and are denied now,
    ``allowed_since`` the other way round; ``mixed_events`` are those of them, or all where the
    rules are not known, that are of questions that the log answers both ways.
    """

    questions: int
    events: int
    allowed_questions: int
    allowed_events: int
    lost_questions: int
    lost_events: int
    gained_questions: int
    gained_events: int
    exempt_events: int
    denied_since: int
    allowed_since: int
    mixed_events: int

    @property
    def flips(self) -> int:
        """How many questions would be decided otherwise."""
        return self.lost_questions + self.gained_questions


class RecommendationProof(NamedTuple):
    """The counts by cluster, and the table of what would be decided otherwise, if there is any."""

    counts: dict[str, ReplayCounts]
    flips: DataFrame | None


class AskedQuestions:
    """All questions of a log, and what is decided on them now. Close it at the end."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._usage = _about_single_resources(inputs)
        self._asked = self._decided({"current": inputs.current})

    def _decided(self, hosts_of: RuleSets) -> DataFrame:
        sets = {"current": self._inputs.current}
        decided = replay.replayed(self._usage, sets, hosts_of=hosts_of)
        is_exempt = F.col("current_rule") == RuleKind.SUPER_USER.value
        return decided.withColumns(
            {
                "wanted": F.coalesce(F.col("current_allowed"), F.col("allowed_events") > 0),
                "exempt": F.coalesce(is_exempt, F.lit(False)),
            }
        ).persist()

    def close(self) -> None:
        """Let go of what is kept."""
        self._asked.unpersist()

    def ask_again(self, rules: Mapping[str, Ruleset]) -> None:
        """Decide again, and now tell apart the hosts that some further rules name."""
        self.close()
        self._asked = self._decided({"current": self._inputs.current, "other": rules})

    def evidence(self, *, names: bool, most_hosts: int | None) -> dict[str, Evidence]:
        """Return what was used in each cluster of the log, and around it.

        ``names``: whether to say which names there are. ``most_hosts``: tell the hosts of those
        principals that came from no more; None for none.
        """
        uses = self._uses()
        sessions: dict[str, list[Principals]] = {}
        for row in self._asked.select(*SESSION).distinct().toArrow().to_pylist():
            sessions.setdefault(row["cluster"], []).append(session_of(row))
        found_names = self._names() if names else {}
        hosts = {} if most_hosts is None else self._hosts(most_hosts)
        return {
            cluster: Evidence(
                uses.get(cluster, []),
                sessions[cluster],
                found_names.get(cluster, {}),
                hosts.get(cluster, {}),
            )
            for cluster in sorted(sessions)
        }

    def _uses(self) -> dict[str, list[SessionUse]]:
        grouped = (
            self._asked.where("wanted and not exempt and resource_name is not null")
            .groupBy(*SESSION, "host", "operation", "resource_type")
            .agg(
                F.collect_set("resource_name").alias("names"),
                F.min("example_host").alias("example_host"),
            )
        )
        found: dict[str, list[SessionUse]] = {}
        # Each operation names the same resources.
        texts: dict[str, str] = {}
        batches = grouped.toArrow().to_batches(_ROWS_AT_ONCE)
        for row in chain.from_iterable(batch.to_pylist() for batch in batches):
            # The class of a host may be a subnet; the host itself is what ACLs are held against.
            host = None if row["host"] is None else row["example_host"]
            use = SessionUse(
                session_of(row),
                host,
                AclOperation[row["operation"]],
                ResourceType[row["resource_type"]],
                [texts.setdefault(name, name) for name in row["names"]],
            )
            found.setdefault(row["cluster"], []).append(use)
        return found

    def _names(self) -> dict[str, dict[ResourceType, set[str]]]:
        """The names of each cluster and type: those in the log, and those that are given."""
        found: dict[str, dict[ResourceType, set[str]]] = {}
        for cluster, given in self._inputs.names.items():
            found[cluster] = {each: set(names) for each, names in given.items()}
        grouped = (
            self._asked.where(F.col("resource_type").isin([each.name for each in PREFIXABLE]))
            .where("resource_name is not null")
            .groupBy("cluster", "resource_type")
            .agg(F.collect_set("resource_name").alias("names"))
        )
        for row in grouped.toArrow().to_pylist():
            by_type = found.setdefault(row["cluster"], {})
            by_type.setdefault(ResourceType[row["resource_type"]], set()).update(row["names"])
        return found

    def _hosts(self, most: int) -> dict[str, dict[str, set[str]]]:
        """The hosts of each principal that came from few, by cluster."""
        in_order = Window.partitionBy(*SESSION).orderBy("host")
        seen = self._usage.by(*SESSION, "host").select(*SESSION, "host").distinct()
        # One more than are wanted is enough to know that there are too many.
        first = seen.withColumn("number", F.row_number().over(in_order)).where(
            F.col("number") <= most + 1
        )
        hosts: dict[str, dict[str, set[str]]] = {}
        for row in first.toArrow().to_pylist():
            for principal in session_of(row):
                of_cluster = hosts.setdefault(row["cluster"], {})
                of_cluster.setdefault(principal, set()).add(row["host"])
        return {
            cluster: {who: theirs for who, theirs in found.items() if len(theirs) <= most}
            for cluster, found in hosts.items()
        }

    def newly_allowing(self, rules: Mapping[str, Ruleset]) -> dict[str, set[AclBinding]]:
        """Return the ACLs of some rules that would allow what was asked and is denied now."""
        if not rules:
            return {}
        denied = self._asked.where("not wanted and resource_name is not null").where(
            F.col("cluster").isin(list(rules))
        )
        behind = (
            replay.decided(denied, {"other": rules}, explain=True)
            .where("other_allowed")
            .select("cluster", F.explode("other_allows"))
            .distinct()
        )
        found: dict[str, set[AclBinding]] = {}
        for cluster, position in behind.collect():
            found.setdefault(cluster, set()).add(rules[cluster].acls[position])
        return found

    def proof(self, rules: Mapping[str, Ruleset]) -> RecommendationProof:
        """Decide everything under some rules; write down what is decided otherwise than now."""
        replayed = replay.decided(self._asked, {"recommended": rules})
        counted = replayed.groupBy("cluster").agg(
            *(F.sum(column).alias(name) for name, column in _counts().items())
        )
        counts = {row["cluster"]: ReplayCounts(*row[1:]) for row in counted.collect()}
        if not any(each.flips for each in counts.values()):
            return RecommendationProof(counts, None)
        flips = (
            replayed.where(F.col("recommended_allowed") != F.col("wanted"))
            .select(*QUESTION, *_FURTHER, "recommended_allowed")
            .withColumnRenamed("wanted", "allowed_now")
        )
        return RecommendationProof(counts, self._inputs.output.table(_FLIPS, flips))


def decided_otherwise(
    proof: RecommendationProof, clusters: Collection[str]
) -> dict[str, list[AskedQuestion]]:
    """Return the questions of some clusters that are decided otherwise, mostly none."""
    found: dict[str, list[AskedQuestion]] = {}
    if proof.flips is None:
        return found
    of_clusters = proof.flips.where(F.col("cluster").isin(list(clusters)))
    for row in of_clusters.where("resource_name is not null").toArrow().to_pylist():
        question = AskedQuestion(
            session_of(row),
            row["example_host"],
            AclOperation[row["operation"]],
            ResourceType[row["resource_type"]],
            row["resource_name"],
        )
        found.setdefault(row["cluster"], []).append(question)
    return found


def _counts() -> dict[str, Column]:
    one, events = F.lit(1), F.col("events")
    wanted, allowed = F.col("wanted"), F.col("recommended_allowed")
    now, recorded = F.col("current_allowed"), F.col("allowed_events")

    def where(condition: Column, what: Column) -> Column:
        return F.when(condition, what).otherwise(0)

    denied_since, allowed_since = where(~now, recorded), where(now, events - recorded)
    is_mixed = (recorded > 0) & (recorded < events)
    columns = (
        one,
        events,
        where(wanted, one),
        where(wanted, events),
        where(wanted & ~allowed, one),
        where(wanted & ~allowed, events),
        where(~wanted & allowed, one),
        where(~wanted & allowed, events),
        where(F.col("exempt"), events),
        denied_since,
        allowed_since,
        where(is_mixed, F.when(now.isNull(), events).otherwise(denied_since + allowed_since)),
    )
    return dict(zip(ReplayCounts._fields, columns, strict=True))


def _about_single_resources(inputs: Inputs) -> Usage:
    """The usage without questions about any topic, and without super users that are not known."""
    is_any = (F.col("resource_type") == "TOPIC") & F.col("resource_name").eqNullSafe(ANY_RESOURCE)
    is_known = F.col("cluster").isin(list(inputs.current))
    is_super_user = F.col("rule").eqNullSafe(RuleKind.SUPER_USER.value)
    return Usage(inputs.usage.rows.where(~is_any & (is_known | ~is_super_user)))


def session_of(row: Mapping[str, Any]) -> Principals:
    """Return the principals of a row that has the columns of `SESSION`."""
    return row["principal"], *json.loads(row["other_principals"] or "[]")
