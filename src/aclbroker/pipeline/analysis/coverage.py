"""Find the hours in which each broker's log has allowed events.

An ACL that was used in other hours looks unused. Brokers log denials alone by default. So a log may
be complete for the hours in which the level was DEBUG, or for one broker of three, and lack all
other use. An hour of a broker is silent if it has denials and no allowed event, and belongs to one
of these:

- the beginning of the broker's log;
- a day without any allowed event of that broker;
- hours in a row with three denials or more.

Fewer denials between allowed events may be chance. An hour without any event does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

_LEAST: Final = 3
"""A run of at least this many denials without an allowed event is no chance."""

_LATE: Final = timedelta(minutes=5)
"""A first hour with `_LEAST` denials is silent, too, if its allowed events begin this late."""

_HOUR: Final = timedelta(hours=1)


class LoggedHour(NamedTuple):
    """The allowed, or the denied, events of a broker that began in the hour from ``start`` on.

    ``broker`` is None if the log does not name brokers. With ``is_day``, the row stands for the
    whole day that begins at ``start``, because its table has no hours.
    """

    broker: str | None
    start: datetime
    allowed: bool
    events: int
    first_seen: datetime
    last_seen: datetime
    is_day: bool = False


class Stretch(NamedTuple):
    """The times of a broker's first and last allowed event with no silent hour between them."""

    first: datetime
    last: datetime


class BrokerCoverage(NamedTuple):
    """How much of a broker's log has allowed events.

    ``hours`` counts the hours with events, and ``silent`` the silent ones among them. ``days``
    counts the days with events. ``silent_days`` are the days with at least one silent hour.
    """

    broker: str | None
    hours: int
    silent: int
    days: int
    silent_days: Sequence[date]
    stretches: Sequence[Stretch]


class Coverage(NamedTuple):
    """How much of a cluster's log has allowed events.

    With ``is_by_day``, each of its hours stands for a whole day.
    """

    brokers: Sequence[BrokerCoverage]
    is_by_day: bool

    @property
    def hours(self) -> int:
        """The number of hours with events, summed over all brokers."""
        return sum(each.hours for each in self.brokers)

    @property
    def covered(self) -> int:
        """The number of these hours that are not silent."""
        return self.hours - sum(each.silent for each in self.brokers)

    @property
    def percent(self) -> int:
        """The percentage of hours that are not silent, rounded down."""
        return self.covered * 100 // self.hours if self.hours else 0

    def reaches(self, percent: float) -> bool:
        """Tell whether at least this percentage of the hours is not silent."""
        return self.covered * 100 >= percent * self.hours


def coverages(hours: Iterable[tuple[str, LoggedHour]]) -> dict[str, Coverage]:
    """Return the coverage of each cluster. The hours may come in any order."""
    found: dict[str, dict[str | None, list[LoggedHour]]] = {}
    for cluster, each in hours:
        found.setdefault(cluster, {}).setdefault(each.broker, []).append(each)
    return {
        cluster: Coverage(
            [_of_broker(name, theirs) for name, theirs in sorted(brokers.items(), key=_name)],
            all(each.is_day for theirs in brokers.values() for each in theirs),
        )
        for cluster, brokers in sorted(found.items())
    }


def _name(item: tuple[str | None, object]) -> str:
    return item[0] or ""


class _Hour(NamedTuple):
    """All events of an hour.

    ``denied`` counts the denials, and ``seen`` is the time of the first event. ``first`` and
    ``last`` are the times of the allowed events; None if there are none.
    """

    denied: int
    seen: datetime
    first: datetime | None
    last: datetime | None


def _of_broker(broker: str | None, logged: Sequence[LoggedHour]) -> BrokerCoverage:
    hours = dict(sorted(_hours(logged).items()))
    silent = set(_silent(hours))
    return BrokerCoverage(
        broker,
        len(hours),
        len(silent),
        len({start.date() for start in hours}),
        sorted({start.date() for start in silent}),
        list(_stretches(hours, silent)),
    )


def _hours(logged: Iterable[LoggedHour]) -> dict[datetime, _Hour]:
    """Return the hours that have events, by their beginning.

    A row of equal allowed decisions counts in every hour from its first one to its last one.
    """
    found: dict[datetime, _Hour] = {}
    for each in logged:
        start = each.start
        while True:
            known = found.get(start, _Hour(0, each.first_seen, None, None))
            first, last = known.first, known.last
            if each.allowed:
                first = min(first or each.first_seen, each.first_seen)
                last = max(last or each.last_seen, each.last_seen)
            denied = known.denied + (0 if each.allowed else each.events)
            found[start] = _Hour(denied, min(known.seen, each.first_seen), first, last)
            start += _HOUR
            if not each.allowed or each.is_day or start > each.last_seen:
                break
    return found


def _silent(hours: Mapping[datetime, _Hour]) -> Iterator[datetime]:
    """Yield the silent hours. The hours must come in the order of time."""
    covered_days = {start.date() for start, each in hours.items() if each.first is not None}
    run: list[datetime] = []
    is_first = True
    for start, each in hours.items():
        if each.first is None:
            run.append(start)
            continue
        yield from _silent_of(run, hours, covered_days, is_first=is_first)
        if is_first and not run and each.denied >= _LEAST and each.first - each.seen > _LATE:
            yield start
        run, is_first = [], False
    yield from _silent_of(run, hours, covered_days, is_first=is_first)


def _silent_of(
    run: Sequence[datetime],
    hours: Mapping[datetime, _Hour],
    covered_days: set[date],
    *,
    is_first: bool,
) -> Iterator[datetime]:
    """Yield the silent hours of ``run``, a row of hours without an allowed event."""
    is_long = is_first or sum(hours[start].denied for start in run) >= _LEAST
    yield from (start for start in run if is_long or start.date() not in covered_days)


def _stretches(hours: Mapping[datetime, _Hour], silent: set[datetime]) -> Iterator[Stretch]:
    known: Stretch | None = None
    for start, each in hours.items():
        if start in silent and known is not None:
            yield known
            known = None
        if each.first is not None and each.last is not None:
            first = known.first if known is not None else each.first
            known = Stretch(first, max(each.last, known.last) if known is not None else each.last)
    if known is not None:
        yield known
