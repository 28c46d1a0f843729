"""Turn the hours of a log into its coverage, and the coverage into sentences and table rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa

from aclbroker.pipeline.analysis.coverage import BrokerCoverage, Coverage, LoggedHour, Stretch
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Table
from aclbroker.pipeline.interface.wording import in_short
from aclbroker.pipeline.spark.frames import frame_of
from aclbroker.pipeline.usage.hours import start_of

_TABLE: Final = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("broker", pa.string()),
        *(pa.field(name, pa.int64()) for name in ("hours", "silent_hours", "days", "silent_days")),
        pa.field("first_allowed", pa.timestamp("us", tz="UTC")),
        pa.field("last_allowed", pa.timestamp("us", tz="UTC")),
    ]
)
_COLUMNS: Final = (
    *("Broker", "Hours", "Silent hours", "Days", "Silent days"),
    *("First allowed event (UTC)", "Last allowed event (UTC)"),
)
_MOST_STRETCHES: Final = 3
_MOST_BROKERS: Final = 3
_UNKNOWN: Final = "(not told)"

SET_LEVEL: Final = (
    "Set the level of Kafka's kafka.authorizer.logger to DEBUG on every broker, or "
    "aclbroker.audit.level=all here, and try again when the log covers all regular work"
)

Days = Mapping[tuple[str, date], tuple[int, int]]
"""The numbers of allowed and of denied events, by cluster and day."""


def logged_hours(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, LoggedHour]]:
    """Yield the cluster and the hour of each row.

    The column ``hour`` holds a time, or the number of hours since 1970.
    """
    for row in rows:
        hour = row["hour"]
        start = start_of(hour) if isinstance(hour, int) else hour.astimezone(UTC)
        times = (row[name].astimezone(UTC) for name in ("first_seen", "last_seen"))
        yield (
            row["cluster"],
            LoggedHour(row["broker"], start, row["allowed"], row["events"], *times),
        )


def whole_days(
    days: Days, hours: Iterable[tuple[str, LoggedHour]]
) -> Iterator[tuple[str, LoggedHour]]:
    """Yield one hour for each day with events that ``hours`` lack. The hour stands for the day.

    A day may have only some of its events in hours, because another directory of tables, or an
    earlier batch, is of an older version. These events stand for a broker of their own.
    """
    known: Counter[tuple[str, date, bool]] = Counter()
    unnamed = set()
    for cluster, each in hours:
        known[cluster, each.start.date(), each.allowed] += each.events
        if each.broker is None:
            unnamed.add(cluster)
    for (cluster, day), counts in days.items():
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        broker = "" if cluster in unnamed else None
        for events, allowed in zip(counts, (True, False), strict=True):
            rest = events - known[cluster, day, allowed]
            if rest > 0:
                yield cluster, LoggedHour(broker, start, allowed, rest, start, start, is_day=True)


def too_little(inputs: Inputs, clusters: Iterable[str], least: float) -> dict[str, str]:
    """Return the clusters whose log has too few hours with allowed events, and why.

    ``least`` is the percentage of hours that must have some. Clusters of unknown coverage are
    skipped.
    """
    found = {}
    for cluster in clusters:
        coverage = inputs.coverage.get(cluster)
        if coverage is not None and not coverage.reaches(least):
            found[cluster] = (
                f"{_short(coverage)}, and --min-coverage asks for {least:g} of 100. An ACL that "
                f"was used at another time, or at another broker, looks unused. {SET_LEVEL}"
            )
    return found


def _short(coverage: Coverage) -> str:
    """Return the number of hours with allowed events, and their times, as a part of a sentence."""
    if not any(broker.stretches for broker in coverage.brokers):
        return "no allowed event is in its log"
    unit = "day" if coverage.is_by_day else "hour"
    units = f"{coverage.hours:,} {unit}{'' if coverage.hours == 1 else 's'}"
    brokers = coverage.brokers
    of = f" of {len(brokers):,} brokers" if len(brokers) > 1 else ""
    found = f"only {coverage.covered:,} of {units} in its log{of} have allowed events"
    silent = [each.broker or _UNKNOWN for each in brokers if not each.stretches]
    if silent:
        found += f"; none are of {in_short(silent, _MOST_BROKERS)}"
    return f"{found}; they are of {spans(coverage)}"


def spans(coverage: Coverage) -> str:
    """Return the stretches of time with allowed events, as a part of a sentence."""
    by_span = {
        _span(stretch, coverage.is_by_day): stretch
        for broker in coverage.brokers
        for stretch in broker.stretches
    }
    in_order = sorted(by_span, key=lambda text: by_span[text])
    return in_short(in_order, _MOST_STRETCHES) if in_order else "no time"


def _span(stretch: Stretch, is_by_day: bool) -> str:
    first, last = stretch
    if is_by_day:
        return str(first.date()) if first == last else f"{first.date()} to {last.date()}"
    seconds = int((last - first).total_seconds()) + 1
    end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{first:%Y-%m-%d %H:%M:%S} to {end} UTC ({_lasting(seconds)})"


def _lasting(seconds: int) -> str:
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}s"
    return f"{seconds:,} second{'' if seconds == 1 else 's'}"


def coverage_warnings(inputs: Inputs, clusters: Iterable[str], consequence: str) -> list[str]:
    """Return a warning about the clusters whose log has silent hours.

    ``consequence`` is a sentence that says how these hours affect the answer.
    """
    silent = {
        cluster: coverage
        for cluster in sorted(clusters)
        if (coverage := inputs.coverage.get(cluster)) is not None and not coverage.reaches(100)
    }
    if not silent:
        return []
    first = min(silent, key=lambda cluster: silent[cluster].percent)
    others = len(silent) - 1
    more = f" (likewise {others:,} other cluster{'' if others == 1 else 's'})" if others else ""
    return [f"Cluster {first}: {_short(silent[first])}{more}. {consequence}"]


def judged_by(inputs: Inputs, clusters: Iterable[str]) -> str:
    """Return a sentence with the times for which allowed events show the use."""
    found = [inputs.coverage[each] for each in sorted(clusters) if each in inputs.coverage]
    if not found:
        return ""
    every = Coverage(
        [broker for each in found for broker in each.brokers], all(each.is_by_day for each in found)
    )
    silent = every.hours - every.covered
    if not silent:
        stretches = [stretch for broker in every.brokers for stretch in broker.stretches]
        whole = Stretch(min(each.first for each in stretches), max(each.last for each in stretches))
        return f" Use is known from {_span(whole, every.is_by_day)}."
    unit = "day" if every.is_by_day else "hour"
    return (
        f" Use is known from {spans(every)} alone: {silent:,} of {every.hours:,} {unit}s in the "
        "log have no allowed event."
    )


def coverage_table(inputs: Inputs, clusters: Sequence[str], source: str) -> list[Table]:
    """Return a report's table of the stretches with allowed events, by broker."""
    rows = _rows(inputs, clusters)
    if not rows:
        return []
    several = len(clusters) > 1
    shown: list[Sequence[Cell]] = [
        (
            *((cluster,) if several else ()),
            broker or _UNKNOWN,
            *counts,
            *(None if each is None else f"{each:%Y-%m-%d %H:%M:%S}" for each in (first, last)),
        )
        for cluster, broker, *counts, first, last in rows
    ]
    note = (
        "One row for each stretch without silent hours. An hour is silent if its events are "
        "denials alone; a few amid allowed events are left out of account."
    )
    columns = (*(("Cluster",) if several else ()), *_COLUMNS)
    return [
        Table("Allowed events that tell what was used", columns, shown, len(rows), note, source)
    ]


def write_coverage(inputs: Inputs, clusters: Iterable[str], name: str) -> dict[str, str]:
    """Write the stretches with allowed events as a table.

    Return its name with a description; an empty dict if no cluster's coverage is known.
    """
    rows = _rows(inputs, clusters)
    if not rows:
        return {}
    inputs.output.table(name, frame_of(inputs.spark, _TABLE, rows))
    return {name: "which hours of each broker's log have allowed events (Parquet)"}


def _rows(inputs: Inputs, clusters: Iterable[str]) -> list[tuple[Any, ...]]:
    return [
        (cluster, each.broker, *_counts(each), *times)
        for cluster in sorted(clusters)
        if cluster in inputs.coverage
        for each in inputs.coverage[cluster].brokers
        for times in (each.stretches or ((None, None),))
    ]


def _counts(broker: BrokerCoverage) -> tuple[int, int, int, int]:
    return broker.hours, broker.silent, broker.days, len(broker.silent_days)
