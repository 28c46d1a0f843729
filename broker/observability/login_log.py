"""Counts authentications, and logs a line for each that failed.

Anybody who can connect can fail as often as they like, so lines are limited: `_BURST` at once, then
`_RATE` per second. The next line tells how many were left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aclbroker.broker.observability.metrics import Metrics

_BURST: Final = 50
_RATE: Final = 5.0


class LoginLog:
    """Counts authentications and logs those that failed. ``clock`` returns seconds."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._clock = clock
        self._allowance = float(_BURST)
        self._asked_at = clock()
        self._left_out = 0

    def succeeded(self, listener: str, mechanism: str, *, renewed: bool) -> None:
        """Count an authentication that succeeded, or renewed a session."""
        outcome = "renewed" if renewed else "succeeded"
        self._metrics.add("aclbroker_authentications", listener, mechanism, outcome)

    def failed(self, log: Any, listener: str, mechanism: str, reason: str) -> None:
        """Count one that failed, and log a line if there were not too many just now."""
        self._metrics.add("aclbroker_authentications", listener, mechanism, "failed")
        now = self._clock()
        self._allowance = min(_BURST, self._allowance + (now - self._asked_at) * _RATE)
        self._asked_at = now
        if self._allowance < 1:
            self._left_out += 1
            return
        self._allowance -= 1
        more = {"not_logged_before": self._left_out} if self._left_out else {}
        self._left_out = 0
        log.warning(
            "authentication failed",
            mechanism=mechanism or None,
            reason=reason,
            action="connection closed",
            **more,
        )

    def expired(self, listener: str) -> None:
        """Count a session that ended and was not renewed."""
        self._metrics.add("aclbroker_expired_sessions", listener)
