"""The clock of the cluster in memory, which a test can move."""

import asyncio
import gc
import time
from collections.abc import Callable
from functools import partial

from aclbroker.broker.memory import Clock
from aclbroker.broker.memory.clock import Timer


def stopped() -> Clock:
    return Clock(source=lambda: 1_000)


def test_what_is_due_is_called_in_order_and_at_its_own_time():
    clock = stopped()
    called: list[tuple[str, int]] = []

    def note(name: str) -> None:
        called.append((name, clock.now_ms()))

    for name, delay in (("late", 30), ("early", 10), ("never", 100), ("also early", 10)):
        clock.call_later(delay, partial(note, name))
    clock.advance(50)
    assert called == [("early", 1_010), ("also early", 1_010), ("late", 1_030)]
    assert clock.now_ms() == 1_050


def test_what_is_cancelled_is_not_called():
    clock = stopped()
    called: list[str] = []
    timer = clock.call_later(10, lambda: called.append("cancelled"))
    clock.call_later(10, lambda: called.append("kept"))
    timer.cancel()
    clock.advance(10)
    assert called == ["kept"]


def test_what_another_call_cancels_is_not_called():
    clock = stopped()
    called: list[str] = []
    timer = clock.call_later(20, lambda: called.append("cancelled"))
    clock.call_later(10, timer.cancel)
    clock.call_later(20, lambda: called.append("kept"))
    clock.advance(20)
    assert called == ["kept"]


def test_what_a_call_asks_for_is_called_in_the_same_advance_if_it_is_due():
    clock = stopped()
    times: list[int] = []

    def again() -> None:
        times.append(clock.now_ms())
        clock.call_later(10, again)

    clock.call_later(10, again)
    clock.advance(35)
    assert times == [1_010, 1_020, 1_030]


async def test_a_clock_of_an_event_loop_calls_by_itself_and_when_it_is_moved():
    clock = Clock(asyncio.get_running_loop().call_later)
    first, second = asyncio.Event(), asyncio.Event()
    clock.call_later(3_600_000, second.set)
    clock.call_later(1, first.set)
    await asyncio.wait_for(first.wait(), 10)
    assert not second.is_set()
    clock.advance(3_600_000)
    assert second.is_set()


def test_others_have_their_turn_between_functions_that_take_long():
    alarms: list[tuple[float, Callable[[], None]]] = []

    class Rings:
        def cancel(self) -> None:
            pass

    def set_alarm(seconds: float, ring: Callable[[], None]) -> Rings:
        alarms.append((seconds, ring))
        return Rings()

    def long(name: str) -> None:
        called.append(name)
        end = time.perf_counter() + 0.01
        while time.perf_counter() < end:
            pass

    now = [1_000]
    called: list[str] = []
    clock = Clock(set_alarm, source=lambda: now[0])
    for name in ("one", "two"):
        clock.call_later(10, partial(long, name))
    now[0] += 10
    alarms.pop()[1]()
    assert called == ["one"]
    [(seconds, ring)] = alarms
    assert seconds == 0
    ring()
    assert called == ["one", "two"]


async def test_a_closed_clock_calls_nothing():
    clock = Clock(asyncio.get_running_loop().call_later)
    called: list[str] = []
    clock.call_later(10, lambda: called.append("called"))
    clock.close()
    clock.advance(10)
    assert called == []


def test_timers_that_were_cancelled_take_no_room():
    def timers() -> int:
        gc.collect()
        return sum(isinstance(each, Timer) for each in gc.get_objects())

    clock = Clock(source=lambda: 0)
    rang: list[str] = []
    clock.call_later(50, lambda: rang.append("kept"))
    # Clusters of other tests in this process may have timers of their own.
    before = timers()
    for _ in range(10_000):
        clock.call_later(1_000_000, lambda: rang.append("cancelled")).cancel()
    assert timers() - before < 2_000
    clock.advance(2_000_000)
    assert rang == ["kept"]
