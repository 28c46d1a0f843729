"""The figures of a run: what was measured, side by side and round by round, and where."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.rows import OURS, SHARE, Row


@dataclass
class Figures:
    """The figures of one row: for each side one a round, in the order of the rounds."""

    row: Row
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, side: str) -> float | None:
        """Return a side's median; None if it was not measured."""
        return statistics.median(self.rounds[side]) if self.rounds.get(side) else None

    def advantages(self, peer: str) -> list[float]:
        """Return how many times as good as the peer this product was in each round, sorted.

        Rounds of which one side has no figure are left out.
        """
        if self.row.unit == SHARE:
            return []
        pairs = zip(self.rounds.get(OURS, []), self.rounds.get(peer, []), strict=False)
        return sorted(self.row.advantage(ours, theirs) for ours, theirs in pairs)

    @property
    def reached(self) -> bool | None:
        """Whether this product's median reaches the target; None without either."""
        ours = self.median(OURS)
        return None if ours is None else self.row.reached(ours)


class Results:
    """All figures of a run by their row's key, and what is to know about the run itself."""

    def __init__(self, run: dict[str, str]) -> None:
        self.run = run
        self.figures: dict[str, Figures] = {}
        self.later: dict[str, dict[str, str]] = {}
        """By section: the run that measured it, where that was another one."""

    def take(self, other: Results) -> None:
        """Take the sections that another run has measured, in place of what is known of them."""
        sections = {figures.row.section for figures in other.figures.values()}
        kept = self.figures.items()
        self.figures = {key: each for key, each in kept if each.row.section not in sections}
        self.figures |= other.figures
        self.later |= dict.fromkeys(sections, other.run)

    def add(self, rows: Iterable[Row], side: str, values: Iterable[float]) -> None:
        """Take a side's figures of one round, one for each row."""
        for row, value in zip(rows, values, strict=True):
            figures = self.figures.setdefault(row.key, Figures(row))
            figures.rounds.setdefault(side, []).append(value)

    def save(self, path: Path) -> None:
        """Write the results as JSON, rounded to what a reader can use."""
        rows = [
            {
                **asdict(figures.row),
                "rounds": {
                    side: [float(f"{value:.5g}") for value in values]
                    for side, values in figures.rounds.items()
                },
            }
            for figures in self.figures.values()
        ]
        saved = {"run": self.run, "later": self.later, "rows": rows}
        path.write_text(json.dumps(saved, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` has written."""
        saved = json.loads(path.read_text())
        results = cls(saved["run"])
        results.later = saved.get("later", {})
        for entry in saved["rows"]:
            rounds = entry.pop("rounds")
            row = Row(**entry)
            results.figures[row.key] = Figures(row, rounds)
        return results
