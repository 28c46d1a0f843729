"""The one task that changes the index of a store that others change, too.

It takes what the store's `follow` brings: the changes of all, in their order, one's own included.
So a change is visible here when it is here, and whoever made it waits for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, Final

from aclbroker.acl.bindings import AclBinding, ResourcePattern
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.index_changes import IndexChanges
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.pieces import emptied
from aclbroker.broker.stores.store import AclStore, StoreChange, StoreError, StoreReset
from aclbroker.broker.turns import Turns
from aclbroker.turns import in_turns, pause

log = get_logger()

_PATIENCE_S: Final = 30.0
"""How long a change of one's own is waited for: as Kafka's brokers wait for their controller."""

_RETRY_S: Final = 1.0
_FREED_AT_ONCE: Final = 256

RecordListener = Callable[[Mapping[str, str | None], bool], None]
"""Is told the new values of records by name, None for one that was removed; and whether these are
all that there are."""


class Follower:
    """Brings the index of a shared store up to date, and keeps it there until `close`.

    `start` begins to follow. Long changes take ``turns``. Who keeps
    records of a kind in memory, too, is told of their changes by `listen`.
    """

    def __init__(self, store: AclStore, index: AclIndex, turns: Turns | None = None) -> None:
        self._store = store
        self._index = index
        self._changes = IndexChanges(index, turns)
        self._listeners: dict[str, RecordListener] = {}
        self.position = 0
        """Up to where the index has the changes of the store."""

        self.also_withheld: Collection[ResourcePattern] = ()
        """What the index is to deny besides what has ACLs that cannot be read."""

        self._moved = asyncio.Event()
        self._is_bringing = False
        self._fails = False
        self._task: asyncio.Task[None] | None = None

    def listen(self, kind: str, listener: RecordListener) -> None:
        """Have a function told of changes of the records of a kind, from the next one on."""
        self._listeners[kind] = listener

    async def start(self, position: int) -> None:
        """Follow the store from a position that was asked for before the index was filled.

        Return when the index has all that is durable now: until then it may have mixed an old
        state with a new one. Raises `StoreError` if that is not reached in time.
        """
        self.position = position
        self._task = asyncio.create_task(self._follow())
        if not await self.has_reached(await self._store.position()):
            raise StoreError("the ACL store did not tell what was changed while it was loaded")

    async def has_reached(self, position: int, patience_s: float = _PATIENCE_S) -> bool:
        """Wait until the index has all changes up to a position; return whether it has in time."""
        try:
            async with asyncio.timeout(patience_s):
                while self.position < position and self._task is not None:
                    await self._moved.wait()
        except TimeoutError:
            pass
        return self.position >= position

    async def settled(self) -> None:
        """Wait until the index holds no partly applied change."""
        while self._is_bringing and self._task is not None:
            await self._moved.wait()

    async def close(self) -> None:
        """Stop following; whoever waits for a position waits no longer."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self._wake()

    async def _follow(self) -> None:
        while True:
            try:
                await self._take(self._store.follow(self.position))
                return
            except StoreError as error:
                self._tell_once(log.error, reason=str(error))
            except Exception:  # noqa: BLE001 # a bug must not end what keeps decisions up to date
                self._tell_once(log.exception)
            await asyncio.sleep(_RETRY_S)

    def _tell_once(self, write: Callable[..., Any], **values: str) -> None:
        if not self._fails:
            write("ACL store cannot be followed", **values)
        self._fails = True

    async def _take(self, news: AsyncIterator[StoreChange | StoreReset]) -> None:
        async for each in news:
            self._fails = False
            # If this fails, the index holds a part of the change until the change is applied again.
            self._is_bringing = True
            await self._bring(each)
            self._is_bringing = False
            self._tell(each)
            self.position = each.position
            self._wake()
            if isinstance(each, StoreReset):
                # Nobody else has it, and later many of its ACLs may be nowhere but in there.
                await emptied(each.bindings)
                continue
            rest = [*each.added, *each.removed]
            # Others may be told the same list. What is freed must be held by nothing else.
            del each
            await emptied(rest)

    async def _bring(self, news: StoreChange | StoreReset) -> None:
        """Have the index take what is told."""
        if isinstance(news, StoreChange):
            await self._changes.make(news.added, news.removed)
            return
        withhold(self._index, news.unreadable)
        added, removed = await self._changes.run(self._difference, news.bindings)
        await self._changes.make(added, removed)
        release(self._index, {*news.unreadable, *self.also_withheld})
        await emptied(added)
        await emptied(removed)

    def _difference(
        self, bindings: Collection[AclBinding]
    ) -> tuple[list[AclBinding], list[AclBinding]]:
        """Return what must be added to the index, and removed, to leave it with these ACLs."""
        added = [binding for binding in in_turns(bindings) if binding not in self._index]
        staying = set(in_turns(bindings))
        # Listing takes turns by itself, and nobody else changes the index meanwhile.
        removed = [binding for binding in self._index if binding not in staying]
        while staying:
            pause()
            for _ in range(min(_FREED_AT_ONCE, len(staying))):
                staying.pop()
        return added, removed

    def _tell(self, news: StoreChange | StoreReset) -> None:
        """Tell the listeners which records have other values now."""
        is_all = isinstance(news, StoreReset)
        by_kind: dict[str, dict[str, str | None]] = {}
        if is_all:
            by_kind = {kind: {} for kind in self._listeners}
        for (kind, name), value in news.records.items():
            by_kind.setdefault(kind, {})[name] = value
        for kind, values in by_kind.items():
            if kind in self._listeners:
                self._listeners[kind](values, is_all)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


def withhold(index: AclIndex, patterns: Collection[ResourcePattern]) -> None:
    """Let an index deny what has ACLs that cannot be read."""
    for pattern in set(patterns) - index.withheld:
        index.withhold(pattern)


def release(index: AclIndex, patterns: Collection[ResourcePattern]) -> None:
    """Let an index deny nothing but what has ACLs that cannot be read."""
    for pattern in index.withheld - set(patterns):
        index.release(pattern)
