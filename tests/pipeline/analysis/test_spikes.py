"""Which days stand out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.pipeline.analysis.spikes import Spike, SpikeRule, spikes

RULE = SpikeRule()


def days(counts, first=5, rule=RULE):
    return [spike.day for spike in spikes(counts, first, rule)]


def test_a_day_far_above_the_days_before():
    assert spikes([4, 5, 4, 5, 4, 60], 5, RULE) == [Spike(5, 60, 4, 16)]


def test_a_few_odd_days_before_hide_nothing():
    assert days([2, 900, 2, 3, 2, 3, 60, 2, 70]) == [6, 8]


def test_few_are_no_spike_however_rare():
    assert days([0, 0, 0, 0, 0, 9]) == []
    assert days([0, 0, 0, 0, 0, 10]) == [5]


def test_one_more_than_the_same_every_day_is_no_spike():
    assert days([1000, 1000, 1000, 1000, 1000, 1001]) == []
    assert days([1000, 1000, 1000, 1000, 1000, 1190]) == [5]


def test_what_varies_may_vary():
    assert days([10, 90, 50, 20, 80, 200]) == []


def test_days_before_the_first_are_only_compared_with():
    assert days([0, 50, 0, 0, 0, 0]) == []
    assert days([0, 50], first=1) == [1]


@given(st.lists(st.integers(0, 200), min_size=2, max_size=12), st.integers(1, 5))
def test_a_spike_is_above_every_limit_that_its_text_names(counts, first):
    for spike in spikes(counts, first, RULE):
        assert spike.day >= first
        assert counts[spike.day] == spike.count >= RULE.minimum
        assert spike.count > spike.limit >= spike.usual + 6


@pytest.mark.parametrize("values", [{"minimum": 0}, {"factor": 0.0}, {"factor": float("nan")}])
def test_a_rule_that_makes_no_sense_is_refused(values):
    with pytest.raises(ValueError, match=next(iter(values))):
        SpikeRule(**values)
