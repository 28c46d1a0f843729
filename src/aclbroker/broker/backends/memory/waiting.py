"""How a handler waits for the cluster in memory: for its time, a change, or an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from aclbroker.broker.memory import Clock, MemoryCluster
from aclbroker.broker.turns import poll

T = TypeVar("T")

_FORGOTTEN_AT_ONCE: Final = 2_000


class Reply(Generic[T]):
    """What somebody else will say, or the clock, or the end of the broker.

    It is made and waited for in a handler. ``say`` may be called at any time and often; what is
    said first counts.
    """

    __slots__ = ("_cluster", "_future", "_timer")

    def __init__(self, cluster: MemoryCluster, milliseconds: float | None = None) -> None:
        """Wait at most some milliseconds, if they are given."""
        self._cluster = cluster
        self._future: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._timer = (
            None if milliseconds is None else cluster.clock.call_later(milliseconds, self._no_more)
        )
        if cluster.is_closed:
            self._no_more()
        else:
            cluster.on_close.add(self._no_more)

    @property
    def is_said(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._future.done()

    def say(self, what: T) -> None:
        """Let the handler go on with this."""
        if not self._future.done():
            self._future.set_result(what)

    def wait(self) -> T | None:
        """Return what was said; None if the time is up or the broker ends.

        If the client goes away meanwhile, GreenletExit is raised here.
        """
        try:
            return self._future.result() if self._future.done() else poll(self._future)
        finally:
            self._cluster.on_close.discard(self._no_more)
            if self._timer is not None:
                self._timer.cancel()

    def _no_more(self) -> None:
        # Who made it may be gone without having waited.
        self._cluster.on_close.discard(self._no_more)
        if not self._future.done():
            self._future.set_result(None)


def forget(
    clock: Clock,
    called: Sequence[set[Callable[[], None]]],
    say: Callable[[], None],
    first: int = 0,
) -> None:
    """Let a function no longer be among those that are called: in some sets now, in others soon.

    This is no work that could pause, since whoever waited may be gone.
    """
    end = first + _FORGOTTEN_AT_ONCE
    for functions in called[first:end]:
        functions.discard(say)
    if end < len(called):
        clock.call_later(0, partial(forget, clock, called, say, end))
