"""What the log tells of times without ZooKeeper."""

from __future__ import annotations

import asyncio
import math
from typing import Final

from aclbroker.broker.observability.logs import get_logger

log = get_logger()

_PATIENCE_S: Final = 0.9
"""How long a problem lasts before it is told: to connect takes a moment."""


class Outage:
    """Tells, once, of a problem that lasts, and then that there is none any more.

    ``since`` is when it began, by the clock of the event loop; infinite while there is none.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._told = False
        self.since = math.inf

    def goes_on(self, reason: str) -> None:
        """Note that there is a problem now."""
        now = asyncio.get_running_loop().time()
        self.since = min(self.since, now)
        if not self._told and now >= self.since + _PATIENCE_S:
            self._told = True
            log.error(
                "ZooKeeper is not there for ACLs; trying again", store=self._url, reason=reason
            )

    def is_over(self) -> None:
        """Note that there is none."""
        if self._told:
            log.warning("ZooKeeper is there again", store=self._url)
        self._told, self.since = False, math.inf
