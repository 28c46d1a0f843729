"""The days of a log: those that have events, and those whose events stand apart from all others.

A broker whose clock was wrong for a moment dates an event years ahead, or back. Such a day says
nothing about when a log begins or ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple

LONG_GAP: Final = 31
"""More days than these without any event are a gap between parts of a log."""

_FEW: Final = 0.01
"""A part of a log stands apart if it has a smaller share of the events than this."""


class Days(NamedTuple):
    """The days with events, in order: ``usual`` ones, and ``outliers``, which stand apart."""

    usual: list[date]
    outliers: list[date]


def parted(events: Mapping[date, int]) -> Days:
    """Part the days of a log, by its numbers of events.

    Days stand apart if a long gap lies between them and the rest, and few events are on them. The
    part with the most events never does.
    """
    parts = _parts(sorted(day for day, count in events.items() if count))
    counts = [sum(events[day] for day in part) for part in parts]
    least = _FEW * sum(counts)
    days = Days([], [])
    for part, count in zip(parts, counts, strict=True):
        (days.usual if count >= least or count == max(counts) else days.outliers).extend(part)
    return days


def calendar(days: Collection[date]) -> list[date]:
    """Return all days between those given, in order, but those of long gaps."""
    return [day for part in _parts(sorted(set(days))) for day in _between(part[0], part[-1])]


def _parts(days: Sequence[date]) -> list[list[date]]:
    """Part sorted days where there are long gaps."""
    parts: list[list[date]] = []
    for day in days:
        if parts and (day - parts[-1][-1]).days <= LONG_GAP + 1:
            parts[-1].append(day)
        else:
            parts.append([day])
    return parts


def _between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
