"""Finds the spikes of all principals: what `pipeline.analysis.spikes` finds for one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from aclbroker.pipeline.analysis.spikes import SpikeRule, spikes
from aclbroker.pipeline.frames import functions as F

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WHO: Final = ("cluster", "principal")
_KINDS: Final = ("administrative", "denied")


def spike_days(
    use: DataFrame, known: DataFrame, days: Sequence[date], first: int, rule: SpikeRule
) -> DataFrame:
    """Return a row for each day on which a principal had far more events of a kind than before.

    ``use``: usage with the boolean column ``administrative``. ``known``: the principals that are
    looked at, with ``since``, their first days; earlier ones are not compared with. ``days``: all
    days of the log; spikes are looked for from the position ``first`` on.

    The columns are ``cluster``, ``principal``, ``day``, ``kind`` (``administrative`` or
    ``denied``), ``events``, ``usual`` (the median of the days before) and ``limit``.
    """
    counts = {
        "administrative": F.col("administrative"),
        "denied": ~F.col("allowed"),
    }
    daily = (
        use.where(counts["administrative"] | counts["denied"])
        .groupBy(*_WHO, "day")
        .agg(
            *(
                F.sum(F.when(condition, F.col("events")).otherwise(0)).alias(kind)
                for kind, condition in counts.items()
            )
        )
    )
    # Principals that never reach the minimum need not go through Python.
    most = F.greatest(*(F.max(kind) for kind in _KINDS))
    series = (
        daily.groupBy(*_WHO)
        .agg(most.alias("most"), F.collect_list(F.struct("day", *_KINDS)).alias("series"))
        .where(F.col("most") >= rule.minimum)
        .join(known.select(*_WHO, "since"), list(_WHO))
        .select(*_WHO, "since", "series")
    )
    return series.mapInArrow(
        _Finder(days, first, rule),
        "cluster string, principal string, day date, kind string, events bigint, "
        "usual double, limit double",
    )


class _Finder:
    """Finds the spikes in batches of principals with their numbers by day."""

    def __init__(self, days: Sequence[date], first: int, rule: SpikeRule) -> None:
        self._days = days
        self._first = first
        self._rule = rule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = pa.schema(
            [
                ("cluster", pa.string()),
                ("principal", pa.string()),
                ("day", pa.date32()),
                ("kind", pa.string()),
                ("events", pa.int64()),
                ("usual", pa.float64()),
                ("limit", pa.float64()),
            ]
        )
        for batch in batches:
            rows = [found for row in batch.to_pylist() for found in self._of(row)]
            yield pa.RecordBatch.from_pylist(rows, schema)

    def _of(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        since = self._days.index(row["since"])
        for kind in _KINDS:
            counts = dict.fromkeys(self._days, 0)
            counts.update((each["day"], each[kind]) for each in row["series"])
            own = list(counts.values())[since:]
            for spike in spikes(own, self._first - since, self._rule):
                yield {
                    "cluster": row["cluster"],
                    "principal": row["principal"],
                    "day": self._days[since + spike.day],
                    "kind": kind,
                    "events": spike.count,
                    "usual": spike.usual,
                    "limit": spike.limit,
                }
