"""The days of a log: those that have events, and those whose events stand apart from all others.

A broker whose clock was wrong for a moment dates events years ahead, or back. Such a day says
nothing about when a log begins or ends. That a day has not come yet is certain, however many events
it has; of one long ago nobody can tell whether the clock was wrong or the log has a gap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Final, NamedTuple

LONG_GAP: Final = 31
"""More days than these without any event are a gap between parts of a log."""

SHORT_GAP: Final = 7
"""More days than these without any event make a day of few events doubtful."""

_FEW: Final = 0.01
"""A part of a log has few events if it has a smaller share of them than this."""


class Days(NamedTuple):
    """The days with events, in order.

    ``usual`` ones are looked at. ``future`` ones were still to come, and ``outliers`` stand apart:
    these are left out. ``doubtful`` are those of the usual ones that may be owed to a wrong clock.
    """

    usual: list[date]
    future: list[date]
    outliers: list[date]
    doubtful: list[date]


def parted(events: Mapping[date, int], today: date) -> Days:
    """Part the days of a log, by its numbers of events. ``today`` is the day of the run, in UTC.

    Days after the next one are future, unless all are: then it is the clock of the run that is
    wrong. Of the others those stand apart that lie a long gap from the rest and have few events.
    Doubtful are days that lie a long gap from the rest with more events, or a short gap with few.
    The part with the most events is none of these.
    """
    with_events = sorted(day for day, count in events.items() if count)
    # Where the zone of the log was not told, its days may be one ahead.
    future = [day for day in with_events if day > today + timedelta(days=1)]
    if len(future) == len(with_events):
        future = []
    come = {day: events[day] for day in with_events[: len(with_events) - len(future)]}
    far, near = _rest(come, LONG_GAP), _rest(come, SHORT_GAP)
    outliers = [day for day, are_few in far.items() if are_few]
    return Days(
        [day for day in come if day not in outliers],
        future,
        outliers,
        [day for day in come if day not in outliers and (day in far or near.get(day, False))],
    )


def _rest(events: Mapping[date, int], gap: int) -> dict[date, bool]:
    """Return the days that lie a gap from those with most events, and whether they have few."""
    parts = _parts(list(events), gap)
    counts = [sum(events[day] for day in part) for part in parts]
    most, least = max(counts, default=0), _FEW * sum(counts)
    return {
        day: count < least
        for part, count in zip(parts, counts, strict=True)
        if count < most
        for day in part
    }


def calendar(days: Collection[date]) -> list[date]:
    """Return all days between those given, in order, but those of long gaps."""
    parts = _parts(sorted(set(days)), LONG_GAP)
    return [day for part in parts for day in _between(part[0], part[-1])]


def _parts(days: Sequence[date], gap: int) -> list[list[date]]:
    """Part sorted days where more days than a gap has lie between them."""
    parts: list[list[date]] = []
    for day in days:
        if parts and (day - parts[-1][-1]).days <= gap + 1:
            parts[-1].append(day)
        else:
            parts.append([day])
    return parts


def _between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
