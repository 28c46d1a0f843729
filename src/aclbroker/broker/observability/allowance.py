"""How much may be done in a time: so much a second, and what was saved up."""

from __future__ import annotations

from collections.abc import Callable


class Allowance:
    """``rate`` a second, of which up to ``most`` are saved; all of them at first.

    ``clock`` returns seconds. One that is set back adds nothing.
    """

    __slots__ = ("_asked_at", "_clock", "_left", "_rate", "most")

    def __init__(self, rate: float, most: float, clock: Callable[[], float]) -> None:
        self.most = most
        self._rate = rate
        self._clock = clock
        self._left = most
        self._asked_at = clock()

    def left(self) -> float:
        """Return how much may be taken now."""
        now = self._clock()
        if now != self._asked_at:
            self._left = min(self.most, self._left + max(0.0, now - self._asked_at) * self._rate)
            self._asked_at = now
        return self._left

    def take(self, amount: float) -> None:
        """Take some, even if that is more than is left: then nothing is until it is made up for."""
        self._left = self.left() - amount

    def admits(self) -> bool:
        """Take one; false if there is none left."""
        if self.left() < 1:
            return False
        self.take(1)
        return True
