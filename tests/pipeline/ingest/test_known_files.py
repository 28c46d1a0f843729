"""Known files in memory: found by what they say, however many there are and however they grew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest import known_files, positions
from aclbroker.pipeline.ingest.known_files import Files, Known
from aclbroker.pipeline.ingest.positions import Positions

KEYS = st.integers(0, 2**64 - 1) | st.integers(0, 5)


@given(st.lists(st.lists(st.tuples(KEYS, st.integers(0, 2**32 - 1)), max_size=12), max_size=12))
def test_positions_are_found_by_their_keys(parts: list[list[tuple[int, int]]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(positions, "_RUN", 5)
        patch.setattr(positions, "_LARGE", 16)
        found = Positions()
        for part in parts:
            keys = np.array([key for key, _ in part], np.uint64)
            found.add(keys, np.array([position for _, position in part], np.uint32))
        wanted: dict[int, list[int]] = {0: [], 2**63: []}
        for key, position in (each for part in parts for each in part):
            wanted.setdefault(key, []).append(position)
        answers = found.find(np.array([*wanted], np.uint64))
        assert [*map(sorted, answers)] == [*map(sorted, wanted.values())]


def mark(number: int) -> bytes:
    return number.to_bytes(16, "little")


MARKS = st.lists(st.integers(0, 9), max_size=4).map(lambda found: b"".join(map(mark, found)))
SEEN = st.lists(st.sampled_from("abcdef"), max_size=3, unique=True).map(tuple)
GROWTH = st.lists(st.tuples(st.integers(0, 6), MARKS, SEEN, st.booleans()), max_size=40)


@pytest.mark.parametrize("at_once", [1, 2, 1 << 16])
@given(changes=GROWTH)
def test_a_file_is_found_by_all_that_is_known_of_it(
    at_once: int, changes: list[tuple[int, bytes, tuple[str, ...], bool]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_files, "_AT_ONCE", at_once)
        files, plain = Files(), dict[int, Known]()
        for wanted, more, seen, looks in changes:
            position = min(wanted, len(plain))
            before = plain.get(position, Known("/a/b", 0, b"", b"", b""))
            marks = before.marks + more
            length = before.length + 1
            file = Known(f"/a/{position}", length, marks, b"", mark(100 + length), seen)
            plain[position] = file
            files.put(position, file)
            if looks:
                files.are_seen([])
        assert [files[each] for each in range(len(files))] == [*plain.values()]
        for number in range(10):
            having = {n for n, each in plain.items() if mark(number) in cut(each.marks)}
            assert having <= {*files.having(mark(number))}
        for position, file in plain.items():
            assert position in {*files.ending([cut(file.marks)[-1] if file.marks else file.tail])}
        known = {each for file in plain.values() for each in file.seen}
        assert files.are_seen([*"abcdef"]) == [each in known for each in "abcdef"]


def cut(marks: bytes) -> list[bytes]:
    return [marks[start : start + 16] for start in range(0, len(marks), 16)]


def test_a_file_cannot_be_put_behind_the_end() -> None:
    with pytest.raises(ValueError, match="file 1 of 0"):
        Files().put(1, Known("/a", 1, b"", b"", mark(1)))


def test_names_come_back_as_they_were() -> None:
    files = Files()
    names = ["/a/b", "/a/c", "plain", "/\udcff\ud800/\udc80", "/", "/a/\n ü"]
    for number, name in enumerate(names):
        files.put(number, Known(name, 1, b"", mark(7), mark(1), ("1:2", "3")))
    assert [files[number].path for number in range(len(names))] == names
    assert files[3] == Known(names[3], 1, b"", mark(7), mark(1), ("1:2", "3"))
