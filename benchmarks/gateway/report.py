"""Shows the samples of a run: as a table for the terminal, and as the page GATEWAY.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.gateway.rows import Comparison, Kind, Row, Sample
from benchmarks.report import number

MOST_LOAD: Final = 3.0
"""The load average above which a comparison with a direct connection does not count."""

Samples = Mapping[str, Sequence[Sample]]
"""The samples of a row by their side, one for each round."""

_HEADER: Final = ("", "figure", "of", "", "beside", "", "compared", "target", "", "load", "others")
_INTRODUCTION: Final = """\
# The gateway

Written by `{command}`.

A client sends requests to the same Kafka 4.3.0 in three ways. It connects directly, through a proxy
in C that only copies bytes (`benchmarks/gateway/proxy.c`), or through the gateway: one process with
ACLs. All run on one machine. Each round measures all ways, every second round in the opposite
order. A figure is the median of the rounds, with the lowest and the highest in parentheses. A
comparison is made within each round: a ratio (x) or a difference (more).

CPU is the user and system time of the proxy's or the gateway's process alone. Bytes are those of
requests and answers. The load is the average of the minute before, and the benchmark itself adds to
it. Above {most_load:g} a comparison with a direct connection does not count, because other programs
may have used the cores. The last column has the most cores that other programs used in any round.
"""


@dataclass(frozen=True)
class Line:
    """A line of the table: a comparison, and the figures of its rounds."""

    comparison: Comparison
    own: Sequence[float]
    others: Sequence[float]
    loads: Sequence[float]
    cores: Sequence[float]
    """How many cores other programs used."""

    @property
    def compared(self) -> list[float]:
        """The ratio or the difference of each round; the side's own figures if it is alone."""
        if self.comparison.kind is Kind.ALONE:
            return list(self.own)
        pairs = zip(self.own, self.others, strict=True)
        if self.comparison.kind is Kind.ADDED:
            return [own - other for own, other in pairs]
        return [own / other for own, other in pairs if other]

    @property
    def verdict(self) -> str:
        """Whether the target is reached, or that the comparison does not count."""
        if self.comparison.counts_only_when_quiet and statistics.median(self.loads) > MOST_LOAD:
            return "does not count"
        compared = self.compared
        reached = self.comparison.reached(statistics.median(compared)) if compared else None
        return {True: "reached", False: "missed", None: ""}[reached]

    def cells(self, title: str) -> tuple[str, ...]:
        """Return the cells of the table's line."""
        comparison, unit = self.comparison, f" {self.comparison.measure.unit}"
        alone = comparison.kind is Kind.ALONE
        unit_compared = "x" if comparison.kind is Kind.RATIO else unit
        sign = ">=" if comparison.at_least else "<="
        target = "" if comparison.target is None else f"{sign} {comparison.target:g}{unit_compared}"
        return (
            title,
            comparison.measure.title,
            comparison.side,
            _spread(self.own, unit),
            comparison.beside,
            _spread(self.others, unit) if self.others else "",
            ""
            if alone
            else _spread(self.compared, unit_compared)
            + ("" if comparison.kind is Kind.RATIO else " more"),
            target,
            self.verdict,
            _spread(self.loads, ""),
            f"{max(self.cores):.1f}",
        )


def lines_of(row: Row, samples: Samples) -> Iterator[Line]:
    """Yield the lines of a row that was measured."""
    for comparison in row.lines:
        own = samples[comparison.side]
        others = samples[comparison.beside] if comparison.beside else []
        loads = [sample.load for sample in (*own, *others)]
        cores = [sample.others for sample in (*own, *others)]
        of = comparison.measure.of
        yield Line(comparison, list(map(of, own)), list(map(of, others)), loads, cores)


def _spread(values: Sequence[float], unit: str) -> str:
    """Return the median with the lowest and the highest value."""
    if not values:
        return "-"
    middle, low, high = statistics.median(values), min(values), max(values)
    text = f"{_number(middle)}{unit}"
    return text if len(values) == 1 else f"{text} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    return f"-{number(-value)}" if value < 0 else number(value)


def table(rows: Sequence[Row], samples: Mapping[str, Samples]) -> list[tuple[str, ...]]:
    """Return the lines of all rows that were measured; a row's title stands in its first line."""
    made = []
    for row in rows:
        if row.key in samples:
            titles = [row.title]
            for line in lines_of(row, samples[row.key]):
                made.append(line.cells(titles.pop() if titles else ""))
    return made


def text(rows: Sequence[Row], samples: Mapping[str, Samples]) -> str:
    """Return the table for a terminal."""
    lines = [_HEADER, *table(rows, samples)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (map(str.ljust, line, widths) for line in lines)
    return "".join("  ".join(cells).rstrip() + "\n" for cells in padded)


def page(run: Mapping[str, str], rows: Sequence[Row], samples: Mapping[str, Samples]) -> str:
    """Return the page GATEWAY.md."""
    rule = ["---", "---", "---", "---:", "---", "---:", "---:", "---:", "---", "---:", "---:"]
    lines = [_HEADER, rule, *table(rows, samples)]
    body = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    about = "".join(f"- {name}: {value}\n" for name, value in run.items())
    notes = "".join(f"- {row.title}: {row.note}\n" for row in rows if row.note)
    introduction = _INTRODUCTION.format(command=run["command"], most_load=MOST_LOAD)
    return f"{introduction}\n{about}\n{body}" + (f"\n{notes}" if notes else "")
