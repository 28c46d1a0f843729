"""Finds what each ACL was used for, and proves by a replay which of them can go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.hosts import subnet
from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.staying import Stay
from aclbroker.pipeline.analysis.use import AclUse, Asked, acl_uses
from aclbroker.pipeline.errors import DoubtedLogError, InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.coverage import too_little, write_coverage
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.left_out import left_out_lines
from aclbroker.pipeline.interface.opened_rights import RIGHTS, rights_frame
from aclbroker.pipeline.jobs.unused.keeping import kept
from aclbroker.pipeline.jobs.unused.options import UnusedOptions
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.drift import Drift, drift_warnings, too_much_drift
from aclbroker.pipeline.replay.removal import Removal, proven, replayed, rules_of
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACLS: Final = "unused/acls"
OPENED: Final = "unused/opened"
COVERAGE: Final = "unused/coverage"
"""The tables that are written."""

_COLUMNS: Final = [
    pa.field("use", pa.string()),
    pa.field("removable", pa.bool_()),
    pa.field("stays_because", pa.string()),
    pa.field("goes_because", pa.string()),
    pa.field("events", pa.int64()),
    pa.field("decisive_events", pa.int64()),
    pa.field("last_day", pa.date32()),
]


class AclLog(NamedTuple):
    """What the log says of one cluster's ACLs: ``asked`` has one entry a combination of them.

    ``drift`` are events that were decided otherwise than the rules decide.
    """

    asked: list[Asked]
    events: int
    allowed_events: int
    exempt_events: int
    drift: Drift


Uses = dict[str, list[AclUse]]

_LOG_ALLOWED: Final = (
    "every ACL would look unused. Brokers record denials alone by default. Set the level of "
    "Kafka's kafka.authorizer.logger to DEBUG, or aclbroker.audit.level=all here, and try again "
    "when the log covers all regular work"
)


class UnusedAcls(NamedTuple):
    """The use of each ACL, and the result of removing the ACLs that can go.

    ``log`` and ``uses`` are by cluster. ``left_out`` has the clusters without a proposal, with the
    reason; only ``log`` has these clusters, too. ``filtering_changes`` counts the decisions that
    only filter an answer and would change; 0 if the job counts them as use. ``drift_warnings`` say
    why the log was decided otherwise than the rules decide. ``outputs`` maps each written name to
    its description. With ``is_doubted``, a cluster is left out because of quarantined lines, or
    because too few hours have allowed events.
    """

    log: Mapping[str, AclLog]
    uses: Uses
    left_out: Mapping[str, str]
    removal: Removal
    filtering_changes: int
    drift_warnings: list[str]
    outputs: dict[str, str]
    is_doubted: bool


def find(inputs: Inputs, options: UnusedOptions) -> UnusedAcls:
    """Return the ACLs that can go under the options of the job, and write the ACLs that remain.

    A cluster is left out if its log has no allowed events, too little coverage, too much drift, or
    too many quarantined lines. Raises InputError if no cluster is left, or if there are no ACLs.
    """
    filtering = options.filtering
    given = rules_of(inputs.current, "unused")
    if not inputs.window.allowed:
        raise DoubtedLogError(f"the log has no allowed event: {_LOG_ALLOWED}")
    usage = _usage(inputs, given, filtering=filtering)
    log = _read(usage, given)
    doubted = inputs.quarantine.too_much(
        {cluster: each.events for cluster, each in log.items()}, options.max_quarantined
    )
    left_out = {**_left_out(inputs, log, options, usage, given), **doubted}
    is_doubted = bool(doubted or too_little(inputs, left_out, options.min_coverage))
    current = {cluster: rules for cluster, rules in given.items() if cluster not in left_out}
    if not current:
        drift = sum(each.drift.events for each in log.values())
        error = DoubtedLogError if is_doubted else InputError
        raise error("; ".join(left_out_lines(left_out)), {"drift": drift})
    usage = usage.part(current)
    uses = {
        cluster: acl_uses(
            rules,
            log[cluster].asked,
            young=_young(inputs, cluster),
            kept=kept(rules.acls, options.keeps),
            doubted=inputs.quarantine.doubted(cluster, rules.acls),
        )
        for cluster, rules in current.items()
    }
    going = {
        cluster: {each.acl for each in found if each.stays is None}
        for cluster, found in uses.items()
    }
    removal = proven(usage, current, going)
    uses = _with_put_back(uses, removal)
    if options.by_principal:
        uses = {
            name: sorted(found, key=lambda each: each.acl.principal) for name, found in uses.items()
        }
    filtering_changes = 0
    if not filtering:
        rest = inputs.usage.part(current, quiet=True)
        filtering_changes = replayed(rest, current, removal.remaining).flipped
    drifts = (log[cluster].drift for cluster in current)
    warnings = drift_warnings(Drift(*map(sum, zip(*drifts, strict=True))), usage, current)
    outputs = _write(inputs, given, uses, removal)
    return UnusedAcls(
        log,
        uses,
        left_out,
        removal,
        filtering_changes,
        warnings,
        outputs,
        is_doubted,
    )


def _usage(inputs: Inputs, clusters: Iterable[str], *, filtering: bool) -> Usage:
    usage = inputs.usage.part(clusters)
    return usage if filtering else usage.part(quiet=False)


def _left_out(
    inputs: Inputs,
    log: Mapping[str, AclLog],
    options: UnusedOptions,
    usage: Usage,
    current: Mapping[str, Ruleset],
) -> dict[str, str]:
    """Return the clusters whose log does not show the unused ACLs, and why."""
    silent = {
        cluster: f"its log has no allowed event: {_LOG_ALLOWED}"
        for cluster, each in log.items()
        if not each.allowed_events
    }
    silent |= too_little(inputs, log.keys() - silent, options.min_coverage)
    told = {cluster: each for cluster, each in log.items() if cluster not in silent}
    drifts = {cluster: each.drift for cluster, each in told.items()}
    events = {cluster: each.events for cluster, each in told.items()}
    return {**silent, **too_much_drift(drifts, events, options.max_drift, usage, current)}


def _young(inputs: Inputs, cluster: str) -> list[int]:
    if cluster not in inputs.earlier:
        return []
    old = set(inputs.earlier[cluster].acls)
    return [at for at, acl in enumerate(inputs.current[cluster].acls) if acl not in old]


def _read(usage: Usage, current: Mapping[str, Ruleset]) -> dict[str, AclLog]:
    """Decide all questions anew and collect what they say of ACLs, equal ones together."""
    sets = {"current": current}
    as_subnets = {
        cluster: replace(rules, cidr=True)
        for cluster, rules in current.items()
        if not rules.cidr and any(subnet(acl.host) for acl in rules.acls)
    }
    if as_subnets:
        sets["subnets"] = as_subnets
    decided = replay.replayed(usage, sets, explain=True)
    log = {cluster: AclLog([], 0, 0, 0, Drift()) for cluster in current}
    for row in _grouped(decided, has_subnets=bool(as_subnets)).toArrow().to_pylist():
        cluster, events = row["cluster"], row["events"]
        before = log[cluster]
        allows, denies, alone, explaining = (row[name] for name in _BEHIND)
        if allows or denies or alone or explaining:
            asked = allows, denies, alone, events, row["last_day"]
            before.asked.append(Asked(*asked, row["was_allowed"], explaining))
        log[cluster] = AclLog(
            before.asked,
            before.events + events,
            before.allowed_events + row["allowed_events"],
            before.exempt_events + (events if row["exempt"] else 0),
            Drift(*(known + row[name] for name, known in before.drift._asdict().items())),
        )
    return log


_BEHIND: Final = ("allows", "denies", "alone", "explaining")
_SUMMED: Final = ("events", "allowed_events", *Drift._fields)


def _grouped(decided: DataFrame, *, has_subnets: bool) -> DataFrame:
    """Return one row for all questions that the same ACLs allow, deny, decide and may have allowed.

    ``has_subnets``: whether they were also decided with hosts in CIDR notation as subnets.
    """
    exempt = F.col("current_rule") == RuleKind.SUPER_USER.value
    nothing = F.array().cast("array<int>")
    is_allowed, count, allowed = F.col("current_allowed"), F.col("events"), F.col("allowed_events")
    then, now = F.when(is_allowed, 0).otherwise(allowed), F.when(is_allowed, count - allowed)
    drift = {
        "denied": then,
        "allowed": now.otherwise(0),
        "mixed": F.when(allowed.between(1, count - 1), then + now.otherwise(0)).otherwise(0),
        "by_subnets": F.lit(0),
    }
    was_allowed = ~exempt & (allowed > 0)
    explaining = nothing
    if has_subnets:
        other = F.coalesce(F.col("subnets_allowed"), is_allowed)
        otherwise = F.when(other, count - allowed).otherwise(allowed)
        drift["by_subnets"] = drift["denied"] + drift["allowed"] - otherwise
        allows = F.coalesce(F.array_sort("subnets_allows"), nothing)
        explaining = F.when(was_allowed & ~is_allowed & other, allows).otherwise(nothing)
    behind = {
        which: F.when(exempt, nothing).otherwise(F.array_sort(F.col(f"current_{which}")))
        for which in ("allows", "denies", "alone")
    }
    return (
        decided.select(
            "cluster",
            exempt.alias("exempt"),
            *(column.alias(which) for which, column in behind.items()),
            was_allowed.alias("was_allowed"),
            explaining.alias("explaining"),
            count,
            allowed,
            *(column.alias(name) for name, column in drift.items()),
            F.to_date("last_seen").alias("last_day"),
        )
        .groupBy("cluster", "exempt", *_BEHIND, "was_allowed")
        .agg(
            *(F.sum(name).alias(name) for name in _SUMMED),
            F.max("last_day").alias("last_day"),
        )
    )


def _with_put_back(uses: Uses, removal: Removal) -> Uses:
    return {
        cluster: [
            each._replace(stays=Stay.PUT_BACK, why=None)
            if each.acl in removal.put_back[cluster]
            else each
            for each in found
        ]
        for cluster, found in uses.items()
    }


def _write(
    inputs: Inputs, given: dict[str, Ruleset], uses: Uses, removal: Removal
) -> dict[str, str]:
    rows = (
        (
            cluster,
            each.acl,
            (
                each.use.value,
                each.stays is None,
                each.stays and each.stays.value,
                each.why,
                each.events,
                each.decisive_events,
                each.last_day,
            ),
        )
        for cluster, found in uses.items()
        for each in found
    )
    inputs.output.table(ACLS, acl_table(inputs.spark, rows, _COLUMNS))
    inputs.output.table(OPENED, rights_frame(inputs.spark, removal.changed))
    files = inputs.output.acls(
        "unused/remaining",
        # What is left out stays as it is, and no file of an earlier run stands for it.
        {cluster: rules.acls for cluster, rules in (given | removal.remaining).items()},
        current={cluster: rules.acls for cluster, rules in given.items()},
    )
    return {
        ACLS: "every ACL with its use (Parquet)",
        OPENED: f"{RIGHTS} (Parquet)",
        **write_coverage(inputs, given, COVERAGE),
        **files,
    }
