"""What is to be read of many files: the oldest first, and in little memory."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest.known_files import Files, Known
from aclbroker.pipeline.ingest.ledger import known, prefix_of
from aclbroker.pipeline.ingest.reads import Read, Reads, in_order

FILE = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 9), st.sampled_from([1.0, 2.0, 2.5]))


class Bytes:
    """A text in memory, as `known` looks into it."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def at(self, start: int, end: int) -> bytes:
        return self.data[start:end]


def file_of(path: str, data: bytes) -> Known:
    return known(Bytes(data), path, len(data), data)


@given(st.lists(FILE, max_size=12))
def test_what_is_to_be_read_comes_oldest_first_and_of_one_time_by_name(
    added: list[tuple[int, int | None, float]],
) -> None:
    files, wanted = Files(), list[tuple[float, Read]]()
    reads = Reads(files)
    for number, (start, position, modified) in enumerate(added):
        file = file_of(f"/logs/{number * 7 % 12}.log", b"x" * (10 + 20 * number))
        files.put(number, file)
        reads.add(start, position, modified)
        read = Read(file.path, start, file.length, prefix_of(file), position, file)
        wanted.append((modified, read))
    wanted.sort(key=lambda each: (each[0], each[1].path))
    assert [*reads] == [read for _, read in wanted]
    assert reads[:3] == [read for _, read in wanted][:3]
    assert [reads[number] for number in range(len(reads))] == [*reads]
    assert bool(reads) == bool(added)


def test_many_files_take_a_few_hundred_bytes_each() -> None:
    many = 5_000
    tracemalloc.start()
    try:
        files = Files()
        reads = Reads(files)
        for number in range(many):
            data = b"%d" % number * 200
            files.put(number, file_of(f"/var/log/kafka/kafka-authorizer.log.{number}", data))
            reads.add(0, None, float(number))
        assert len(reads) == many
        assert reads[0].start == 0
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 450 * many


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12))
def test_things_are_ordered_by_all_keys_and_then_by_name(things: list[tuple[int, bool]]) -> None:
    names = [str(number * 7 % 12) for number in range(len(things))]
    columns = [[size for size, _ in things], [int(flag) for _, flag in things]]
    found = in_order(columns, names.__getitem__).tolist()
    assert found == sorted(range(len(things)), key=lambda each: (*things[each], names[each]))
