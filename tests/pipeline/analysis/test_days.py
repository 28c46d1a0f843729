"""Which days of a log stand apart from the others."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.pipeline.analysis.days import LONG_GAP, calendar, parted

FIRST = date(2026, 11, 1)


def days(*numbers: int) -> list[date]:
    return [FIRST + timedelta(days=number) for number in numbers]


def test_a_day_of_few_events_far_from_all_others_stands_apart() -> None:
    wrong = [date(2009, 1, 1), date(2099, 1, 1)]
    found = parted(dict.fromkeys(days(0, 1, 5), 100) | dict.fromkeys(wrong, 1))
    assert found.usual == days(0, 1, 5)
    assert found.outliers == wrong


def test_parts_of_a_log_with_a_gap_between_them_are_both_usual() -> None:
    assert parted(dict.fromkeys(days(0, 1, 400), 10)).outliers == []
    assert parted({days(0)[0]: 99, days(400)[0]: 1}).outliers == []
    assert parted({days(0)[0]: 991, days(400)[0]: 9}).outliers == days(400)


def test_days_that_are_near_stand_not_apart_however_few_events_they_have() -> None:
    near, far = days(LONG_GAP + 1, LONG_GAP + 2)
    assert parted({FIRST: 10_000, near: 1}).outliers == []
    assert parted({FIRST: 10_000, far: 1}).outliers == [far]


def test_days_without_events_between_others_count_but_for_long_gaps() -> None:
    assert calendar(days(3, 0)) == days(0, 1, 2, 3)
    assert len(calendar([*days(0, 1), date(2099, 12, 31)])) == 3
    assert calendar([]) == []


@given(st.dictionaries(st.dates(), st.integers(0, 1000)))
def test_each_day_with_events_is_either_usual_or_apart(events: dict[date, int]) -> None:
    found = parted(events)
    assert sorted([*found.usual, *found.outliers]) == sorted(day for day in events if events[day])
    if any(events.values()):
        assert found.usual
        assert set(calendar(found.usual)) >= set(found.usual)
