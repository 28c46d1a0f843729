"""Time as the cluster in memory has it: a clock with timers, which a test can move."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol


class Alarm(Protocol):
    """What rings once and can be cancelled, such as `asyncio.TimerHandle`."""

    def cancel(self) -> None:
        """Let it not ring."""


SetAlarm = Callable[[float, Callable[[], None]], Alarm]
"""Has a function called after some seconds, such as `asyncio.AbstractEventLoop.call_later`."""


def system_ms() -> Callable[[], int]:
    """Return a function that tells the time, which never goes back, whoever sets the system's."""
    began = time.time_ns() - time.monotonic_ns()
    return lambda: (began + time.monotonic_ns()) // 1_000_000


_FEW: Final = 1_000
"""Among so many timers it does not matter how many are cancelled."""

_RINGING_SECONDS: Final = 0.005
"""How long functions are called that are due, before others have their turn."""


class Timer:
    """A function that is to be called at a time, unless it is cancelled before."""

    __slots__ = ("due_ms", "function")

    def __init__(self, due_ms: int, function: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.function: Callable[[], None] | None = function

    def cancel(self) -> None:
        """Let the function not be called; that it was called already does no harm."""
        self.function = None


class Regular:
    """A function that is called again and again, as `Clock.call_every` says."""

    __slots__ = ("due_ms", "function", "idle_until", "interval_ms")

    def __init__(
        self,
        due_ms: int,
        interval_ms: int,
        function: Callable[[], None],
        idle_until: Callable[[], float],
    ) -> None:
        self.due_ms = due_ms
        self.interval_ms = interval_ms
        self.function = function
        self.idle_until = idle_until

    def skip_to(self, time_ms: float) -> None:
        """Leave out the calls before a time."""
        if time_ms > self.due_ms:
            left_out = math.ceil((time_ms - self.due_ms) / self.interval_ms)
            self.due_ms += left_out * self.interval_ms


class Clock:
    """The time in milliseconds since 1970, and functions that are to be called at a time.

    ``set_alarm`` has the clock look at the time again after some seconds. Without it nothing is
    ever called but by `advance`, as a test wants that has all time in its hands; ``source`` then is
    best a constant.
    """

    def __init__(
        self, set_alarm: SetAlarm | None = None, source: Callable[[], int] | None = None
    ) -> None:
        self._source = source or system_ms()
        self._set_alarm = set_alarm
        self._moved_ms = 0
        self._timers: list[tuple[int, int, Timer]] = []
        self._regular: list[Regular] = []
        self._numbers: Final = count()
        self._crowded_at = _FEW
        self._alarm: Alarm | None = None
        self._alarm_at: int | None = None

    def now_ms(self) -> int:
        """Return the time."""
        return self._source() + self._moved_ms

    def call_later(self, delay_ms: float, function: Callable[[], None]) -> Timer:
        """Have a function called after some milliseconds; it must not raise."""
        timer = Timer(self.now_ms() + max(0, round(delay_ms)), function)
        heapq.heappush(self._timers, (timer.due_ms, next(self._numbers), timer))
        if len(self._timers) >= self._crowded_at:
            self._forget_cancelled()
        self._arm()
        return timer

    def call_every(
        self, interval_ms: int, function: Callable[[], None], idle_until: Callable[[], float]
    ) -> None:
        """Have a function called again and again; it must not raise.

        ``idle_until`` tells the time before which that would do nothing, if nothing else happens;
        it may be in the past, or infinite. Such calls are left out when the time is moved far.
        """
        due = self.now_ms() + interval_ms
        self._regular.append(Regular(due, interval_ms, function, idle_until))
        self._arm()

    def advance(self, milliseconds: int) -> None:
        """Move the time forward, and call what is due then, each at its own time and in order."""
        until = self.now_ms() + milliseconds
        self._skip(until)
        while (due := self._next_due()) is not None and due <= until:
            self._moved_ms += max(0, due - self.now_ms())
            self._call_next()
            self._skip(until)
        self._moved_ms += max(0, until - self.now_ms())
        self._arm()

    def close(self) -> None:
        """Call nothing any more."""
        self._timers.clear()
        self._regular.clear()
        self._disarm()

    def _forget_cancelled(self) -> None:
        """Keep no timers that nobody needs: clients can have many set and cancelled."""
        self._timers = [each for each in self._timers if each[2].function is not None]
        heapq.heapify(self._timers)
        self._crowded_at = max(_FEW, 2 * len(self._timers))

    def _next_due(self) -> int | None:
        """Return when something is to be called; None if nothing is, which may be cancelled."""
        due = [each.due_ms for each in self._regular]
        if self._timers:
            due.append(self._timers[0][0])
        return min(due, default=None)

    def _skip(self, until: int) -> None:
        """Leave out what would be called next, up to a time, if it would do nothing."""
        due = self._next_due()
        timer_due = self._timers[0][0] if self._timers else math.inf
        if due is None or due > until or timer_due <= due:
            return
        # Nothing happens before that, and so all that these tell holds until then.
        quiet = min(timer_due, until + 1, *(each.idle_until() for each in self._regular))
        for each in self._regular:
            each.skip_to(quiet)

    def _call_next(self) -> None:
        due = self._next_due()
        for regular in self._regular:
            if regular.due_ms == due and (not self._timers or due < self._timers[0][0]):
                regular.due_ms = max(due, self.now_ms()) + regular.interval_ms
                regular.function()
                return
        _, _, timer = heapq.heappop(self._timers)
        function, timer.function = timer.function, None
        if function is not None:
            function()

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        now, until = self.now_ms(), time.perf_counter() + _RINGING_SECONDS
        while (due := self._next_due()) is not None and due <= now and time.perf_counter() < until:
            self._call_next()
        self._arm()

    def _arm(self) -> None:
        while self._timers and self._timers[0][2].function is None:
            heapq.heappop(self._timers)
        if self._set_alarm is None:
            return
        due = self._next_due()
        if due is None:
            self._disarm()
        elif self._alarm_at is None or due < self._alarm_at:
            self._disarm()
            self._alarm_at = due
            seconds = max(0, self._alarm_at - self.now_ms()) / 1000
            self._alarm = self._set_alarm(seconds, self._ring)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_at = None
