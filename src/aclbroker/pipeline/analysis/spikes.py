"""Days on which somebody does far more of something than on the days before.

The rule is robust: the usual number is the median of the days before, and how far days lie from it
is the median absolute deviation (MAD). Neither is moved by a few odd days, as a mean and a standard
deviation are, so a second odd day is still seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median


@dataclass(frozen=True, slots=True)
class SpikeRule:
    """A day is a spike if its number is at least ``minimum``, and above the limit.

    The limit is ``median + factor * spread``, over all days before. The spread is the MAD, but at
    least 1 and at least the square root of the median, which is how far independent events scatter:
    the MAD of a few days may be far less by chance, and is 0 if most of them are the same.
    """

    minimum: int = 10
    factor: float = 6.0

    def __post_init__(self) -> None:
        if self.minimum < 1:
            raise ValueError(f"the minimum of a spike must be at least 1, not {self.minimum}")
        if not self.factor > 0:
            raise ValueError(f"the factor of a spike must be above 0, not {self.factor}")

    def limit(self, days_before: Sequence[int]) -> tuple[float, float]:
        """Return the median of the days before, and the number that a spike is above."""
        usual = median(days_before)
        deviation = median(abs(count - usual) for count in days_before)
        return usual, usual + self.factor * max(deviation, sqrt(usual), 1)


@dataclass(frozen=True, slots=True)
class Spike:
    """A day, as its position, with its number, the usual number, and the limit that it is above."""

    day: int
    count: int
    usual: float
    limit: float


def spikes(counts: Sequence[int], first: int, rule: SpikeRule) -> list[Spike]:
    """Return the spikes among the numbers of consecutive days, from position ``first`` on.

    Days without anything must be there, as 0. ``first`` must be at least 1, since a day is
    compared with those before it.
    """
    found = []
    for day in range(first, len(counts)):
        # The minimum first: nearly all days end here, and a limit costs two sorts.
        if counts[day] >= rule.minimum:
            usual, limit = rule.limit(counts[:day])
            if counts[day] > limit:
                found.append(Spike(day, counts[day], usual, limit))
    return found
