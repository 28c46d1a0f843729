"""The event loop of each of a broker's processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

_SWITCH_SECONDS: Final = 0.001
"""How long another thread may go on when the loop could: a fifth of Python's default.

The loop gives way whenever it reads or writes, so that each request would wait twice as long while
the store's thread makes rows of a large change.
"""


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run an event loop as this broker's processes need it."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


async def unless(stop: asyncio.Event, load: Coroutine[Any, Any, T]) -> T | None:
    """Return what is loaded; None if it is to stop before: a shared store may be waited for."""
    loading, stopping = asyncio.create_task(load), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([loading, stopping], return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            return loading.result()
        loading.cancel()
        await asyncio.wait([loading])
        return None
    finally:
        stopping.cancel()
