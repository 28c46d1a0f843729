"""Anomalies, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.jobs.anomalies.find import GRANTS, HOSTS, PRINCIPALS, SPIKES, Anomalies

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OUTPUTS: Final = {
    PRINCIPALS: "every principal: since when, from how many hosts, how many events",
    HOSTS: "hosts that a principal of the baseline came from for the first time",
    GRANTS: "what a principal was allowed for the first time after the baseline",
    SPIKES: "days of far more administrative events or denials than before",
}


def summary(found: Anomalies, top: int) -> JobResult:
    """Sum up the tables."""
    days, split = found.days, found.split
    of_known = found.grants.where("not new_principal")
    grants = of_known.where("not changing_names")
    tables = {
        "principals": _new_principals(found.principals.where("new"), top),
        "hosts": _new_hosts(found.hosts, top),
        "changing hosts": _changing_hosts(found.principals.where("changing_hosts"), top),
        "opened": _grants("Denied, then allowed", of_known.where("denied_before"), top),
        "grants": _grants("First-seen grants", grants, top),
        "changing names": _changing_names(of_known.where("changing_names"), top),
        "spikes": _spikes(found.spikes, top),
    }
    counts = {name: table.total for name, table in tables.items()}
    return JobResult(
        job="anomalies",
        title="New behaviour",
        summary=(
            f"From {split} to {days[-1]}, compared with the days before: "
            f"{counts['principals']:,} new principals, {counts['hosts']:,} known ones from new "
            f"hosts, {counts['grants']:,} first-seen grants of known ones, "
            f"{counts['opened']:,} denied and then allowed, {counts['spikes']:,} spikes."
        ),
        figures=[
            Figure("Baseline", f"{days[0]} to {days[days.index(split) - 1]}"),
            *(Figure(table.title, table.total, table.note) for table in tables.values()),
        ],
        tables=list(tables.values()),
        charts=[_chart(found.hosts, grants, [day for day in days if day >= split])],
        warnings=found.warnings,
        outputs=dict(_OUTPUTS),
    )


def _new_principals(rows: DataFrame, top: int) -> Table:
    columns = {
        "Cluster": "cluster",
        "Principal": "principal",
        "Since": "since",
        "Hosts": "hosts",
        "Events": "events",
        "Denied": "denied_events",
        "Administrative": "administrative_events",
    }
    order = [F.desc("administrative_events"), F.desc("denied_events"), F.desc("events")]
    return _table(
        "New principals", rows, columns, order, top, "with no event in the baseline", PRINCIPALS
    )


def _new_hosts(rows: DataFrame, top: int) -> Table:
    by_principal = rows.groupBy("cluster", "principal").agg(
        F.max("baseline_hosts").alias("baseline_hosts"),
        F.count("*").alias("hosts"),
        F.min_by("host", "first_seen").alias("host"),
        F.min("first_day").alias("first_day"),
        F.sum("events").alias("events"),
        F.sum("denied_events").alias("denied_events"),
    )
    columns = {
        "Cluster": "cluster",
        "Principal": "principal",
        "Hosts before": "baseline_hosts",
        "New hosts": "hosts",
        "First of them": "host",
        "On": "first_day",
        "Events": "events",
        "Denied": "denied_events",
    }
    # A new host says most of somebody who always came from the same few.
    order = [F.asc("baseline_hosts"), F.desc("hosts"), F.desc("events")]
    note = "that were known from the baseline and do not change their hosts all the time"
    return _table("Principals from new hosts", by_principal, columns, order, top, note, HOSTS)


def _changing_hosts(rows: DataFrame, top: int) -> Table:
    columns = {
        "Cluster": "cluster",
        "Principal": "principal",
        "Hosts": "hosts",
        "Events": "events",
    }
    note = "nearly all of their hosts are new each day, so that new ones are not listed"
    title = "Principals with ever new hosts"
    return _table(title, rows, columns, [F.desc("hosts")], top, note, PRINCIPALS)


def _grants(title: str, rows: DataFrame, top: int) -> Table:
    columns = {
        "Cluster": "cluster",
        "Principal": "principal",
        "Operation": "operation",
        "Resource": "resource",
        "First allowed (UTC)": "first_allowed",
        "Events": "events",
        "Denied": "denied_events",
    }
    order = [F.desc("administrative"), F.desc("events"), "resource_type", "resource_name"]
    shown = rows.withColumn("first_allowed", F.date_format("first_allowed", "yyyy-MM-dd HH:mm:ss"))
    return _table(
        title, shown, columns, order, top, "of principals known from the baseline", GRANTS
    )


def _changing_names(rows: DataFrame, top: int) -> Table:
    by_grant = rows.groupBy("cluster", "principal", "operation", "resource_type").agg(
        F.count("*").alias("names"), F.sum("events").alias("events")
    )
    columns = {
        "Cluster": "cluster",
        "Principal": "principal",
        "Operation": "operation",
        "Type": "resource_type",
        "New names": "names",
        "Events": "events",
    }
    note = "nearly all of the names are new each day, so that they are not listed"
    order = [F.desc("names"), "operation", "resource_type"]
    return _table("Grants with ever new names", by_grant, columns, order, top, note, GRANTS)


def _spikes(rows: DataFrame, top: int) -> Table:
    columns = {
        "Cluster": "cluster",
        "Principal": "principal",
        "Day": "day",
        "Kind": "kind",
        "Events": "events",
        "Usual": "usual",
        "Limit": "limit",
    }
    order = [F.desc(F.col("events") / F.col("limit")), "day", "kind"]
    return _table(
        "Spikes", rows, columns, order, top, "a day of one principal and kind each", SPIKES
    )


def _table(
    title: str,
    rows: DataFrame,
    columns: dict[str, str],
    order: Sequence[Column | str],
    top: int,
    note: str,
    source: str,
) -> Table:
    first = rows.orderBy(*order, "cluster", "principal").limit(top).collect()
    total = len(first) if len(first) < top else rows.count()
    shown = [[_cell(row, name) for name in columns.values()] for row in first]
    return Table(title, list(columns), shown, total, note, source)


def _cell(row: Any, name: str) -> Cell:
    if name == "resource":
        return resource_text(row["resource_type"], row["resource_name"])
    value: Cell = row[name]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _chart(hosts: DataFrame, grants: DataFrame, days: Sequence[date]) -> Chart:
    series: dict[str, Sequence[float]] = {
        "hosts": _by_day(hosts, days),
        "grants": _by_day(grants, days),
    }
    title = "First seen by day"
    return Chart(title, "columns", [str(day) for day in days], series, "of known principals")


def _by_day(rows: DataFrame, days: Sequence[date]) -> list[float]:
    counts = {row["first_day"]: row["count"] for row in rows.groupBy("first_day").count().collect()}
    return [counts.get(day, 0) for day in days]
