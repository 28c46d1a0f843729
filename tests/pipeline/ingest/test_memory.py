"""Looking at bytes in memory many at a time, beside looking at one after the other."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import numpy as np

from aclbroker.pipeline.ingest.memory import places_of


@pytest.mark.parametrize("apart", [8, 16, 32, 64])
def test_places_of_flags_are_those_of_each_of_them(apart: int) -> None:
    @given(st.integers(0, 320), st.sets(st.integers(0, 319)))
    @example(256, set(range(256)))
    @example(256, set(range(0, 256, apart)))
    @example(256, set(range(apart - 1, 256, apart)))
    @example(256, {3 * apart, 4 * apart - 1})
    @example(256, set())
    def check(size: int, true: set[int]) -> None:
        flags = np.zeros(size, bool)
        expected = sorted(place for place in true if place < size)
        flags[expected] = True
        assert places_of(flags, apart).tolist() == expected

    check()
