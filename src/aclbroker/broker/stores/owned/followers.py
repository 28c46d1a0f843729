"""Who follows a store that this process owns, and up to where each has applied its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.owned.channel import Channel
from aclbroker.broker.stores.owned.feed import Feed
from aclbroker.broker.stores.owned.forms import news_head, news_items
from aclbroker.broker.stores.store import (
    AclStore,
    DistantStore,
    ForgetfulStore,
    StoreChange,
    StoreError,
    StoreReset,
)
from aclbroker.broker.stores.waking import Wakeup

log = get_logger()

PATIENCE_S: Final = 10.0
"""How long a process may take to apply a change, and for each entry of it `_ENTRY_S` more."""

TooLate = Callable[[str], Awaitable[None]]
"""Ends a process for a reason, and returns when it has ended."""

_ENTRY_S: Final = 0.0001
_BEAT_S: Final = 0.5
_RETRY_S: Final = 1.0
_FAILED: Final = "ACL store cannot be followed"


class _Follower:
    """One process: up to where it has applied what its latest stream tells it."""

    def __init__(self, channel: Channel, too_late: TooLate) -> None:
        self.channel = channel
        self.too_late = too_late
        self.stream = 0
        self.applied = 0
        self.deadline = 0.0
        self.task: asyncio.Task[None] | None = None

    def end(self) -> None:
        if self.task is not None:
            self.task.cancel()
            self.task = None


class Followers:
    """The processes that follow one store, each from when it first does until it is gone."""

    def __init__(self, name: str, store: AclStore, feed: Feed, patience_s: float) -> None:
        self._name = name
        self._store = store
        self._feed = feed
        self._patience_s = patience_s
        self._followers: dict[Channel, _Follower] = {}
        self._changed = Wakeup()
        self._beat: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to tell for how long nothing has been heard of the store, if it is elsewhere."""
        if isinstance(self._store, DistantStore):
            self._beat = asyncio.create_task(self._tell_silence(self._store))

    def close(self) -> None:
        """Tell nobody anything any more."""
        if self._beat is not None:
            self._beat.cancel()
        for channel in list(self._followers):
            self.leave(channel)

    def follow(self, channel: Channel, stream: int, position: int, too_late: TooLate) -> None:
        """Tell a process all changes after a position; it has applied those up to there."""
        follower = self._followers.setdefault(channel, _Follower(channel, too_late))
        follower.end()
        follower.stream, follower.applied = stream, position
        follower.task = asyncio.create_task(self._tell(follower, stream, position))

    def unfollow(self, channel: Channel, stream: int) -> None:
        """Tell a process no more; changes wait for it until it follows again, or is gone."""
        follower = self._followers.get(channel)
        if follower is not None and follower.stream == stream:
            follower.end()

    def applied(self, channel: Channel, stream: int, position: int) -> None:
        """Note that a process has applied all changes up to a position."""
        follower = self._followers.get(channel)
        if follower is not None and follower.stream == stream:
            follower.applied = position
            self._changed.wake()

    def leave(self, channel: Channel) -> None:
        """Forget a process that is gone."""
        follower = self._followers.pop(channel, None)
        if follower is not None:
            follower.end()
        self._changed.wake()

    async def all_have(self, position: int) -> None:
        """Wait until all have applied a position. Who has not in time is told, and must end."""
        begin = asyncio.get_running_loop().time() + self._patience_s
        while behind := [each for each in self._followers.values() if each.applied < position]:
            # Who has just been told of something large has longer for that.
            due = {each: max(begin, each.deadline) for each in behind}
            try:
                async with asyncio.timeout_at(min(due.values())):
                    await self._changed.wait()
            except TimeoutError:
                first = min(behind, key=due.__getitem__)
                if first.applied < position:
                    await first.too_late("it has not applied a change of the ACL store in time")
                    self.leave(first.channel)

    async def _tell(self, follower: _Follower, stream: int, position: int) -> None:
        """Tell a process of changes as they come; where that fails, go on after the last one."""
        while True:
            try:
                async for news in self._feed.follow(position):
                    seconds = self._patience_s + _entries_of(news) * _ENTRY_S
                    follower.deadline = asyncio.get_running_loop().time() + seconds
                    head = {"stream": stream, "head": news_head(news)}
                    await follower.channel.tell_all(f"news {self._name}", head, news_items(news))
                    position = news.position
                return
            except StoreError as error:
                log.error(_FAILED, reason=str(error))
            except Exception:
                log.exception(_FAILED)
            await asyncio.sleep(_RETRY_S)

    async def _tell_silence(self, store: DistantStore) -> None:
        while True:
            is_outdated = isinstance(store, ForgetfulStore) and store.is_outdated
            for channel in self._followers:
                channel.tell(f"silent {self._name}", [store.silent_s, is_outdated])
            await asyncio.sleep(_BEAT_S)


def _entries_of(news: StoreChange | StoreReset) -> int:
    if isinstance(news, StoreReset):
        return len(news.bindings) + len(news.records)
    return len(news.added) + len(news.removed) + len(news.records)
