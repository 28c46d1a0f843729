"""What was denied most, and what would allow it: one ACL each, proven by a replay.

Denials are those that the log records. Left out, and counted, are those that only filtered an
answer, as when somebody lists the topics, and what was asked less often than an option says. What
would allow the others is decided under the current rules (`pipeline.analysis.grant`).

That something was denied is no reason to allow it: the suggestions are for a person to choose from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import WILDCARD, AclBinding, AclOperation, ResourceType
from aclbroker.pipeline.analysis.grant import Denied, Kind, Remedy, Standing, remedy
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Result
from aclbroker.pipeline.jobs.denials_report import Counts, Found, Key, Proof, Suggestion, report
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY: Final = ("cluster", "principal", "operation", "resource_type", "resource_name")
_KEY_TYPES: Final = ", ".join(f"{name} string" for name in _KEY)

_MOST_PRINCIPALS: Final = 10


@dataclass(frozen=True, slots=True)
class DenialsOptions:
    """What is worth telling.

    - ``min_events``: leave out what was asked less often
    - ``most``: look for what would allow so many, the most frequent ones
    - ``top``: how many rows the tables of the report have

    Raises ValueError for a number below 1.
    """

    min_events: int = 2
    most: int = 1000
    top: int = 20

    def __post_init__(self) -> None:
        for name in ("min_events", "most"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


def run(inputs: Inputs, options: DenialsOptions | None = None) -> Result:
    """Return what was denied most, and write all of it, and the ACLs that would allow it."""
    options = options or DenialsOptions()
    grouped = _grouped(inputs.usage.part(allowed=False).rows).persist()
    try:
        counts = _counts(grouped, options.min_events)
        allowed = inputs.usage.part(allowed=True).rows
        kept = grouped.where(F.col("events") >= options.min_events)
        table = inputs.output.table("denials/denied", _with_allowed(kept, allowed))
    finally:
        grouped.unpersist()
    first = table.orderBy(F.desc("events"), *_KEY).limit(options.most)
    top = first.toArrow().to_pylist()
    standings = _standings(inputs, [_key(row) for row in top])
    suggestions = [Suggestion(row, _remedy(row, standings)) for row in top]
    proof = _proof(inputs, suggestions)
    days = _by_day(inputs.usage.part(allowed=False).by("day", "quiet"))
    principals = _by_principal(table)
    return report(inputs, Found(counts, suggestions, proof, days, principals), options.top)


def _grouped(usage: DataFrame) -> DataFrame:
    """What was denied, each principal, operation and resource a row."""
    loud = ~F.col("quiet")

    def of_loud(column: str) -> Column:
        return F.when(loud, F.col(column))

    by_acl = F.col("rule").eqNullSafe(RuleKind.MATCHING_ACL.value)
    return (
        usage.where(~F.col("allowed"))
        .groupBy(*_KEY)
        .agg(
            F.sum(F.when(loud, F.col("events")).otherwise(0)).alias("events"),
            F.sum(F.when(loud, 0).otherwise(F.col("events"))).alias("quiet_events"),
            F.sum(F.when(loud & by_acl, F.col("events")).otherwise(0)).alias("events_by_acl"),
            F.size(F.collect_set(of_loud("day"))).alias("days"),
            F.size(F.collect_set(of_loud("host"))).alias("hosts"),
            F.min(of_loud("host")).alias("example_host"),
            F.sort_array(F.collect_set(of_loud("api"))).alias("apis"),
            F.min(of_loud("first_seen")).alias("first_seen"),
            F.max(of_loud("last_seen")).alias("last_seen"),
        )
    )


def _counts(grouped: DataFrame, least: int) -> Counts:
    is_rare = (F.col("events") > 0) & (F.col("events") < least)
    row = grouped.agg(
        F.sum("events"),
        F.sum("quiet_events"),
        F.count_if(is_rare),
        F.sum(F.when(is_rare, F.col("events"))),
        F.count_if(F.col("events") >= least),
    ).collect()[0]
    events, quiet, rare, rare_events, told = (each or 0 for each in row)
    return Counts(events, quiet, rare, rare_events, told, least)


def _with_allowed(denied: DataFrame, usage: DataFrame) -> DataFrame:
    """Return what was denied with the events and the last time that the same was allowed."""
    # What named no resource was never allowed, so that null needs no match.
    allowed = (
        usage.where("allowed")
        .join(denied.select(*_KEY), list(_KEY), "left_semi")
        .groupBy(*_KEY)
        .agg(
            F.sum("events").alias("allowed_events"), F.max("last_seen").alias("last_allowed"),
        )
    )  # fmt: skip
    joined = denied.join(allowed, list(_KEY), "left")
    return joined.withColumn("allowed_events", F.coalesce("allowed_events", F.lit(0)))


def _key(row: Mapping[str, Any]) -> Key:
    cluster, principal, operation, resource_type, name = (row[each] for each in _KEY)
    return cluster, principal, operation, resource_type, name


def _is_about_any(row: Mapping[str, Any]) -> bool:
    is_topic = row["resource_type"] == ResourceType.TOPIC.name
    return is_topic and bool(row["resource_name"] == ANY_RESOURCE)


def _standings(inputs: Inputs, keys: Sequence[Key]) -> dict[Key, list[Standing]]:
    """What the current rules say of what was denied, for each kind of session that asked."""
    if not keys or not inputs.current:
        return {}
    sets = {"current": inputs.current}
    denied = _of_keys(inputs, inputs.usage.part(allowed=False, quiet=False).rows, keys)
    decided = replay.replayed(Usage(denied), sets, explain=True)
    columns = (*_KEY, "current_allowed", "current_allows", "current_denies")
    found: dict[Key, list[Standing]] = {}
    for row in decided.where("current_allowed is not null").select(*columns).distinct().collect():
        acls = inputs.current[row["cluster"]].acls
        standing = Standing(
            row["current_allowed"],
            [acls[position] for position in row["current_allows"]],
            [acls[position] for position in row["current_denies"]],
        )
        found.setdefault(_key(row), []).append(standing)
    return found


def _of_keys(inputs: Inputs, usage: DataFrame, keys: Sequence[Key]) -> DataFrame:
    """Return the usage of some principals, operations and resources."""
    wanted = F.broadcast(inputs.spark.createDataFrame(list(keys), _KEY_TYPES)).alias("wanted")
    same = [usage[name].eqNullSafe(F.col(f"wanted.{name}")) for name in _KEY]
    return usage.join(wanted, same, "left_semi")


def _remedy(row: Mapping[str, Any], standings: Mapping[Key, Sequence[Standing]]) -> Remedy:
    if _is_about_any(row):
        note = "asked of any topic: it is allowed to who may do it on one topic"
        return Remedy(Kind.NONE, note=note)
    denied = Denied(
        row["principal"],
        AclOperation[row["operation"]],
        ResourceType[row["resource_type"]],
        row["resource_name"],
    )
    found = remedy(denied, standings.get(_key(row), ()))
    if found.kind is Kind.UNKNOWN and row["events_by_acl"]:
        return found._replace(note="a DENY ACL blocked it")
    return found


def _proof(inputs: Inputs, suggestions: Sequence[Suggestion]) -> Proof:
    """Replay all that was denied with all suggestions."""
    added: dict[str, set[AclBinding]] = {}
    for each in suggestions:
        if each.remedy.acl is not None:
            added.setdefault(each.row["cluster"], set()).add(each.remedy.acl)
    if not added:
        return Proof({}, {})
    current = {cluster: inputs.current[cluster] for cluster in added}
    suggested = {
        cluster: rules.with_acls({*rules.acls, *added[cluster]})
        for cluster, rules in current.items()
    }
    sets = {"current": current, "suggested": suggested}
    denied = _about_resources(inputs, inputs.usage.part(allowed=False).rows, added)
    events = F.col("events")
    becomes_allowed = ~F.col("current_allowed") & F.col("suggested_allowed")
    # What a DENY decides no suggestion is for.
    stays_denied = F.col("suggested_rule") == RuleKind.DEFAULT_DENY.value
    changed = (
        replay.replayed(Usage(denied), sets)
        .groupBy(*_KEY)
        .agg(
            F.sum(F.when(becomes_allowed, events).otherwise(0)).alias("allowed"),
            F.sum(F.when(stays_denied, events).otherwise(0)).alias("denied"),
        )
        .where("allowed > 0")
        .collect()
    )
    keys = {_key(each.row) for each in suggestions if each.remedy.acl is not None}
    proven, besides = {}, {}
    for row in changed:
        key = _key(row)
        if key not in keys:
            besides[key] = row["allowed"]
        elif not row["denied"]:
            proven[key] = row["allowed"]
    return Proof(proven, besides)


def _about_resources(
    inputs: Inputs, usage: DataFrame, acls: Mapping[str, Iterable[AclBinding]]
) -> DataFrame:
    """Return the usage of resources that some ACLs match, and maybe some more."""
    names = {
        (cluster, acl.resource_type.name, acl.resource_name)
        for cluster, of_cluster in acls.items()
        for acl in of_cluster
    }
    columns = ("cluster", "resource_type", "resource_name")
    schema = ", ".join(f"{name} string" for name in columns)
    literal = F.broadcast(inputs.spark.createDataFrame(sorted(names), schema))
    found = usage.join(literal, list(columns), "left_semi")
    # Those alone may be PREFIXED: see `pipeline.analysis.grant`.
    if not any(name == WILDCARD for *_, name in names):
        return found
    begin_so = F.col("cluster").isin(list(acls)) & F.col("resource_name").startswith(WILDCARD)
    others = usage.where(begin_so & (F.col("resource_name") != WILDCARD))
    return found.unionByName(others)


def _by_day(denied: DataFrame) -> dict[date, tuple[int, int]]:
    """How many events were denied on each day: those that are told, and the quiet ones."""
    quiet, events = F.col("quiet"), F.col("events")
    rows = (
        denied.groupBy("day")
        .agg(F.sum(F.when(quiet, 0).otherwise(events)), F.sum(F.when(quiet, events).otherwise(0)))
        .collect()
    )
    return {day: (loud, quietly) for day, loud, quietly in rows}


def _by_principal(table: DataFrame) -> list[tuple[str, int]]:
    rows = (
        table.groupBy("principal")
        .agg(F.sum("events").alias("events"))
        .orderBy(F.desc("events"), "principal")
        .limit(_MOST_PRINCIPALS)
        .collect()
    )
    return [(row["principal"], row["events"]) for row in rows]
