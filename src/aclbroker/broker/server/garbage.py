"""Python's garbage collector, set so that it does not stop the event loop for long.

Reference counting frees nearly all that is done with: neither ACLs nor connections refer to
themselves. What does (an error with its traceback, objects of a plug-in) the collector has to find,
and each time it looks through all objects that it knows of, up to 0.3 us for each.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# How many new objects there are before Python has the collector look through them. It would do so
# at 700, which a single request of 500 topics exceeds, without a cycle among them. It looks through
# older ones only after many times that: a large request has a million for a while, and to look
# through them takes a quarter of a second.
_YOUNG_OBJECTS: Final = 10_000
_TIMES_UNTIL_OLDER: Final = 1_000

_MOST_OBJECTS: Final = 30_000
"""Among how many objects garbage is looked for, which takes 10 ms."""

_SECONDS: Final = 30.0
"""How often it is looked for."""

_BUSY_SECONDS: Final = 1.0
"""How long to wait where large requests are at work, whose objects would be looked through."""


@contextmanager
def objects_that_stay() -> Iterator[None]:
    """Keep the collector from looking through the objects that are made inside the block.

    While ACLs are loaded it would do so over and over, which takes as long as loading them. Later,
    with a million ACLs, it would stop the broker for half a second each time. After the block the
    collector runs less often than by Python's default.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS, _TIMES_UNTIL_OLDER, _TIMES_UNTIL_OLDER)
        gc.enable()


class Collector:
    """Looks for garbage at regular intervals, while ``is_idle``.

    Where there are very many objects, those that exist are passed over from then on: most of them
    are connections and what was remembered of decisions, which stay or are freed without it.
    """

    def __init__(self, is_idle: Callable[[], bool]) -> None:
        self._is_idle = is_idle
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._look_in(_SECONDS)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        if not self._is_idle():
            self._look_in(_BUSY_SECONDS)
            return
        # To count them takes a tenth of the time.
        if len(gc.get_objects()) > _MOST_OBJECTS:
            gc.freeze()
        else:
            gc.collect()
        self._look_in(_SECONDS)
