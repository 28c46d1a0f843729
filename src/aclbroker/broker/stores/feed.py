"""What was changed, on its way to those who follow a store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

from aclbroker.broker.stores.news import News
from aclbroker.broker.stores.store import StoreChange, StoreReset
from aclbroker.broker.stores.waking import Wakeup

_MANY: Final = 16

ReadAfter = Callable[[int], Awaitable[Iterable[News]]]
"""Reads what was changed after a position."""


class Feed:
    """Hands each change to all who follow, in order. It is used in one event loop at a time."""

    def __init__(self) -> None:
        self.position = 0
        """That of the last change that was told."""

        self._queues: list[deque[News]] = []
        self._more = Wakeup()
        self._closed = False

    def restart(self, position: int) -> None:
        """Begin anew at a position."""
        self.position = position
        self._closed = False
        self._more.wake()

    @property
    def is_followed(self) -> bool:
        """Whether anybody follows."""
        return bool(self._queues)

    @property
    def is_behind(self) -> bool:
        """Whether all who follow have much to do before they come to what is new."""
        return bool(self._queues) and min(map(len, self._queues)) > _MANY

    def add(self, news: Iterable[News]) -> None:
        """Tell what has changed. What was told before is passed over."""
        for each in news:
            if each.what.position > self.position:
                self.position = each.what.position
                for queue in self._queues:
                    queue.append(each)
        self._more.wake()

    def end(self) -> None:
        """Let those who follow come to an end."""
        self._closed = True
        self._more.wake()

    async def follow(
        self, position: int, read_after: ReadAfter
    ) -> AsyncIterator[StoreChange | StoreReset]:
        """Return what comes after a position; what was told before that is read."""
        queue: deque[News] = deque()
        self._queues.append(queue)
        try:
            while not self._closed:
                if not queue and position >= self.position:
                    await self._more.wait()
                elif queue and queue[0].what.position <= position:
                    queue.popleft()
                elif queue and queue[0].before <= position:
                    position = queue[0].what.position
                    # No name is left for it: whoever takes it can free it, in parts.
                    yield _own(queue.popleft().what)
                else:
                    for each in await read_after(position):
                        position = each.what.position
                        yield each.what
        finally:
            self._queues.remove(queue)


def _own(what: StoreChange | StoreReset) -> StoreChange | StoreReset:
    """Return what one of several may have alone: whoever gets a list of everything empties it."""
    return what._replace(bindings=list(what.bindings)) if isinstance(what, StoreReset) else what
