"""Finds principals that behave like intruders: scans, rights on the cluster, new hosts, spikes.

A principal with a wrong configuration may look the same. The report lists these principals first
nevertheless. For the first two kinds no ACL is proposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.pipeline.analysis.spikes import SpikeRule, spikes
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.report.words import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCAN: Final = "scan"
CLUSTER: Final = "cluster"
NEW_HOST: Final = "new host"
SPIKE: Final = "spike"
"""The kinds of `Suspect`."""

_NAMES_OF_A_SCAN: Final = 20
"""Rare denials of this many names are a scan, because an application retries the same names."""

_OPERATIONS: Final = 2
"""The least number of administrative operations: a client may ask for one of them by default."""

_ADMINISTRATIVE: Final = (
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.ALTER_CONFIGS,
    AclOperation.CLUSTER_ACTION,
)
_MOST_HOSTS: Final = 10
"""A principal with more hosts gets new ones all the time, for example an application in pods."""

_MOST: Final = 1000
"""The most suspects of each kind."""

_WHO: Final = ("cluster", "principal")


class Suspect(NamedTuple):
    """A principal of a cluster that behaves like an intruder.

    ``kind`` is the sign of it, and ``what`` describes the denials in words.
    """

    cluster: str
    principal: str
    kind: str
    what: str
    events: int
    first_seen: datetime
    last_seen: datetime


def suspects(
    inputs: Inputs, denied: DataFrame, seldom: DataFrame, min_events: int
) -> list[Suspect]:
    """Return the suspects, scans first.

    ``denied`` are the rows of `denied.grouped`, and ``seldom`` those of `denied.seldom`.
    """
    return [
        *_scans(seldom, min_events),
        *_on_the_cluster(denied),
        *_new_hosts(inputs),
        *_spikes(inputs),
    ]


def of_intruders(found: Iterable[Suspect]) -> dict[tuple[str, str], str]:
    """Return the denials in words, by cluster and principal to which no ACL is proposed."""
    told: dict[tuple[str, str], str] = {}
    for each in found:
        if each.kind in (SCAN, CLUSTER):
            told.setdefault((each.cluster, each.principal), each.what)
    return told


def _scans(seldom: DataFrame, min_events: int) -> Iterator[Suspect]:
    rows = (
        seldom.groupBy(*_WHO)
        .agg(
            F.sum("names").alias("names"),
            F.sum("events").alias("events"),
            F.min("example").alias("example"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
        )
        .where(F.col("names") >= _NAMES_OF_A_SCAN)
    )
    for row in _first(rows):
        what = f"{counted(row['names'], 'name')}, {how_often(min_events)}, such as {row['example']}"
        yield _suspect(row, SCAN, what)


def how_often(min_events: int) -> str:
    """Return in words how often each grouped name was denied."""
    return "each once" if min_events == 2 else f"each less than {min_events:,} times"


def _on_the_cluster(denied: DataFrame) -> Iterator[Suspect]:
    is_administrative = F.col("operation").isin([each.name for each in _ADMINISTRATIVE])
    rows = (
        denied.where(F.col("resource_type") == ResourceType.CLUSTER.name)
        .where(is_administrative & (F.col("events") > 0))
        .groupBy(*_WHO)
        .agg(
            F.sort_array(F.collect_set("operation")).alias("operations"),
            F.sum("events").alias("events"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
        )
        .where(F.size(F.col("operations")) >= _OPERATIONS)
    )
    for row in _first(rows):
        yield _suspect(row, CLUSTER, f"{', '.join(row['operations'])} on the cluster")


def _new_hosts(inputs: Inputs) -> Iterator[Suspect]:
    """Yield principals that were denied from a new host, and allowed from other hosts alone.

    A host is new if its first event is on a later day than the principal's first allowed event.
    """
    allowed = F.when(F.col("allowed"), F.col("events")).otherwise(0)
    hosts = (
        inputs.usage.part(quiet=False)
        .by(*_WHO, "host", "allowed")
        .groupBy(*_WHO, "host")
        .agg(
            F.sum(allowed).alias("allowed_events"),
            F.sum("events").alias("events"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
        )
    )
    known = (
        hosts.where(F.col("allowed_events") > 0)
        .groupBy(*_WHO)
        .agg(F.count("*").alias("hosts"), F.min("first_seen").alias("since"))
        .where(F.col("hosts") <= _MOST_HOSTS)
    )
    rows = (
        hosts.where(F.col("allowed_events") == 0)
        .join(known, list(_WHO))
        .where(F.to_date("first_seen") > F.to_date("since"))
        .groupBy(*_WHO)
        .agg(
            F.count("*").alias("new_hosts"),
            F.min("host").alias("host"),
            F.sum("events").alias("events"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
        )
    )
    for row in _first(rows):
        more = f" and {counted(row['new_hosts'] - 1, 'other host')}" if row["new_hosts"] > 1 else ""
        what = f"from {row['host']}{more}, where it had not come from before and is allowed nothing"
        yield _suspect(row, NEW_HOST, what)


def _spikes(inputs: Inputs) -> Iterator[Suspect]:
    rule = SpikeRule()
    daily = (
        inputs.usage.part(quiet=False)
        .by(*_WHO, "day", "allowed")
        .groupBy(*_WHO, "day")
        .agg(
            F.sum(F.when(F.col("allowed"), 0).otherwise(F.col("events"))).alias("denied"),
            F.min(F.when(~F.col("allowed"), F.col("first_seen"))).alias("first_seen"),
            F.max(F.when(~F.col("allowed"), F.col("last_seen"))).alias("last_seen"),
        )
    )
    high = daily.where(F.col("denied") >= rule.minimum).select(*_WHO)
    rows = daily.join(high, list(_WHO), "left_semi").orderBy(*_WHO, "day").collect()
    by_principal: dict[tuple[str, str], dict[date, Mapping[str, Any]]] = {}
    for row in rows:
        by_principal.setdefault((row["cluster"], row["principal"]), {})[row["day"]] = row
    for (cluster, principal), of_days in by_principal.items():
        days = [day for day in inputs.window.days if day >= min(of_days)]
        numbers = [of_days[day]["denied"] if day in of_days else 0 for day in days]
        for spike in spikes(numbers, 1, rule):
            row = of_days[days[spike.day]]
            what = (
                f"{counted(spike.count, 'event')} on {days[spike.day]}, where "
                f"{spike.usual:,.0f} are usual"
            )
            times = row["first_seen"], row["last_seen"]
            yield Suspect(cluster, principal, SPIKE, what, spike.count, *times)


def _first(rows: DataFrame) -> Sequence[Any]:
    found: Sequence[Any] = rows.orderBy(F.desc("events"), *_WHO).limit(_MOST).collect()
    return found


def _suspect(row: Any, kind: str, what: str) -> Suspect:
    times = row["first_seen"], row["last_seen"]
    return Suspect(row["cluster"], row["principal"], kind, what, row["events"], *times)
