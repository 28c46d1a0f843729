"""Does the work of a run: the sides in turn, round after round."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.results import Results
from benchmarks.rows import SIDES, Row, Side, Work


@dataclass(frozen=True)
class Options:
    """What a run measures.

    ``only`` are beginnings of rows' keys, empty for all. ``quick`` leaves out the large sizes.
    ``peers`` are the sides beside this product.
    """

    rounds: int
    quick: bool = False
    only: tuple[str, ...] = ()
    peers: tuple[str, ...] = SIDES[1:]

    def wants(self, *rows: Row) -> bool:
        """Tell whether any of the rows is to be measured."""
        return not self.only or any(row.key.startswith(self.only) for row in rows)


def play(works: Iterable[Work[Side]], sides: Mapping[str, Side], results: Results) -> None:
    """Do each work once, on the sides that take part, one after the other."""
    for work in works:
        for name, side in sides.items():
            if name in work.sides:
                results.add(work.rows, name, work.run(side))


def tell(works: Iterable[Work[Side]], results: Results) -> None:
    """Tell whoever waits for the run the medians of what is done."""
    for work in works:
        for row in work.rows:
            figures = results.figures.get(row.key)
            if figures is not None:
                medians = (f"{side} {figures.median(side):.4g}" for side in figures.rounds)
                progress(f"{row.key}: {', '.join(medians)} {row.unit}")


def progress(text: str) -> None:
    """Tell whoever waits for the run how far it is."""
    print(text, file=sys.stderr, flush=True)
