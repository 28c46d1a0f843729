"""What many records of a share partition cost: others have their turn, none grows squarely."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import aclbroker.turns
from aclbroker.broker.backends.memory.share import reading
from aclbroker.broker.backends.memory.share.reading import Room, taken
from aclbroker.broker.memory import Clock
from aclbroker.broker.memory.batch import read_batch
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.log_settings import LogSettings
from aclbroker.broker.memory.room import DELETE
from aclbroker.broker.memory.room import Room as Memory
from aclbroker.broker.memory.share import Acquired, SharePartition
from aclbroker.broker.memory.share.acknowledging import Acknowledgement, acknowledge
from aclbroker.broker.memory.share.delivering import ShareSettings
from aclbroker.broker.memory.share.in_flight import Batch, Run, State
from aclbroker.broker.memory.share.partition import Wanted
from tests.memory.records import NOW, batch

ACCEPT, RELEASE = 1, 2


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """How often others could have had their turn."""
    found: list[None] = []
    monkeypatch.setattr(aclbroker.turns, "_pause", lambda: found.append(None))
    return found


@pytest.fixture
def shared() -> SharePartition:
    return SharePartition(Clock(source=lambda: NOW), lambda: ShareSettings(30_000, 5, 2_000), 0)


def lines_of(work: Callable[[], Any]) -> int:
    """Return how many lines of Python are run."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    measuring = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(measuring)
    return count


def test_others_have_their_turn_while_much_is_said_of_one_batch(
    shared: SharePartition, pauses: list[None]
):
    assert shared.acquire(Wanted("m", 500, 500), 0, [(0, 9_999)])
    kinds = [(ACCEPT, RELEASE)[number % 2] for number in range(10_000)]
    pauses.clear()
    acknowledge(shared, "m", [Acknowledgement(0, 9_999, kinds)])
    assert len(pauses) >= 10_000 // 16
    assert shared.start == 1


def log_of(count: int) -> PartitionLog:
    log = PartitionLog("t-0", LogSettings(), Memory(1 << 24, DELETE))
    for _ in range(count):
        log.append(batch(b"x"), now_ms=NOW)
    return log


def test_others_have_their_turn_while_batches_are_read_of_which_not_all_are(
    shared: SharePartition, pauses: list[None], monkeypatch: pytest.MonkeyPatch
):
    read: list[int] = []

    def noted(part: memoryview, at: int) -> Any:
        read.append(at)
        return read_batch(part, at)

    monkeypatch.setattr(reading, "read_batch", noted)
    log = log_of(3_000)
    shared.acquire(Wanted("other", 500, 500), 0, [(n, n) for n in range(500)])
    pauses.clear()
    found = taken(log, shared, Wanted("m", 1_000, 500), Room(1 << 20, whole=True), committed=False)
    assert sum(last - first + 1 for first, last, _ in found.acquired) == 1_000
    assert 1_000 <= len(read) < 1_010
    assert len(pauses) >= 1_000 // 128
    read.clear()
    assert taken(log, shared, Wanted("m", 1, 1), Room(1 << 20, whole=True), committed=False).size
    assert len(read) < 10


def test_what_was_aborted_costs_as_much_as_what_is_acquired():
    def cost(count: int) -> int:
        clock, settings = Clock(source=lambda: NOW), ShareSettings(30_000, 5, 10)
        shared = SharePartition(clock, lambda: settings, 0)
        bounds = [(n, n) for n in range(count)]
        aborted = bounds[1::2]
        found: list[Acquired] = []
        cost = lines_of(
            lambda: found.extend(shared.acquire(Wanted("m", 10, 10), 0, bounds, aborted))
        )
        assert [each.first for each in found] == [0, 2, 4, 6, 8]
        return cost

    # A search takes some steps more.
    assert cost(4_000) < cost(20) + 50


def test_a_cut_costs_the_same_among_few_and_among_many():
    def cost(count: int) -> int:
        runs = [Run(n, n + 1, State.ACQUIRED, 1, "m") for n in range(0, 2 * count, 2)]
        made = Batch(runs)
        cost = lines_of(lambda: made.cut(count - 1, count + 1))
        assert [len(run) for run in made.runs].count(1) == 4
        return cost

    # A search takes some steps more.
    assert cost(4_000) < cost(8) + 50
