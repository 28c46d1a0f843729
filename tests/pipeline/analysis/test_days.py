"""Which days of a log stand apart from the others."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.pipeline.analysis.days import LONG_GAP, SHORT_GAP, Days, calendar
from aclbroker.pipeline.analysis.days import parted as parted_on

FIRST = date(2026, 11, 1)
LATER = date(2029, 1, 1)


def parted(events: dict[date, int], today: date = LATER) -> Days:
    return parted_on(events, today)


def days(*numbers: int) -> list[date]:
    return [FIRST + timedelta(days=number) for number in numbers]


def test_a_day_of_few_events_far_from_all_others_stands_apart() -> None:
    wrong = [date(2009, 1, 1), date(2028, 1, 1)]
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


def test_days_still_to_come_are_told_however_many_events_they_have_and_however_near() -> None:
    today, next_day, future = days(14, 15, 16)
    events = {FIRST: 1, today: 1, next_day: 1, future: 500, date(2099, 1, 1): 9}
    found = parted(events, today)
    assert found.usual == [FIRST, today, next_day]
    assert found.future == [future, date(2099, 1, 1)]
    assert found.outliers == []
    # A machine whose own clock is wrong does not lose the log.
    assert parted(events, date(1970, 1, 1)).future == []
    assert parted({}, today) == Days([], [], [], [])


def test_days_that_are_far_but_not_left_out_are_doubtful() -> None:
    near, apart, far = days(-SHORT_GAP - 1, -SHORT_GAP - 2, -LONG_GAP - 2)
    month = dict.fromkeys(days(0, 1, 2, 3), 100)
    for day, events, doubtful in [
        (far, 5, [far]),
        (apart, 3, [apart]),
        (apart, 5, []),
        (near, 3, []),
    ]:
        found = parted({**month, day: events})
        assert found.usual == [day, *month]
        assert found.doubtful == doubtful


def test_days_without_events_between_others_count_but_for_long_gaps() -> None:
    assert calendar(days(3, 0)) == days(0, 1, 2, 3)
    assert len(calendar([*days(0, 1), date(2099, 12, 31)])) == 3
    assert calendar([]) == []


@given(st.dictionaries(st.dates(), st.integers(0, 1000)), st.dates(max_value=date(9999, 1, 1)))
def test_each_day_with_events_is_either_usual_or_apart(
    events: dict[date, int], today: date
) -> None:
    found = parted(events, today)
    told = sorted([*found.usual, *found.future, *found.outliers])
    assert told == sorted(day for day in events if events[day])
    assert set(found.doubtful) <= set(found.usual)
    if any(events.values()):
        assert found.usual
        assert set(calendar(found.usual)) >= set(found.usual)
