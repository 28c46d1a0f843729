"""The owner of stores: serves other processes of this broker, and waits until all have a change.

A change is answered when it is durable and each process that follows the store has applied it. A
process that does not do so in time is told of: it must end, so that nobody is served by what it
still has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.owned.channel import Channel, Handler, Message
from aclbroker.broker.stores.owned.feed import Feed
from aclbroker.broker.stores.owned.followers import PATIENCE_S, Followers, TooLate
from aclbroker.broker.stores.owned.forms import RECORD, added_of, change_items, removed_of
from aclbroker.broker.stores.store import (
    NOTHING_MISSED,
    AclStore,
    LimitedStore,
    Missed,
    Origin,
    SerialStore,
    StoreError,
)
from aclbroker.broker.turns import Turns

_BUSY_S: Final = 0.01


class OwnedStores:
    """Stores by name, which are opened when somebody asks for them and stay so until `close`."""

    def __init__(self, stores: Mapping[str, AclStore], patience_s: float = PATIENCE_S) -> None:
        self._stores = {name: _Owned(name, store, patience_s) for name, store in stores.items()}
        self._sessions: dict[Channel, _Session] = {}
        self._abandoned = _Abandoned()

    @property
    def opened(self) -> list[AclStore]:
        """The stores that are open."""
        return [each.store for each in self._stores.values() if each.is_open]

    async def opened_here(self, name: str) -> AclStore | None:
        """Return a store of this machine, opened; None if it is elsewhere. Raises `StoreError`."""
        owned = self._stores[name]
        if owned.store.is_shared and not isinstance(owned.store, SerialStore):
            return None
        await owned.open()
        return owned.store

    def serve(self, channel: Channel, too_late: TooLate) -> None:
        """Let the process at the other end of a channel use the stores.

        ``too_late`` is awaited, with a reason, when it has not applied a change in time. The
        process must not be able to answer anybody when that returns.
        """
        session = _Session(self._stores, channel, too_late, self._abandoned)
        self._sessions[channel] = session
        channel.handlers.update(session.handlers())

    def leave(self, channel: Channel) -> None:
        """Forget a process that is gone: nobody waits for it, and nothing is read for it."""
        session = self._sessions.pop(channel, None)
        if session is not None:
            session.end()
        for each in self._stores.values():
            each.followers.leave(channel)

    async def close(self) -> None:
        """Close all stores."""
        await self._abandoned.have_ended()
        for each in self._stores.values():
            await each.close()


class _Owned:
    """One store, and who follows it."""

    def __init__(self, name: str, store: AclStore, patience_s: float) -> None:
        self.name = name
        self.store = store
        self.feed = Feed(store)
        self.followers = Followers(name, store, self.feed, patience_s)
        self.is_open = False
        self._is_told = False
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        async with self._opening:
            if not self.is_open:
                await self.store.open()
                await self.feed.start()
                self.is_open = True
                self.followers.start()

    async def status(self) -> tuple[Any, ...]:
        """Return the store's status, for the first time as new if it is."""
        status = await self.store.status()
        is_new, self._is_told = status.is_new and not self._is_told, True
        return tuple(status._replace(is_new=is_new))

    async def close(self) -> None:
        self.followers.close()
        self.feed.end()
        if self.is_open:
            self.is_open = False
            await self.store.close()


class _Abandoned:
    """Loads that nobody goes on with, until each has ended.

    What holds a file open, and its log from being emptied, must not wait for a garbage collector.
    """

    def __init__(self) -> None:
        self._ending: set[asyncio.Task[None]] = set()

    def end(self, chunks: AsyncIterator[list[AclBinding]]) -> None:
        task = asyncio.create_task(_ended(chunks))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def have_ended(self) -> None:
        if self._ending:
            await asyncio.wait(self._ending)


class _Session:
    """What one process asks of the stores."""

    def __init__(
        self,
        stores: Mapping[str, _Owned],
        channel: Channel,
        too_late: TooLate,
        abandoned: _Abandoned,
    ) -> None:
        self._stores = stores
        self._channel = channel
        self._too_late = too_late
        self._loads: dict[int, AsyncIterator[list[AclBinding]]] = {}
        self._abandoned = abandoned
        self._numbers = 0
        self._turns = Turns()

    def handlers(self) -> dict[str, Handler]:
        """Return what takes the requests, by their names."""
        return {
            "open": self._open,
            "status": self._status,
            "cluster_id": self._cluster_id,
            "position": self._position,
            "load": self._load,
            "load_next": self._load_next,
            "load_end": self._load_end,
            "load_records": self._load_records,
            "apply": self._apply,
            "apply_records": self._apply_records,
            "transact": self._transact,
            "apply_records_since": self._apply_records_since,
            "claim": self._claim,
            "follow": self._follow,
            "unfollow": self._unfollow,
            "applied": self._applied,
        }

    def end(self) -> None:
        """End what the process had begun to read, and not read to its end."""
        while self._loads:
            self._abandoned.end(self._loads.popitem()[1])

    async def _open(self, asked: Message) -> Message:
        owned = self._stores[asked.value]
        await owned.open()
        store = owned.store
        unreadable = store.unreadable() if isinstance(store, LimitedStore) else ()
        return Message(items=tuple(change_items(unreadable=unreadable)))

    async def _status(self, asked: Message) -> Message:
        return Message(await self._stores[asked.value[0]].status())

    async def _cluster_id(self, asked: Message) -> Message:
        return Message(await self._stores[asked.value[0]].store.cluster_id())

    async def _position(self, asked: Message) -> Message:
        return Message(await self._stores[asked.value[0]].store.position())

    async def _load(self, asked: Message) -> Message:
        self._numbers += 1
        self._loads[self._numbers] = aiter(self._stores[asked.value[0]].store.load())
        return Message(self._numbers)

    async def _load_next(self, asked: Message) -> Message:
        chunks = self._loads.get(asked.value[1])
        try:
            return Message() if chunks is None else Message(items=await anext(chunks))
        except StopAsyncIteration:
            return Message()

    def _load_end(self, asked: Message) -> None:
        chunks = self._loads.pop(asked.value[1], None)
        if chunks is not None:
            self._abandoned.end(chunks)

    async def _load_records(self, asked: Message) -> Message:
        name, kind = asked.value
        return Message(items=tuple((await self._stores[name].store.load_records(kind)).items()))

    async def _apply(self, asked: Message) -> Message:
        name, origin = asked.value
        owned, items = self._stores[name], asked.items
        added = await self._run(added_of, items)
        removed = await self._run(removed_of, items)
        position = await owned.feed.apply(added, removed, Origin(*origin))
        await owned.followers.all_have(position)
        return Message(position)

    async def _transact(self, asked: Message) -> Message:
        """Make a change if nothing was missed since a position; else tell what was."""
        name, since, origin = asked.value
        owned, items = self._stores[name], asked.items
        wanted = await self._run(added_of, items), await self._run(removed_of, items)
        seen = NOTHING_MISSED

        def plan(missed: Missed) -> tuple[Collection[AclBinding], Collection[AclBinding]]:
            nonlocal seen
            seen = missed
            return ((), ()) if missed.added or missed.removed else wanted

        position = await owned.feed.transact(since, plan, Origin(*origin))
        if seen.added or seen.removed:
            return Message([False, position], tuple(change_items(seen.added, seen.removed)))
        await owned.followers.all_have(position)
        return Message([True, position])

    async def _apply_records(self, asked: Message) -> Message:
        name, kind, origin = asked.value
        owned, (put, removed) = self._stores[name], _records_of(asked.items)
        position = await owned.feed.apply_records(kind, put, removed, Origin(*origin))
        await owned.followers.all_have(position)
        return Message(position)

    async def _apply_records_since(self, asked: Message) -> Message:
        name, since, kind, origin = asked.value
        owned, (put, removed) = self._stores[name], _records_of(asked.items)
        feed = owned.feed
        position = await feed.apply_records_since(since, kind, put, removed, Origin(*origin))
        await owned.followers.all_have(position)
        return Message(position)

    async def _claim(self, asked: Message) -> Message:
        name, kind, origin = asked.value
        owned = self._stores[name]
        found = await owned.feed.claim(kind, dict(asked.items), Origin(*origin))
        return Message(items=tuple(found.items()))

    def _follow(self, asked: Message) -> None:
        name, stream, position = asked.value
        self._stores[name].followers.follow(self._channel, stream, position, self._too_late)

    def _unfollow(self, asked: Message) -> None:
        name, stream = asked.value
        self._stores[name].followers.unfollow(self._channel, stream)

    def _applied(self, asked: Message) -> None:
        name, stream, position = asked.value
        self._stores[name].followers.applied(self._channel, stream, position)

    async def _run(self, function: Callable[..., Any], *args: Any) -> Any:
        made = self._turns.run("", function, *args)
        return await made if isinstance(made, Awaitable) else made


async def _ended(chunks: Any) -> None:
    """Release what a load holds; the chunk that is being made is made first."""
    while True:
        try:
            await chunks.aclose()
        except RuntimeError:
            await asyncio.sleep(_BUSY_S)
        except StoreError:
            return
        else:
            return


def _records_of(items: Sequence[Any]) -> tuple[dict[str, str], list[str]]:
    """Return the records that a change puts, and the names of those that it removes."""
    records = {item[2]: item[3] for item in items if item[0] == RECORD}
    put = {key: value for key, value in records.items() if value is not None}
    return put, [key for key, value in records.items() if value is None]
