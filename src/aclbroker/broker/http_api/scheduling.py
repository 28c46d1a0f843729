"""Turns of the event loop for callers that have not logged in yet (see `broker.turns`).

aiohttp starts every request as soon as it arrives, and a client can send on many connections at
once. So callers from one network share their turns, as the connections of one principal do.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from aclbroker.broker.observability.limited_log import network
from aclbroker.broker.turns import Turns
from aclbroker.turns import pause


async def next_turn(turns: Turns, host: str) -> None:
    """Wait for a turn of the callers of ``host``; return at once if the current turn has time."""
    made = turns.run(network(host), _begin, None, host, b"")
    if isinstance(made, Awaitable):
        await made


def _begin(*_of_turn: Any) -> None:
    """Begin a turn; the arguments name the caller in the log."""
    pause()
