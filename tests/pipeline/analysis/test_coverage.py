"""The coverage of a log: the hours with allowed events, and the silent hours."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from aclbroker.pipeline.analysis.coverage import Coverage, LoggedHour, Stretch, coverages

START = datetime(2026, 3, 1, tzinfo=UTC)


def logged(
    events: Iterable[tuple[float, bool]], broker: str | None = "b"
) -> Iterator[tuple[str, LoggedHour]]:
    """Yield an hour for each event, given by its hours after `START` and whether it was allowed."""
    for hours, allowed in events:
        at = START + timedelta(hours=hours)
        yield "c", LoggedHour(broker, at.replace(minute=0, second=0), allowed, 1, at, at)


def covered(events: Iterable[tuple[float, bool]]) -> Coverage:
    return coverages(logged(events))["c"]


ALLOWED, DENIED = True, False


def test_a_level_that_was_raised_today_covers_the_hours_since_and_no_others() -> None:
    denials = [(24 * day + 20.1, DENIED) for day in range(28)]
    found = covered([*denials, *((27 * 24 + 21 + second / 3600, ALLOWED) for second in range(40))])
    (broker,) = found.brokers
    assert (found.covered, found.hours, found.percent) == (1, 29, 3)
    assert (broker.days, len(broker.silent_days)) == (28, 28)
    (stretch,) = broker.stretches
    assert stretch.last - stretch.first == timedelta(seconds=39)
    assert not found.reaches(100)
    assert not found.reaches(3.5)
    assert found.reaches(3)


@pytest.mark.parametrize(
    ("events", "silent"),
    [
        pytest.param([(0, ALLOWED), (9, DENIED), (10, DENIED)], 0, id="two denials at the end"),
        pytest.param([(0, ALLOWED), *((h, DENIED) for h in (8, 9, 10))], 3, id="three at the end"),
        pytest.param(
            [(0, ALLOWED), *((8, DENIED) for _ in range(3)), (9, ALLOWED)], 1, id="three in an hour"
        ),
        pytest.param([(0, DENIED), (1, ALLOWED)], 1, id="one at the beginning"),
        pytest.param([(1, ALLOWED), (25, DENIED), (49, ALLOWED)], 1, id="a day with one denial"),
        pytest.param(
            [*((m / 60, DENIED) for m in range(3)), (0.5, ALLOWED)], 1, id="half of the first hour"
        ),
        pytest.param(
            [*((m / 60, DENIED) for m in range(3)), (0.07, ALLOWED)], 0, id="its first minutes"
        ),
        pytest.param([(0, DENIED), (0.5, ALLOWED)], 0, id="one denial in the first hour"),
    ],
)
def test_an_hour_is_silent_if_chance_does_not_explain_it(
    events: list[tuple[float, bool]], silent: int
) -> None:
    found = covered(events)
    assert found.hours - found.covered == silent
    assert found.reaches(100) == (not silent)


def test_a_broker_without_allowed_events_is_silent_beside_others_that_have_them() -> None:
    hours = [
        *logged([(hour, ALLOWED) for hour in range(10)], "one"),
        *logged([(5, DENIED)], "two"),
    ]
    found = coverages(hours)["c"]
    assert [(each.broker, each.hours, each.silent) for each in found.brokers] == [
        ("one", 10, 0),
        ("two", 1, 1),
    ]
    assert found.brokers[1].silent_days == [date(2026, 3, 1)]
    assert found.brokers[1].stretches == []


def test_equal_decisions_of_a_long_period_cover_all_of_its_hours() -> None:
    last = START + timedelta(hours=5, minutes=30)
    hours = [
        ("c", LoggedHour("b", START, True, 900, START, last)),
        *logged([(hour, DENIED) for hour in (1, 2, 3, 4)]),
    ]
    found = coverages(hours)["c"]
    assert found.reaches(100)
    assert found.brokers[0].stretches == [Stretch(START, last)]


def test_allowed_events_of_before_and_after_a_silence_are_two_stretches() -> None:
    events = [(0, ALLOWED), (1, ALLOWED), *((h, DENIED) for h in (4, 5, 6)), (7, ALLOWED)]
    (broker,) = covered(events).brokers
    at = [START + timedelta(hours=hour) for hour in (0, 1, 7)]
    assert broker.stretches == [Stretch(at[0], at[1]), Stretch(at[2], at[2])]
