"""What is compared: the rows of the result, and the work whose rounds give their figures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

OURS, KAFKA, KFAKE = "aclbroker", "kafka", "kfake"
SIDES = (OURS, KAFKA, KFAKE)
"""This product and its peers, by the names that results have them under."""

RATE, MEGABYTES = "/s", "MB/s"
"""The units of rows where more is better; in all others less is."""
SHARE = "%"
"""The unit of rows that compare nothing, and have no ratio."""

Side = TypeVar("Side")


@dataclass(frozen=True)
class Row:
    """One line of the result.

    ``acls`` is how many ACLs there are meanwhile, None where that plays no part. ``target`` is what
    this product is to reach, in the row's unit. ``note`` says what a reader must know to compare
    the sides, such as what a peer leaves out. A row that is ``beside`` another, by its key, has no
    line of its own but a place in the other's, in a column with this row's title.
    """

    name: str
    section: str
    title: str
    unit: str
    acls: int | None = None
    target: float | None = None
    note: str = ""
    beside: str = ""

    @property
    def key(self) -> str:
        """The row's name and its number of ACLs, as in ``describe-all-10k``."""
        if self.acls is None:
            return self.name
        if self.acls < 1_000:
            return f"{self.name}-{self.acls}"
        if self.acls < 1_000_000:
            return f"{self.name}-{self.acls // 1_000}k"
        return f"{self.name}-{self.acls // 1_000_000}m"

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit in (RATE, MEGABYTES)

    def advantage(self, ours: float, peer: float) -> float:
        """Return how many times as good as the peer's figure ours is."""
        return ours / peer if self.is_rate else peer / ours

    def reached(self, ours: float) -> bool | None:
        """Tell whether a figure of ours reaches the target; None if there is no target."""
        if self.target is None:
            return None
        return ours >= self.target if self.is_rate else ours <= self.target


@dataclass(frozen=True)
class Work(Generic[Side]):
    """What each side does once a round; it gives one figure for each of the rows.

    ``sides`` are those that take part; ``rounds`` replaces the number of rounds of the run.
    """

    rows: tuple[Row, ...]
    run: Callable[[Side], Sequence[float]]
    sides: Collection[str] = SIDES
    rounds: int | None = None


def one(row: Row, run: Callable[[Any], float], **options: Any) -> Work[Any]:
    """Return work that gives the figure of a single row."""
    return Work((row,), lambda side: (run(side),), **options)
