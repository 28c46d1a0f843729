"""What refers to itself is freed before long, without a look at all that stays."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from aclbroker.broker.server import garbage
from aclbroker.broker.server.garbage import Collector


class Itself:
    """An object that reference counting never frees."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def _only_the_collector_looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have Python itself not look for garbage, and what there was before a test be passed over."""
    monkeypatch.setattr(garbage, "_SECONDS", 0.0)
    monkeypatch.setattr(garbage, "_BUSY_SECONDS", 0.0)
    gc.disable()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.enable()


async def soon(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0)


async def test_what_refers_to_itself_is_freed() -> None:
    gone = weakref.ref(Itself())
    assert gone() is not None
    collector = Collector(lambda: True)
    collector.start()
    await soon(lambda: gone() is None)
    collector.stop()


async def test_it_is_looked_for_when_no_large_request_is_at_work() -> None:
    asked = 0

    def is_idle() -> bool:
        nonlocal asked
        asked += 1
        return asked > 100

    gone = weakref.ref(Itself())
    collector = Collector(is_idle)
    collector.start()
    await soon(lambda: asked >= 100)
    assert gone() is not None
    await soon(lambda: gone() is None)
    collector.stop()


async def test_very_many_objects_are_passed_over_and_later_ones_are_looked_through() -> None:
    staying = [Itself() for _ in range(garbage._MOST_OBJECTS)]
    before = gc.get_freeze_count()
    collector = Collector(lambda: True)
    collector.start()
    await soon(lambda: gc.get_freeze_count() >= before + len(staying))
    gone = weakref.ref(Itself())
    await soon(lambda: gone() is None)
    collector.stop()
