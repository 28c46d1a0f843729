"""Figures of the running broker for Prometheus, counted in the event loop."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from prometheus_client import Metric

Labels = tuple[str, ...]


class _Declared(NamedTuple):
    help: str
    labels: Labels
    is_gauge: bool = False


_DECLARED: Final[Mapping[str, _Declared]] = {
    "aclbroker_authentications": _Declared(
        "Authentications by outcome: succeeded, renewed (KIP-368) or failed.",
        ("listener", "mechanism", "outcome"),
    ),
    "aclbroker_connections": _Declared("Connections that are open.", ("listener",), is_gauge=True),
    "aclbroker_expired_sessions": _Declared(
        "Connections closed because their session ended and was not renewed.", ("listener",)
    ),
    "aclbroker_left_out_audit_records": _Declared(
        "Audit records left out, since there were more than aclbroker.audit.max.bytes.per.second "
        "allows or more kinds than are kept: of denied and allowed decisions, of failed changes.",
        ("kind",),
    ),
    "aclbroker_left_out_log_lines": _Declared(
        "Lines of the log left out, since clients caused too many of their kind.", ()
    ),
    "aclbroker_forwarded_requests": _Declared(
        "Requests that a gateway has forwarded: relayed ones as their original bytes without being "
        "decoded, and decoded ones.",
        ("way",),
    ),
    "aclbroker_held_bytes": _Declared(
        "Bytes of large requests and answers that are held in memory: of principals, and of "
        "strangers, who have not authenticated.",
        ("of",),
        is_gauge=True,
    ),
    "aclbroker_lost_audit_records": _Declared(
        "Audit records that were lost, since aclbroker.audit.file could not be written.", ()
    ),
    "aclbroker_lost_log_lines": _Declared(
        "Lines of the log on stderr that were lost: nobody read them, or the disk was full.", ()
    ),
    "aclbroker_principals_in_turns": _Declared(
        "Principals whose requests get turns (at_work), or wait until those of others are done.",
        ("state",),
        is_gauge=True,
    ),
    "aclbroker_requests_in_turns": _Declared(
        "Requests that were not answered in their first turn and are not answered yet.",
        (),
        is_gauge=True,
    ),
    "aclbroker_store_silent_seconds": _Declared(
        "Seconds since anything was heard of a store that others share.", ("store",), is_gauge=True
    ),
    "aclbroker_store_stale": _Declared(
        "1 while nothing has been heard of a store for aclbroker.store.max.lag.ms, else 0.",
        ("store",),
        is_gauge=True,
    ),
    "aclbroker_store_unread_messages": _Declared(
        "Messages of a store's topic that Kafka has told of and decisions do not know yet.",
        ("store",),
        is_gauge=True,
    ),
}

_THE_SAME: Final = (
    "aclbroker_store_silent_seconds",
    "aclbroker_store_stale",
    "aclbroker_store_unread_messages",
)
"""What is not added up over processes: all have the same store, and the worst of them counts."""

_SECONDS: Final[Mapping[str, str]] = {
    "aclbroker_event_loop_lag_seconds": "How late the event loop came to what was due, 20 times a "
    "second, or how long a single request held it up.",
    "aclbroker_turn_seconds": "How long a request that was not answered in its first turn worked "
    "in each later one.",
}
_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)


class Figures(NamedTuple):
    """What is counted at a moment, of one process or of several together.

    ``values`` are by name and labels, ``observed`` how often each of `_BUCKETS` was seen, and
    ``sums`` the seconds of all that was observed, by name.
    """

    values: dict[tuple[str, Labels], float]
    observed: dict[str, list[int]]
    sums: dict[str, float]

    def add(self, other: Figures) -> None:
        """Add what another process has counted."""
        for key, value in other.values.items():
            before = self.values.get(key, 0)
            self.values[key] = max(before, value) if key[0] in _THE_SAME else before + value
        for name, counts in other.observed.items():
            own = self.observed[name]
            self.observed[name] = [a + b for a, b in zip(own, counts, strict=True)]
        for name, seconds in other.sums.items():
            self.sums[name] += seconds

    def without_gauges(self) -> Figures:
        """Return what stays counted when the process has ended."""
        staying = {
            key: value for key, value in self.values.items() if not _DECLARED[key[0]].is_gauge
        }
        return self._replace(values=staying)

    def to_json(self) -> list[Any]:
        """Return them as what JSON can hold."""
        values = [[name, labels, value] for (name, labels), value in self.values.items()]
        return [values, self.observed, self.sums]

    @classmethod
    def of_json(cls, told: Sequence[Any]) -> Figures:
        """Return what `to_json` has made JSON of."""
        values, observed, sums = told
        return cls(
            {(name, tuple(labels)): value for name, labels, value in values},
            observed,
            sums,
        )


class Metrics:
    """Figures by name and labels."""

    def __init__(self) -> None:
        self._observed = {name: [0] * len(_BUCKETS) for name in _SECONDS}
        self._sums = dict.fromkeys(_SECONDS, 0.0)
        self._values: Counter[tuple[str, Labels]] = Counter()
        self._sources: dict[tuple[str, Labels], Callable[[], float]] = {}
        self._others: Callable[[], Iterable[Figures]] = tuple

    def add(self, name: str, *labels: str, amount: int = 1) -> None:
        """Add to a figure; the labels are in the order of its declaration."""
        self._values[name, labels] += amount

    def observe(self, name: str, seconds: float) -> None:
        """Add a time to a figure that tells how often which times are seen."""
        self._observed[name][bisect_left(_BUCKETS, seconds)] += 1
        self._sums[name] += seconds

    def read(self, name: str, source: Callable[[], float], *labels: str) -> None:
        """Have a figure read where it is counted, by a function that a thread may call."""
        self._sources[name, labels] = source

    def include(self, others: Callable[[], Iterable[Figures]]) -> None:
        """Add to what is collected what a function returns that a thread may call."""
        self._others = others

    def figures(self) -> Figures:
        """Return what is counted here, without what others have; may be called in a thread."""
        values: dict[tuple[str, Labels], float] = dict(self._values.copy())
        for key, source in self._sources.copy().items():
            values[key] = values.get(key, 0) + source()
        observed = {name: list(counts) for name, counts in self._observed.items()}
        return Figures(values, observed, dict(self._sums))

    def collect(self) -> Iterator[Metric]:
        """Return the figures as prometheus_client has them; may be called in a thread."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        figures = self.figures()
        for other in self._others():
            figures.add(other)
        for name, declared in _DECLARED.items():
            family = GaugeMetricFamily if declared.is_gauge else CounterMetricFamily
            metric = family(name, declared.help, labels=declared.labels)
            for labels, value in _of(figures.values, name):
                metric.add_metric(labels, value)
            yield metric
        for name, text in _SECONDS.items():
            bounds = ("+Inf" if bound == math.inf else str(bound) for bound in _BUCKETS)
            counts = accumulate(figures.observed[name])
            buckets = list(zip(bounds, counts, strict=True))
            yield HistogramMetricFamily(name, text, buckets, figures.sums[name])


def _of(values: Mapping[tuple[str, Labels], float], name: str) -> Iterable[tuple[Labels, float]]:
    return ((labels, value) for (each, labels), value in values.items() if each == name)
