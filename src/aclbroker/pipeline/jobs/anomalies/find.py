"""Finds what is new after the baseline: principals, hosts, grants, and days that stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.acl.bindings import AclOperation
from aclbroker.pipeline.analysis.days import Days, calendar
from aclbroker.pipeline.analysis.spikes import SpikeRule
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.coverage import coverage_warnings
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.jobs.anomalies.novelty import habits_of, items_of
from aclbroker.pipeline.jobs.anomalies.spike_days import spike_days
from aclbroker.pipeline.report.words import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ADMINISTRATIVE: Final = (
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.ALTER_CONFIGS,
    AclOperation.CLUSTER_ACTION,
    AclOperation.CREATE_TOKENS,
)
"""The operations that change the cluster, or act in the name of others."""

PRINCIPALS: Final = "anomalies/principals"
HOSTS: Final = "anomalies/hosts"
GRANTS: Final = "anomalies/grants"
SPIKES: Final = "anomalies/spikes"
"""The tables that are written."""

_WHO: Final = ("cluster", "principal")
_GRANT: Final = (*_WHO, "operation", "resource_type")


class Anomalies(NamedTuple):
    """The tables as they were written, named as the outputs.

    ``days`` are those that were looked at, also without events, and ``split`` is the first one
    after the baseline. ``warnings`` say what was left out.
    """

    principals: DataFrame
    hosts: DataFrame
    grants: DataFrame
    spikes: DataFrame
    days: Sequence[date]
    split: date
    warnings: Sequence[str]


def find(inputs: Inputs, baseline_days: int | None, spike: SpikeRule) -> Anomalies:
    """Write the tables of what is new after the baseline.

    ``baseline_days``: how many days with events it has; None for half of the log's. Days that stand
    apart or are still to come (`pipeline.analysis.days`) are left out, with a warning. Raises
    InputError if the log is too short for the baseline and a day after it.
    """
    found = inputs.window.parted(inputs.today)
    left_out = [*found.outliers, *found.future]
    split = _end_of_baseline(found.usual, left_out, baseline_days)
    days = calendar(found.usual)
    usage, warnings = _with_baseline(_without(inputs.usage.rows, left_out), split)
    silent = coverage_warnings(inputs, inputs.coverage, "Later use looks new.")
    warnings = [*_told(inputs.window.by_day, found), *warnings, *silent]
    use = usage.where(~F.coalesce("quiet", F.lit(False)))
    principals = inputs.output.table(PRINCIPALS, _principals(usage, split))
    known = principals.where(~F.col("new"))
    acts = use.select("*", _is_administrative().alias("administrative"))
    return Anomalies(
        principals,
        inputs.output.table(HOSTS, _new_hosts(usage, known, split)),
        inputs.output.table(GRANTS, _new_grants(use, principals, split)),
        inputs.output.table(SPIKES, spike_days(acts, known, days, days.index(split), spike)),
        days,
        split,
        warnings,
    )


_NAMED: Final = 5
"""How many days a warning names."""


def _without(usage: DataFrame, days: Sequence[date]) -> DataFrame:
    return usage.where(~F.col("day").isin(list(days))) if days else usage


def _told(events: Mapping[date, int], days: Days) -> list[str]:
    """Return what to say of days that a wrong clock may have dated."""
    looks = "--days looks at them alone"
    found = {
        "left out, since they are still to come: the clock was wrong": (days.future, looks),
        "left out, since they stand apart from all others, as when a clock was wrong": (
            days.outliers,
            looks,
        ),
        "looked at like all others, but far from them, as when a clock was wrong": (
            days.doubtful,
            "--since and --until leave them out",
        ),
    }
    return [
        f"{what}: {_names(these)}, with "
        f"{counted(sum(events.get(day, 0) for day in these), 'event')}; {option}"
        for what, (these, option) in found.items()
        if these
    ]


def _names(days: Sequence[date]) -> str:
    named = ", ".join(map(str, days[:_NAMED]))
    more = len(days) - _NAMED
    return f"{named} and {counted(more, 'other day')}" if more > 0 else named


def _end_of_baseline(days: Sequence[date], outliers: Sequence[date], wanted: int | None) -> date:
    """The first day that is compared with those before it."""
    if len(days) < 2:
        apart = f" but for {_names(outliers)}, far from it" if outliers else ""
        raise InputError(
            f"the log covers one day ({days[0]}){apart}: to see what is new, at least one day "
            "before is needed"
        )
    baseline = len(days) // 2 if wanted is None else wanted
    if not 1 <= baseline < len(days):
        raise InputError(
            f"a baseline of {baseline} days does not fit into the log's {len(days)}: it can have "
            f"1 to {len(days) - 1} days, so that one is left to compare with it"
        )
    return days[baseline]


def _with_baseline(usage: DataFrame, split: date) -> tuple[DataFrame, list[str]]:
    """Leave out clusters whose log begins after the baseline: all of it would be new."""
    first_days = usage.groupBy("cluster").agg(F.min("day").alias("day")).collect()
    late = sorted(row["cluster"] for row in first_days if row["day"] >= split)
    if not late:
        return usage, []
    warning = (
        f"left out, since their log begins after the baseline (before {split}): clusters "
        f"{', '.join(late)}"
    )
    return usage.where(~F.col("cluster").isin(late)), [warning]


def _principals(usage: DataFrame, split: date) -> DataFrame:
    loud = ~F.coalesce("quiet", F.lit(False))
    counts = {
        "events": F.sum("events"),
        "denied_events": _events_where(loud & ~F.col("allowed")),
        "administrative_events": _events_where(loud & _is_administrative()),
    }
    items = items_of(usage, _WHO, "host", counts)
    totals = items.groupBy(*_WHO).agg(
        F.count("*").alias("hosts"),
        F.count_if(F.col("first_day") < F.lit(split)).alias("baseline_hosts"),
        *(F.sum(name).alias(name) for name in counts),
    )
    habits = habits_of(items, _WHO).withColumnRenamed("changing", "changing_hosts")
    return totals.join(habits, list(_WHO)).withColumn("new", F.col("since") >= F.lit(split))


def _new_hosts(usage: DataFrame, known: DataFrame, split: date) -> DataFrame:
    counts = {
        "events": F.sum("events"),
        "denied_events": _events_where(~F.col("allowed")),
        "first_seen": F.min("first_seen"),
    }
    stable = known.where(~F.col("changing_hosts")).select(*_WHO, "baseline_hosts")
    return (
        items_of(usage, _WHO, "host", counts)
        .where(F.col("first_day") >= F.lit(split))
        .withColumn("days", F.size("days"))
        .join(stable, list(_WHO))
    )


def _new_grants(use: DataFrame, principals: DataFrame, split: date) -> DataFrame:
    """What was allowed for the first time; all of it, also of new principals and changing names."""
    allowed = F.col("allowed")
    counts = {
        "events": _events_where(allowed),
        "denied_events": _events_where(~allowed),
        "first_allowed": F.min(F.when(allowed, F.col("first_seen"))),
        "first_denied": F.min(F.when(~allowed, F.col("first_seen"))),
    }
    # Days of denials are no days of use.
    only_allowed = use.withColumn("day", F.when(allowed, F.col("day")))
    items = items_of(only_allowed, _GRANT, "resource_name", counts)
    habits = habits_of(items.where(F.col("first_day").isNotNull()), _GRANT)
    known = principals.select(*_WHO, F.col("new").alias("new_principal"))
    return (
        items.where(F.col("first_day") >= F.lit(split))
        .withColumn("days", F.size("days"))
        .withColumn("administrative", _is_administrative())
        .withColumn(
            "denied_before",
            F.coalesce(F.col("first_denied") < F.col("first_allowed"), F.lit(False)),
        )
        .join(habits.select(*_GRANT, F.col("changing").alias("changing_names")), list(_GRANT))
        .join(known, list(_WHO))
    )


def _is_administrative() -> Column:
    return F.col("operation").isin([operation.name for operation in ADMINISTRATIVE])


def _events_where(condition: Column) -> Column:
    return F.sum(F.when(condition, F.col("events")).otherwise(0))
