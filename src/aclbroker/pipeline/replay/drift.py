"""Why the log does not say what the current rules decide: the likeliest reasons, as warnings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.hosts import subnet
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.replay.replay import replayed
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_NAMES: Final = 5
_ACL_CHANGES: Final = ("CreateAcls", "DeleteAcls")


class Drift(NamedTuple):
    """How many events were recorded otherwise than the rules decide now.

    ``denied``: allowed then, denied now. ``allowed``: denied then, allowed now. ``mixed``: how many
    of both are of questions that the log itself answers both ways. ``by_subnets``: how many fewer
    of both there would be if hosts in CIDR notation were subnets.
    """

    denied: int = 0
    allowed: int = 0
    mixed: int = 0
    by_subnets: int = 0

    @property
    def events(self) -> int:
        """How many events there are of both."""
        return self.denied + self.allowed


class _Cause(NamedTuple):
    """A likely reason, and how many events it may explain.

    ``kind`` is what reasons of the same sort in other clusters have in common.
    """

    events: int
    text: str
    kind: str


def drift_warnings(drift: Drift, usage: Usage, rules: Mapping[str, Ruleset]) -> list[str]:
    """Return what to say of drift: how much there is, and why; nothing if there is none.

    The usage is read again if there is any. Reasons that are looked for: super users and a default
    to allow that the log shows and ``rules`` do not name, changes of ACLs in the log's time, and
    subnets that are not read as such.
    """
    if not drift.events:
        return []
    found = [
        f"{drift.events:,} events were decided otherwise than the current rules "
        f"decide ({drift.denied:,} were allowed and now are not, {drift.allowed:,} were denied and "
        "now are not); decisions here are those of the current rules"
    ]
    if drift.mixed:
        found.append(
            f"{drift.mixed:,} of these events are of questions that the log answers both ways: "
            "the rules changed within its time"
        )
    evidence = _evidence(usage.part(rules, allowed=True).rows)
    return found + list(_summed_up(_causes(drift, evidence, rules)))


def _summed_up(causes: Iterable[_Cause]) -> Iterator[str]:
    """Yield one text of each kind: of several, the one that explains most, and how many more."""
    by_kind: dict[str, list[_Cause]] = {}
    for each in causes:
        by_kind.setdefault(each.kind, []).append(each)
    for alike in by_kind.values():
        first = max(alike, key=lambda each: each.events)
        others = len(alike) - 1
        events = sum(each.events for each in alike) - first.events
        of = f", of {events:,} events" if events else ""
        more = f"; likewise in {others:,} other cluster{'' if others == 1 else 's'}{of}"
        yield first.text + (more if others else "")


def above(drifts: Mapping[str, Drift], events: Mapping[str, int], most: float) -> dict[str, Drift]:
    """Return those of the clusters of which more than ``most`` of 100 events drift, in order."""
    return {
        cluster: drift
        for cluster, drift in sorted(drifts.items())
        # A whole number of events is compared, so that no rounding decides.
        if drift.events * 100 > most * events[cluster]
    }


def by_subnets(usage: Usage, rules: Mapping[str, Ruleset]) -> dict[str, int]:
    """Return `Drift.by_subnets` of clusters with hosts in CIDR notation that are no subnets.

    Their usage is decided again.
    """
    given = {
        cluster: ruleset
        for cluster, ruleset in rules.items()
        if not ruleset.cidr and any(subnet(acl.host) for acl in ruleset.acls)
    }
    if not given:
        return {}
    as_subnets = {cluster: replace(ruleset, cidr=True) for cluster, ruleset in given.items()}
    decided = replayed(usage.part(given), {"given": given, "subnets": as_subnets})
    drift = {
        name: F.when(F.col(f"{name}_allowed"), F.col("events") - F.col("allowed_events"))
        .otherwise(F.col("allowed_events"))
        .alias(name)
        for name in ("given", "subnets")
    }
    counted = (
        decided.select("cluster", *drift.values())
        .groupBy("cluster")
        .agg(*(F.sum(name).alias(name) for name in drift))
    )
    return {row["cluster"]: row["given"] - row["subnets"] for row in counted.collect()}


def too_much_drift(
    drifts: Mapping[str, Drift],
    events: Mapping[str, int],
    most: float,
    usage: Usage,
    rules: Mapping[str, Ruleset],
) -> dict[str, str]:
    """Return the clusters whose log was decided otherwise than their rules decide, and why.

    ``most`` is how many of 100 events may be; ``drifts`` and ``events`` are by cluster, as the
    ``rules`` are. The likeliest reasons are named, the one first that explains most events. The
    usage is read again if there is such a cluster.
    """
    drifting = above(drifts, events, most)
    if not drifting:
        return {}
    evidence = _evidence(usage.part(drifting, allowed=True).rows)
    found = {}
    for cluster, drift in drifting.items():
        rows = [row for row in evidence if row["cluster"] == cluster]
        causes = sorted(_causes(drift, rows, {cluster: rules[cluster]}), key=lambda c: -c.events)
        told = "; ".join(cause.text for cause in causes) or (
            "the log shows none: are these the ACLs and the settings of the brokers that wrote it?"
        )
        found[cluster] = (
            f"of {events[cluster]:,} events in its log, {drift.events:,} were decided otherwise "
            f"than the ACLs and settings given decide, and --max-drift allows {most:g} of 100. "
            f"Likeliest cause: {told}"
        )
    return found


def _causes(drift: Drift, rows: Sequence[Any], rules: Mapping[str, Ruleset]) -> list[_Cause]:
    found = [*_changes(drift, rows)]
    by_subnets = drift.by_subnets if len(rules) == 1 else 0
    for cluster, ruleset in sorted(rules.items()):
        of_cluster = [row for row in rows if row["cluster"] == cluster]
        found += _super_users(cluster, ruleset, of_cluster)
        found += _default(cluster, ruleset, of_cluster)
        found += _subnets(cluster, ruleset, by_subnets)
    return found


def _evidence(allowed: DataFrame) -> Sequence[Any]:
    """What the log says of ACL changes, super users and defaults; few rows."""
    super_user = F.col("rule") == RuleKind.SUPER_USER.value
    reasons = (
        F.when(F.col("api").isin(*_ACL_CHANGES) & (F.col("operation") == "ALTER"), "change")
        .when(super_user, "super user")
        .when(F.col("rule") == RuleKind.DEFAULT_ALLOW.value, "default")
    )
    named = [
        F.when(F.col("reason") == "super user", F.col(name)).alias(name)
        for name in ("listener", "principal", "other_principals")
    ]
    rows: Sequence[Any] = (
        allowed.withColumn("reason", reasons)
        .where(F.col("reason").isNotNull())
        .groupBy("cluster", "reason", *named)
        .agg(F.sum("events").alias("events"), F.max("day").alias("last_day"))
        .collect()
    )
    return rows


def _changes(drift: Drift, rows: Sequence[Any]) -> Iterator[_Cause]:
    changes = [row for row in rows if row["reason"] == "change"]
    if changes:
        yield _Cause(
            drift.mixed,
            f"the log holds {sum(row['events'] for row in changes):,} allowed requests to create "
            f"or delete ACLs, the last on {max(row['last_day'] for row in changes)}",
            "changes",
        )


def _super_users(cluster: str, ruleset: Ruleset, rows: Sequence[Any]) -> Iterator[_Cause]:
    unnamed: Counter[str] = Counter()
    for row in rows:
        if row["reason"] == "super user" and not _may_all(ruleset, row):
            unnamed[row["principal"]] += row["events"]
    if unnamed:
        names = [name for name, _ in unnamed.most_common(_MOST_NAMES)]
        more = len(unnamed) - len(names)
        yield _Cause(
            unnamed.total(),
            f"in cluster {cluster}, {unnamed.total():,} events were allowed to super users that "
            f"are not given as such: {', '.join(names)}{f' and {more} more' if more else ''}",
            "super users",
        )


def _may_all(ruleset: Ruleset, row: Any) -> bool:
    principals = {row["principal"], *json.loads(row["other_principals"] or "[]")}
    users = ruleset.broker_users
    is_broker = row["listener"] == users.listener and not users.principals.isdisjoint(principals)
    return is_broker or not ruleset.super_users.isdisjoint(principals)


def _default(cluster: str, ruleset: Ruleset, rows: Sequence[Any]) -> Iterator[_Cause]:
    events = sum(row["events"] for row in rows if row["reason"] == "default")
    if events and not ruleset.allow_everyone_if_no_acl_found:
        yield _Cause(
            events,
            f"in cluster {cluster}, {events:,} events were allowed because no ACL was found, but "
            "allow.everyone.if.no.acl.found is not given as true",
            "default",
        )


def _subnets(cluster: str, ruleset: Ruleset, explained: int) -> Iterator[_Cause]:
    named = sum(subnet(acl.host) is not None for acl in ruleset.acls)
    if named and not ruleset.cidr:
        with_it = (
            f", with which {explained:,} more events are decided as logged" if explained > 0 else ""
        )
        yield _Cause(
            explained,
            f"in cluster {cluster}, {named:,} ACLs name subnets such as 10.0.0.0/8, which match "
            f"nobody without --cidr{with_it}",
            "subnets",
        )
