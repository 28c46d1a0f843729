"""The rows of the benchmark: their work, the figures that are made of it, and the targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from benchmarks.gateway.stage import DIRECT, GATEWAY, PROXY, Stage

BASIC: Final = (DIRECT, PROXY, GATEWAY)


class Sample(NamedTuple):
    """The measurement of one side in one round.

    ``load`` is the load average just before it, ``others`` the cores that other programs used.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    answers: int = 0
    bytes: int = 0
    p50_us: float = 0.0
    p99_us: float = 0.0
    mb_per_second: float = 0.0
    kib_per_connection: float = 0.0
    resident_mib: float = 0.0
    load: float = 0.0
    others: float = 0.0


@dataclass(frozen=True)
class Measure:
    """A figure of a sample, with its name and its unit."""

    title: str
    unit: str
    of: Callable[[Sample], float]


CPU_REQUEST = Measure("CPU per request", "µs", lambda one: one.cpu_seconds / one.answers * 1e6)
CPU_GB = Measure("CPU per GB", "s", lambda one: one.cpu_seconds / one.bytes * 1e9)
REQUESTS = Measure("requests", "/s", lambda one: one.answers / one.seconds)
MEGABYTES = Measure("throughput", "MB/s", lambda one: one.mb_per_second)
P50 = Measure("p50", "µs", lambda one: one.p50_us)
P99 = Measure("p99", "µs", lambda one: one.p99_us)
MEMORY = Measure("memory per connection", "KiB", lambda one: one.kib_per_connection)
RESIDENT = Measure("resident memory", "MiB", lambda one: one.resident_mib)


class Kind(Enum):
    """How two sides are compared."""

    ALONE = "alone"
    RATIO = "ratio"
    ADDED = "added"


@dataclass(frozen=True)
class Comparison:
    """A line of the result: a measure of a side, beside that of another side in the same round.

    ``target`` limits the side's own figure if the kind is ALONE, otherwise the ratio or the
    difference. It is the least that is wanted if ``at_least``, otherwise the most.
    """

    measure: Measure
    beside: str = ""
    kind: Kind = Kind.ALONE
    target: float | None = None
    at_least: bool = False
    side: str = GATEWAY

    @property
    def counts_only_when_quiet(self) -> bool:
        """Whether other work on the machine makes the comparison meaningless."""
        return self.beside == DIRECT

    def reached(self, figure: float) -> bool | None:
        """Return whether a figure reaches the target, None without a target."""
        if self.target is None:
            return None
        return figure >= self.target if self.at_least else figure <= self.target


class Work(Protocol):
    """The work of a row: it is done once a round on each side."""

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Do the work, and return its measurement."""


@dataclass(frozen=True)
class Row:
    """A row: its key, its title, its work, and the lines that it has in the result."""

    key: str
    title: str
    work: Work
    lines: tuple[Comparison, ...]
    sides: tuple[str, ...] = BASIC
    note: str = ""


def busy(
    measure: Measure = CPU_REQUEST,
    rate: Measure = REQUESTS,
    *,
    cpu: float | None = None,
    ratio: float | None = None,
    throughput: float | None = None,
    latency: bool = True,
) -> tuple[Comparison, ...]:
    """Return the lines of a row under full load, with targets of the gateway.

    ``cpu`` limits its CPU time, and ``ratio`` that beside the C proxy. ``throughput`` is the least
    share of a direct connection's throughput.
    """
    lines = [Comparison(measure, PROXY, Kind.RATIO, ratio)]
    if cpu is not None:
        lines.append(Comparison(measure, target=cpu))
    lines.append(Comparison(rate, DIRECT, Kind.RATIO, throughput, at_least=True))
    lines.append(Comparison(rate, DIRECT, Kind.RATIO, side=PROXY))
    if latency:
        lines += [Comparison(each, DIRECT, Kind.ADDED) for each in (P50, P99)]
    return tuple(lines)
