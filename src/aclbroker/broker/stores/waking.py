"""A way for many to wait until something has changed, again and again."""

from __future__ import annotations

import asyncio


class Wakeup:
    """Wakes all who wait for it, each time; it is used in one event loop at a time.

    Who waits looks for what it wants before it waits, without a pause between the two.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Let all who wait go on. Who waits from now on waits for the next time."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self) -> None:
        """Wait until `wake` is called."""
        await self._event.wait()
