"""The questions of a log, as `recommend` has tasks work on them, company by company."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from aclbroker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.acl.bindings import AclBinding, AclOperation, ResourceType
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.companies import companies
from aclbroker.pipeline.analysis.least_privilege import Grantee, allowing, as_java
from aclbroker.pipeline.analysis.prefixes import PREFIXABLE, PrefixOptions
from aclbroker.pipeline.frames import Window
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.recommend.known import Known, denies_of
from aclbroker.pipeline.jobs.recommend.part import recommended
from aclbroker.pipeline.jobs.recommend.pieces import pieces_type
from aclbroker.pipeline.jobs.recommend.replayed import session_of
from aclbroker.pipeline.replay.deciding import Rules
from aclbroker.pipeline.replay.questions import RuleSets, Whole, gathered
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.grouping import encoded, numbered, spread
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

SESSION: Final = ("cluster", "principal", "other_principals")
"""The columns that tell a session's principals."""

_AT_ONCE: Final = 50_000
"""How many questions a task works on together, if a company has no more."""

_BY_DENY: Final = 4
"""How many of them there are for each DENY at least, since all DENYs are looked at beside them."""


class Gathered(NamedTuple):
    """What tasks find (`pipeline.jobs.recommend.pieces`), and what they know, here and there."""

    pieces: DataFrame
    known: Known
    shipped: Broadcast[Known]


def pieces_of(inputs: Inputs, prefixes: PrefixOptions | None, most_hosts: int | None) -> Gathered:
    """Return what tasks find about a log, and what they know.

    ``prefixes``: which PREFIXED ACLs there may be; None for none. ``most_hosts``: name the hosts of
    principals that came from no more; None names no hosts.
    """
    usage = _without_unknown_super_users(inputs)
    known = Known(
        Rules(inputs.current),
        prefixes,
        {} if prefixes is None else _names(inputs, usage),
        {} if most_hosts is None else _hosts(usage, most_hosts),
        {
            cluster: frozenset(map(rules.acls.__getitem__, doubted))
            for cluster, rules in inputs.current.items()
            if (doubted := inputs.quarantine.doubted(cluster, rules.acls))
        },
    )
    with uncollected(in_worker=False):
        shipped = usage.spark.sparkContext.broadcast(known)
    found = gathered(
        usage,
        _told_apart(inputs.current, known.hosts),
        partial(recommended, shipped),
        pieces_type(),
        whole=Whole(
            partial(_companies_of, _companies(inputs), _undivided(inputs.current)),
            max([_AT_ONCE, *(_BY_DENY * len(denies_of(each)) for each in inputs.current.values())]),
        ),
    )
    return Gathered(found, known, shipped)


def _told_apart(current: Mapping[str, Ruleset], hosts: Mapping[str, Any]) -> RuleSets:
    """Return rules that name all hosts that the current ones name, and those of principals."""
    named = {
        cluster: Ruleset(
            tuple(
                _naming(host)
                for host in sorted(
                    {as_java(each) for of in by_principal.values() for each in of if each}
                )
            )
        )
        for cluster, by_principal in hosts.items()
    }
    return {"current": current, "hosts": named}


def _naming(host: str) -> AclBinding:
    return allowing(Grantee("", host, ResourceType.TOPIC), "", AclOperation.READ)


def _undivided(current: Mapping[str, Ruleset]) -> frozenset[str]:
    """Return the clusters that are one part each."""
    return frozenset(
        cluster for cluster, rules in current.items() if rules.allow_everyone_if_no_acl_found
    )


def _companies_of(
    firsts: Mapping[str, Mapping[str, str]], undivided: Collection[str], questions: pa.Table
) -> pa.Array:
    """Return a text for each question, by which those of one company come together.

    ``firsts``: by cluster what `companies` returns; ``undivided``: clusters that are one company.
    """
    table = encoded(questions.select(["cluster", "principal"]))
    numbers = numbered(table, ("cluster", "principal"))
    _, rows, codes = np.unique(numbers, return_index=True, return_inverse=True)
    texts = []
    for row in table.take(pa.array(rows)).to_pylist():
        cluster, principal = row["cluster"], row["principal"]
        first = firsts.get(cluster, {}).get(principal, principal)
        texts.append(json.dumps([cluster, None if cluster in undivided else first]))
    return spread(pa.array(texts, pa.string()), codes.astype(np.int32))


def _companies(inputs: Inputs) -> dict[str, Mapping[str, str]]:
    together = inputs.usage.by(*SESSION).where("other_principals is not null")
    sessions: dict[str, list[tuple[str, ...]]] = {}
    for row in together.select(*SESSION).distinct().toArrow().to_pylist():
        sessions.setdefault(row["cluster"], []).append(session_of(row))
    return {cluster: companies(found) for cluster, found in sessions.items()}


def _names(inputs: Inputs, usage: Usage) -> dict[str, dict[ResourceType, set[str]]]:
    """The names of each cluster and type: those in the log, and those that are given."""
    found: dict[str, dict[ResourceType, set[str]]] = {}
    for cluster, given in inputs.names.items():
        found[cluster] = {each: set(names) for each, names in given.items()}
    grouped = (
        usage.by("cluster", "resource_type", "resource_name")
        .where(F.col("resource_type").isin([each.name for each in PREFIXABLE]))
        .where("resource_name is not null")
        .where(~((F.col("resource_type") == "TOPIC") & (F.col("resource_name") == ANY_RESOURCE)))
        .groupBy("cluster", "resource_type")
        .agg(F.collect_set("resource_name").alias("names"))
    )
    for row in grouped.toArrow().to_pylist():
        by_type = found.setdefault(row["cluster"], {})
        by_type.setdefault(ResourceType[row["resource_type"]], set()).update(row["names"])
    return found


def _hosts(usage: Usage, most: int) -> dict[str, dict[str, set[str]]]:
    """The hosts of each principal that came from few, by cluster."""
    in_order = Window.partitionBy(*SESSION).orderBy("host")
    seen = usage.by(*SESSION, "host").select(*SESSION, "host").distinct()
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


def _without_unknown_super_users(inputs: Inputs) -> Usage:
    is_known = F.col("cluster").isin(list(inputs.current))
    is_super_user = F.col("rule").eqNullSafe(RuleKind.SUPER_USER.value)
    return Usage(inputs.usage.rows.where(is_known | ~is_super_user))
