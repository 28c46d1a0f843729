"""Counts authentications, and logs a line for each that failed, if there are not too many."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.metrics import Metrics

AUTHENTICATIONS: Final = "aclbroker_authentications"
"""The metric that counts authentications by listener, mechanism and outcome."""

FAILED_LOGIN: Final = "authentication failed"
"""The log event of a failed authentication; its `reason` says why it failed."""


class LoginLog:
    """Counts authentications and logs those that failed.

    ``lines`` limits what peers can make the broker log, about authentications and other things.
    """

    def __init__(self, metrics: Metrics, lines: LimitedLog) -> None:
        self.lines = lines
        self._metrics = metrics

    def succeeded(self, listener: str, mechanism: str, *, renewed: bool) -> None:
        """Count an authentication that succeeded, or renewed a session."""
        outcome = "renewed" if renewed else "succeeded"
        self._metrics.add(AUTHENTICATIONS, listener, mechanism, outcome)

    def failed(self, log: Any, host: str, listener: str, mechanism: str, reason: str) -> None:
        """Count one that failed, and log a line if there were not too many just now."""
        self._metrics.add(AUTHENTICATIONS, listener, mechanism, "failed")
        self.lines.write(
            log.warning,
            FAILED_LOGIN,
            host,
            mechanism=mechanism or None,
            reason=reason,
            action="connection closed",
        )

    def expired(self, listener: str) -> None:
        """Count a session that ended and was not renewed."""
        self._metrics.add("aclbroker_expired_sessions", listener)
