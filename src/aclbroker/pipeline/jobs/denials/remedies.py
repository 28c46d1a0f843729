"""What would allow what was denied, and the proof: a replay with all that is suggested."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    ResourceType,
)
from aclbroker.pipeline.analysis.grant import (
    Denied,
    Kind,
    Opened,
    Remedy,
    Standing,
    opened_besides,
    remedies,
)
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.denials.denied import KEY, DenialKey, key_of
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.questions import QUESTION, keyed
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEY_TYPES: Final = ", ".join(f"{name} string" for name in KEY)


class Suggestion(NamedTuple):
    """A row of the table of what was denied, what would allow it, and what that opens besides."""

    row: Mapping[str, Any]
    remedy: Remedy
    opens: Sequence[Opened] = ()

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
    inputs: Inputs,
    rows: Sequence[Mapping[str, Any]],
    most_hosts: int | None,
    intruders: Mapping[tuple[str, str], str],
) -> tuple[list[Suggestion], SuggestionProof]:
    """Return a suggestion for each of the denials in ``rows``, and the proof of all.

    ``most_hosts``: see `pipeline.analysis.grant.remedy`. ``intruders`` maps clusters and principals
    to the reason why no ACL is proposed.
    """
    asked = [row for row in rows if not _is_about_any(row) and row["resource_name"] is not None]
    standings = _standings(inputs, list(map(key_of, asked)), most_hosts)
    found = _remedies(inputs, rows, standings, most_hosts)
    for key, each in found.items():
        what = intruders.get(key[:2])
        if what is not None and each.kind in (Kind.ALLOW, Kind.HOSTS):
            found[key] = Remedy(Kind.SUSPECT, denies=each.denies, note=f"denied {what}")
    opened = _opened(inputs, found, standings)
    suggestions = [
        Suggestion(
            row,
            found[key_of(row)],
            [each for acl in found[key_of(row)].acls for each in opened[row["cluster"], acl]],
        )
        for row in rows
    ]
    return suggestions, _proof(inputs, suggestions)


def _is_about_any(row: Mapping[str, Any]) -> bool:
    is_topic = row["resource_type"] == ResourceType.TOPIC.name
    return is_topic and bool(row["resource_name"] == ANY_RESOURCE)


def _standings(
    inputs: Inputs, keys: Sequence[DenialKey], most_hosts: int | None
) -> dict[DenialKey, list[Standing]]:
    """What the current rules say of what was denied, for each kind of session that asked.

    Of the hosts one more is told than an ACL each may be suggested for.
    """
    if not keys or not inputs.current:
        return {}
    sets = {"current": inputs.current}
    denied = _of_keys(inputs, inputs.usage.part(allowed=False, quiet=False).rows, keys)
    host = F.col("example_host")
    questions = (
        keyed(denied, sets)
        .groupBy(*QUESTION)
        .agg(
            F.min(host).alias("example_host"),
            F.slice(F.sort_array(F.collect_set(host)), 1, (most_hosts or 0) + 1).alias("hosts"),
        )
    )
    decided = replay.decided(questions, sets, explain=True)
    columns = ("current_allowed", "current_allows", "current_denies", "hosts", "other_principals")
    found: dict[DenialKey, list[Standing]] = {}
    for row in decided.where("current_allowed is not null").select(*KEY, *columns).collect():
        acls = inputs.current[row["cluster"]].acls
        standing = Standing(
            row["current_allowed"],
            [acls[position] for position in row["current_allows"]],
            [acls[position] for position in row["current_denies"]],
            row["hosts"],
            tuple(json.loads(row["other_principals"] or "[]")),
        )
        found.setdefault(key_of(row), []).append(standing)
    return found


def _of_keys(inputs: Inputs, usage: DataFrame, keys: Sequence[DenialKey]) -> DataFrame:
    """Return the usage of some principals, operations and resources."""
    wanted = F.broadcast(inputs.spark.createDataFrame(list(keys), _KEY_TYPES)).alias("wanted")
    same = [usage[name].eqNullSafe(F.col(f"wanted.{name}")) for name in KEY]
    return usage.join(wanted, same, "left_semi")


def _remedies(
    inputs: Inputs,
    rows: Sequence[Mapping[str, Any]],
    standings: Mapping[DenialKey, Sequence[Standing]],
    most_hosts: int | None,
) -> dict[DenialKey, Remedy]:
    found: dict[DenialKey, Remedy] = {}
    of_clusters: dict[str, dict[Denied, DenialKey]] = {}
    for row in rows:
        key = key_of(row)
        if _is_about_any(row):
            note = "asked of any topic: it is allowed to who may do it on one topic"
            found[key] = Remedy(Kind.NONE, note=note)
        else:
            of_clusters.setdefault(row["cluster"], {})[_denied(key)] = key
    for cluster, keys in of_clusters.items():
        rules = inputs.current.get(cluster)
        asked = {denied: standings.get(key, ()) for denied, key in keys.items()}
        cidr = rules is not None and rules.cidr
        for denied, each in remedies(asked, most_hosts=most_hosts, cidr=cidr).items():
            found[keys[denied]] = each
    for row in rows:
        each = found[key_of(row)]
        if each.kind is Kind.UNKNOWN and row["events_by_acl"]:
            found[key_of(row)] = each._replace(note="a DENY ACL blocked it")
    return found


def _denied(key: DenialKey) -> Denied:
    _, principal, operation, resource_type, name = key
    return Denied(principal, AclOperation[operation], ResourceType[resource_type], name)


def _opened(
    inputs: Inputs,
    found: Mapping[DenialKey, Remedy],
    standings: Mapping[DenialKey, Sequence[Standing]],
) -> dict[tuple[str, AclBinding], list[Opened]]:
    """Return what each suggested ACL of a cluster opens besides what was denied."""
    suggested = {(key[0], acl): key for key, each in found.items() for acl in each.acls}
    principals = {(cluster, acl.principal) for cluster, acl in suggested}
    acls: dict[tuple[str, str], list[AclBinding]] = {}
    for cluster in {cluster for cluster, _ in suggested}:
        for acl in inputs.current[cluster].acls:
            if acl.principal == WILDCARD_PRINCIPAL or (cluster, acl.principal) in principals:
                acls.setdefault((cluster, acl.principal), []).append(acl)
    asked: dict[tuple[str, str, str, str | None], set[tuple[AclOperation, str]]] = {}
    for key, each in standings.items():
        here = asked.setdefault((*key[:2], *key[3:]), set())
        here.update((AclOperation[key[2]], host) for standing in each for host in standing.hosts)
    opened = {}
    for (cluster, acl), key in suggested.items():
        known = [
            each
            for principal in (acl.principal, WILDCARD_PRINCIPAL)
            for each in acls.get((cluster, principal), ())
        ]
        denied = asked[*key[:2], *key[3:]]
        cidr = inputs.current[cluster].cidr
        opened[cluster, acl] = opened_besides(acl, known, denied, cidr=cidr)
    return opened


def _proof(inputs: Inputs, suggestions: Sequence[Suggestion]) -> SuggestionProof:
    """Replay all that was denied with all suggestions."""
    added: dict[str, set[AclBinding]] = {}
    for each in suggestions:
        if each.remedy.acls:
            added.setdefault(each.row["cluster"], set()).update(each.remedy.acls)
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
    # No suggestion is meant to undo a DENY, nor for hosts whose denials only filtered an answer.
    stays_denied = F.col("suggested_rule") == RuleKind.DEFAULT_DENY.value
    changed = (
        replay.replayed(Usage(denied), sets)
        .groupBy(*KEY)
        .agg(
            F.sum(F.when(becomes_allowed, events).otherwise(0)).alias("allowed"),
            F.sum(F.when(stays_denied, F.col("loud_events")).otherwise(0)).alias("denied"),
        )
        .where("allowed > 0")
        .collect()
    )
    keys = {each.key for each in suggestions if each.remedy.acls}
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
