"""The benchmark of hidden names, with few pairs: `make attack` measures how long they take."""

from __future__ import annotations

from random import Random

from benchmarks.hidden_names import WAYS, asked_in_pairs, chance, running


def test_requests_are_answered_alike_whether_hidden_names_match_or_not():
    with running() as server:
        for way in WAYS:
            assert len(asked_in_pairs(server.address, way, 3)) == 3


def test_a_difference_of_a_tenth_of_the_noise_is_told_from_chance_by_10_000_pairs():
    drawn = Random(7)
    noise = [drawn.gauss(0, 1) for _ in range(10_000)]
    assert chance(noise) > 0.01
    assert chance([each + 0.1 for each in noise]) < 0.000_001
    assert chance([0.0] * 100) == 1.0
