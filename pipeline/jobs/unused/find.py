"""Finds what each ACL was used for, and proves by a replay which of them can go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.use import AclUse, Asked, Stay, acl_uses
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.removal import Removal, proven, replayed, rules_of
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COLUMNS: Final = [
    pa.field("use", pa.string()),
    pa.field("removable", pa.bool_()),
    pa.field("stays_because", pa.string()),
    pa.field("events", pa.int64()),
    pa.field("decisive_events", pa.int64()),
    pa.field("last_day", pa.date32()),
]


class AclLog(NamedTuple):
    """What the log says of one cluster's ACLs: ``asked`` has one entry a combination of them."""

    asked: list[Asked]
    events: int
    allowed_events: int
    exempt_events: int
    differing_events: int


Uses = dict[str, list[AclUse]]


class UnusedAcls(NamedTuple):
    """What each ACL was used for, and what is left without those that can go.

    ``log`` and ``uses`` are by cluster. ``filtering_changes`` is how many of the decisions that
    only filter an answer do change, if these were left out. ``outputs`` are what was written, with
    what it is.
    """

    log: Mapping[str, AclLog]
    uses: Uses
    removal: Removal
    filtering_changes: int
    outputs: dict[str, str]


def find(inputs: Inputs, *, filtering: bool, unmatched_denies: bool) -> UnusedAcls:
    """Find the ACLs that can go, and write what is left; the options are those of the job.

    Raises InputError if there are no ACLs, or no allowed events in the log.
    """
    current = rules_of(inputs.current, "unused")
    _refuse_without_allowed(inputs.window.allowed, "the log")
    everything = inputs.usage.part(current)
    usage = everything if filtering else everything.part(quiet=False)
    log = _read(usage, current)
    for cluster in current:
        _refuse_without_allowed(log[cluster].allowed_events, f"the log of cluster {cluster}")
    uses = {
        cluster: acl_uses(
            rules,
            log[cluster].asked,
            young=_young(inputs, cluster),
            unmatched_denies=unmatched_denies,
        )
        for cluster, rules in current.items()
    }
    going = {
        cluster: {each.acl for each in found if each.stays is None}
        for cluster, found in uses.items()
    }
    removal = proven(usage, current, going)
    uses = _with_put_back(uses, removal)
    filtering_changes = 0
    if not filtering:
        rest = everything.part(quiet=True)
        filtering_changes = replayed(rest, current, removal.remaining).flipped
    outputs = _write(inputs, uses, removal)
    return UnusedAcls(log, uses, removal, filtering_changes, outputs)


def _refuse_without_allowed(allowed: int, what: str) -> None:
    if not allowed:
        raise InputError(
            f"{what} has no allowed event: every ACL would look unused. Brokers record denials "
            "alone by default. Set the level of Kafka's kafka.authorizer.logger to DEBUG, or "
            "aclbroker.audit.level=all here, and try again when the log covers all regular work"
        )


def _young(inputs: Inputs, cluster: str) -> list[int]:
    if cluster not in inputs.earlier:
        return []
    old = set(inputs.earlier[cluster].acls)
    return [at for at, acl in enumerate(inputs.current[cluster].acls) if acl not in old]


def _read(usage: Usage, current: Mapping[str, Ruleset]) -> dict[str, AclLog]:
    """Decide all questions anew and collect what they say of ACLs, equal ones together."""
    sets = {"current": current}
    decided = replay.replayed(usage, sets, explain=True)
    log = {cluster: AclLog([], 0, 0, 0, 0) for cluster in current}
    for row in _grouped(decided).toArrow().to_pylist():
        cluster, events = row["cluster"], row["events"]
        before = log[cluster]
        if row["allows"] or row["denies"] or row["only"] is not None:
            before.asked.append(
                Asked(row["allows"], row["denies"], row["only"], events, row["last_day"])
            )
        log[cluster] = AclLog(
            before.asked,
            before.events + events,
            before.allowed_events + row["allowed_events"],
            before.exempt_events + (events if row["exempt"] else 0),
            before.differing_events + row["differing_events"],
        )
    return log


def _grouped(decided: DataFrame) -> DataFrame:
    """Return one row for all questions that the same ACLs allow and deny."""
    exempt = F.col("current_rule") == RuleKind.SUPER_USER.value
    nothing = F.array().cast("array<int>")
    on_resource = F.col("current_on_resource")
    count, allowed = F.col("events"), F.col("allowed_events")
    differing = F.when(F.col("current_allowed"), count - allowed).otherwise(allowed)
    return (
        decided.select(
            "cluster",
            exempt.alias("exempt"),
            *(
                F.when(exempt, nothing)
                .otherwise(F.array_sort(F.col(f"current_{which}")))
                .alias(which)
                for which in ("allows", "denies")
            ),
            F.when(~exempt & (F.size(on_resource) == 1), on_resource[0]).alias("only"),
            count,
            allowed,
            differing.alias("differing_events"),
            F.to_date("last_seen").alias("last_day"),
        )
        .groupBy("cluster", "exempt", "allows", "denies", "only")
        .agg(
            F.sum("events").alias("events"),
            F.sum("allowed_events").alias("allowed_events"),
            F.sum("differing_events").alias("differing_events"),
            F.max("last_day").alias("last_day"),
        )
    )


def _with_put_back(uses: Uses, removal: Removal) -> Uses:
    return {
        cluster: [
            each._replace(stays=Stay.PUT_BACK) if each.acl in removal.put_back[cluster] else each
            for each in found
        ]
        for cluster, found in uses.items()
    }


def _write(inputs: Inputs, uses: Uses, removal: Removal) -> dict[str, str]:
    rows = (
        (
            cluster,
            each.acl,
            (
                each.use.value,
                each.stays is None,
                each.stays and each.stays.value,
                each.events,
                each.decisive_events,
                each.last_day,
            ),
        )
        for cluster, found in uses.items()
        for each in found
    )
    inputs.output.table("unused/acls", acl_table(inputs.spark, rows, _COLUMNS))
    files = inputs.output.acls(
        "unused/remaining",
        {cluster: rules.acls for cluster, rules in removal.remaining.items()},
        current={cluster: inputs.current[cluster].acls for cluster in removal.remaining},
    )
    return {"unused/acls": "every ACL with its use (Parquet)", **files}
