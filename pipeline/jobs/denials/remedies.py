"""What would allow what was denied, and the proof: a replay with all that is suggested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.broker.acl.bindings import WILDCARD, AclBinding, AclOperation, ResourceType
from aclbroker.pipeline.analysis.grant import Denied, Kind, Remedy, Standing, remedy
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.denials.denied import KEY, DenialKey, key_of
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY_TYPES: Final = ", ".join(f"{name} string" for name in KEY)


class Suggestion(NamedTuple):
    """A row of the table of what was denied, and what would allow it."""

    row: Mapping[str, Any]
    remedy: Remedy

    @property
    def key(self) -> DenialKey:
        """What it is about."""
        return key_of(self.row)


class SuggestionProof(NamedTuple):
    """A replay of what was denied under the current rules and all suggested ACLs.

    ``proven`` are the denials that become allowed as suggested, with their events; of these, none
    stays denied unless by a DENY. ``besides`` are denials that become allowed although no
    suggestion is for them.
    """

    proven: Mapping[DenialKey, int]
    besides: Mapping[DenialKey, int]


def suggestions_for(
    inputs: Inputs, rows: Sequence[Mapping[str, Any]]
) -> tuple[list[Suggestion], SuggestionProof]:
    """Return what would allow each of some denials, and the proof. ``rows`` are of the table."""
    standings = _standings(inputs, [key_of(row) for row in rows])
    suggestions = [Suggestion(row, _remedy(row, standings)) for row in rows]
    return suggestions, _proof(inputs, suggestions)


def _is_about_any(row: Mapping[str, Any]) -> bool:
    is_topic = row["resource_type"] == ResourceType.TOPIC.name
    return is_topic and bool(row["resource_name"] == ANY_RESOURCE)


def _standings(inputs: Inputs, keys: Sequence[DenialKey]) -> dict[DenialKey, list[Standing]]:
    """What the current rules say of what was denied, for each kind of session that asked."""
    if not keys or not inputs.current:
        return {}
    sets = {"current": inputs.current}
    denied = _of_keys(inputs, inputs.usage.part(allowed=False, quiet=False).rows, keys)
    decided = replay.replayed(Usage(denied), sets, explain=True)
    columns = (*KEY, "current_allowed", "current_allows", "current_denies")
    found: dict[DenialKey, list[Standing]] = {}
    for row in decided.where("current_allowed is not null").select(*columns).distinct().collect():
        acls = inputs.current[row["cluster"]].acls
        standing = Standing(
            row["current_allowed"],
            [acls[position] for position in row["current_allows"]],
            [acls[position] for position in row["current_denies"]],
        )
        found.setdefault(key_of(row), []).append(standing)
    return found


def _of_keys(inputs: Inputs, usage: DataFrame, keys: Sequence[DenialKey]) -> DataFrame:
    """Return the usage of some principals, operations and resources."""
    wanted = F.broadcast(inputs.spark.createDataFrame(list(keys), _KEY_TYPES)).alias("wanted")
    same = [usage[name].eqNullSafe(F.col(f"wanted.{name}")) for name in KEY]
    return usage.join(wanted, same, "left_semi")


def _remedy(row: Mapping[str, Any], standings: Mapping[DenialKey, Sequence[Standing]]) -> Remedy:
    if _is_about_any(row):
        note = "asked of any topic: it is allowed to who may do it on one topic"
        return Remedy(Kind.NONE, note=note)
    denied = Denied(
        row["principal"],
        AclOperation[row["operation"]],
        ResourceType[row["resource_type"]],
        row["resource_name"],
    )
    found = remedy(denied, standings.get(key_of(row), ()))
    if found.kind is Kind.UNKNOWN and row["events_by_acl"]:
        return found._replace(note="a DENY ACL blocked it")
    return found


def _proof(inputs: Inputs, suggestions: Sequence[Suggestion]) -> SuggestionProof:
    """Replay all that was denied with all suggestions."""
    added: dict[str, set[AclBinding]] = {}
    for each in suggestions:
        if each.remedy.acl is not None:
            added.setdefault(each.row["cluster"], set()).add(each.remedy.acl)
    if not added:
        return SuggestionProof({}, {})
    current = {cluster: inputs.current[cluster] for cluster in added}
    suggested = {
        cluster: rules.with_acls({*rules.acls, *added[cluster]})
        for cluster, rules in current.items()
    }
    sets = {"current": current, "suggested": suggested}
    denied = _about_resources(inputs, inputs.usage.part(allowed=False).rows, added)
    events = F.col("events")
    becomes_allowed = ~F.col("current_allowed") & F.col("suggested_allowed")
    # No suggestion is meant to undo a DENY.
    stays_denied = F.col("suggested_rule") == RuleKind.DEFAULT_DENY.value
    changed = (
        replay.replayed(Usage(denied), sets)
        .groupBy(*KEY)
        .agg(
            F.sum(F.when(becomes_allowed, events).otherwise(0)).alias("allowed"),
            F.sum(F.when(stays_denied, events).otherwise(0)).alias("denied"),
        )
        .where("allowed > 0")
        .collect()
    )
    keys = {key_of(each.row) for each in suggestions if each.remedy.acl is not None}
    proven, besides = {}, {}
    for row in changed:
        key = key_of(row)
        if key not in keys:
            besides[key] = row["allowed"]
        elif not row["denied"]:
            proven[key] = row["allowed"]
    return SuggestionProof(proven, besides)


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
    # Only ACLs on such a name may be PREFIXED: see `pipeline.analysis.grant`.
    if not any(name == WILDCARD for *_, name in names):
        return found
    begin_so = F.col("cluster").isin(list(acls)) & F.col("resource_name").startswith(WILDCARD)
    others = usage.where(begin_so & (F.col("resource_name") != WILDCARD))
    return found.unionByName(others)
