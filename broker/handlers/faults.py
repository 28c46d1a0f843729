"""Faults on demand, for tests of applications: requests fail, wait, or end their connection."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aclbroker.broker.turns import poll
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import ProtocolError


@dataclass(slots=True)
class Fault:
    """What happens to the next ``count`` requests of an API key.

    They are answered with ``code``, or the connection is closed if ``closes``, in both cases after
    ``delay`` seconds; with neither they are worked on late.
    """

    count: int
    code: ErrorCode | None = None
    closes: bool = False
    delay: float = 0.0


class Faults:
    """The faults that are to come, by API key; those of one key happen in their order."""

    def __init__(self) -> None:
        self._coming: dict[int, list[Fault]] = {}

    def add(self, key: ApiKey, fault: Fault) -> None:
        """Have a fault happen after those that were added before.

        Raises ValueError for one that cannot be.
        """
        if fault.count < 1 or fault.delay < 0:
            raise ValueError("a fault needs a count of at least 1, and no negative delay")
        self._coming.setdefault(key, []).append(fault)

    def clear(self) -> None:
        """Let no fault happen any more."""
        self._coming.clear()

    def happen(self, key: int) -> ErrorCode | None:
        """Let the next fault of a key happen; return what to answer with, None for nothing special.

        Raises ProtocolError if the connection is to be closed.
        """
        coming = self._coming.get(key)
        if not coming:
            return None
        fault = coming[0]
        fault.count -= 1
        if not fault.count:
            del coming[0]
        if fault.delay:
            poll(asyncio.sleep(fault.delay))
        if fault.closes:
            raise ProtocolError("a fault was asked for")
        return fault.code
