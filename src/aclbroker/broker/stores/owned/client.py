"""A store that another process of this broker has opened, as one of those who use it sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from time import monotonic
from typing import Any, Final, TypeVar

from aclbroker.acl.bindings import AclBinding, ResourcePattern
from aclbroker.broker.config.store_url import ZOOKEEPER
from aclbroker.broker.stores.owned.channel import Channel, Message
from aclbroker.broker.stores.owned.forms import (
    added_of,
    bindings_of,
    change_items,
    news_of,
    patterns_of,
    removed_of,
)
from aclbroker.broker.stores.recent_changes import records_changed
from aclbroker.broker.stores.store import (
    NOTHING_MISSED,
    AclStore,
    Missed,
    Origin,
    Plan,
    StoreChange,
    StoreError,
    StoreReset,
    StoreStatus,
    StoreUnavailable,
)
from aclbroker.broker.turns import Turns

T = TypeVar("T")

_ATTEMPTS: Final = 100
"""How often a change is planned anew because another process has made one before."""


class OwnedStore:
    """The store that its owner knows by a name; all go through a channel to it.

    Whoever follows it tells the owner by asking for the next change that the one before has taken
    effect. The owner waits for that before a change is answered.
    """

    is_shared = True

    def __init__(self, channel: Channel, name: str) -> None:
        self._channel = channel
        self._name = name
        self._turns = Turns()
        self._streams: dict[int, asyncio.Queue[Message | None]] = {}
        self._numbers = 0
        self._is_open = False
        self._unreadable: tuple[ResourcePattern, ...] = ()
        self._silent_s, self._is_outdated = 0.0, False
        self._told = 0
        self._told_at = monotonic()
        channel.handlers[f"news {name}"] = self._take_news
        channel.handlers[f"silent {name}"] = self._take_silence

    async def open(self) -> None:
        """Have the owner open the store, if that is still to be done."""
        self._unreadable = patterns_of((await self._channel.ask("open", self._name)).items)
        self._is_open = True

    async def status(self) -> StoreStatus:
        """Return what the store says of itself; it is new for the first who asks."""
        return StoreStatus(*await self._ask("status"))

    async def cluster_id(self) -> str:
        """Return the id that was made with the store."""
        return str(await self._ask("cluster_id"))

    async def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all bindings in the lists that the store gives; one is asked for ahead."""
        number = await self._ask("load")
        ahead = asyncio.create_task(self._channel.ask("load_next", [self._name, number]))
        try:
            while items := (await ahead).items:
                ahead = asyncio.create_task(self._channel.ask("load_next", [self._name, number]))
                yield await self._run(bindings_of, items)
        finally:
            ahead.cancel()
            self._channel.tell("load_end", [self._name, number])

    async def position(self) -> int:
        """Return the position of the last change."""
        return int(await self._ask("position"))

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove bindings; when it returns, no process decides without the change."""
        return int(await self._ask("apply", origin, items=change_items(added, removed)))

    async def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return the changes after a position; the owner waits for who has followed it last."""
        self._require_open()
        self._numbers += 1
        number = self._numbers
        news = self._streams[number] = asyncio.Queue()
        try:
            try:
                await self._channel.ask("follow", [self._name, number, position])
            except StoreUnavailable:
                if self._is_open:
                    raise
                return
            while (told := await news.get()) is not None:
                change = await self._run(news_of, told.value["head"], told.items)
                if isinstance(change, StoreReset):
                    self._unreadable = tuple(change.unreadable)
                yield change
                self._channel.tell("applied", [self._name, number, change.position])
        finally:
            self._streams.pop(number, None)
            self._channel.tell("unfollow", [self._name, number])

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        self._require_open()
        answer = await self._channel.ask("load_records", [self._name, kind])
        return dict(answer.items)

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Put and remove records, as `apply` does."""
        items = change_items(records=records_changed(kind, put, removed))
        return int(await self._ask("apply_records", kind, origin, items=items))

    async def claim(
        self, kind: str, wanted: Mapping[str, str], origin: Origin
    ) -> Mapping[str, str]:
        """Give records values where they have none; return what all have then."""
        self._require_open()
        value = [self._name, kind, origin]
        return dict((await self._channel.ask("claim", value, tuple(wanted.items()))).items)

    async def close(self) -> None:
        """End what is followed. The store stays open: it is its owner's."""
        self._is_open = False
        for news in self._streams.values():
            news.put_nowait(None)

    async def _ask(self, name: str, *values: Any, items: Any = ()) -> Any:
        self._require_open()
        return (await self._channel.ask(name, [self._name, *values], items)).value

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreError("the ACL store is not open")

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        made: T | Awaitable[T] = self._turns.run("", function, *args)
        return await made if isinstance(made, Awaitable) else made

    def _take_news(self, told: Message) -> None:
        self._told = max(self._told, told.value["head"]["position"])
        news = self._streams.get(told.value["stream"])
        if news is not None:
            news.put_nowait(told)

    def _take_silence(self, told: Message) -> None:
        self._silent_s, self._is_outdated = told.value
        self._told_at = monotonic()


class DistantOwnedStore(OwnedStore):
    """One whose owner does not have it in this machine, either."""

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing has been heard of it: by the owner, or of the owner."""
        return self._silent_s + monotonic() - self._told_at

    @property
    def is_outdated(self) -> bool:
        """Whether the owner may have missed removals, and is reading the store anew."""
        return self._is_outdated

    def unread(self, position: int) -> int | None:
        """Return that it is not known here."""
        return None


class SerialOwnedStore(DistantOwnedStore):
    """One in a file, which keeps others from changing it for a moment."""

    @property
    def told(self) -> int:
        """Up to which position all is on its way to those who follow."""
        return self._told

    async def transact(self, position: int, plan: Plan, origin: Origin) -> int:
        """Make what a plan says, as `SerialStore.transact` does.

        The owner makes it if nothing else was changed. Otherwise it tells what was, and is asked
        anew with what the plan says of that. Raises `StoreUnavailable` where that goes on and on.
        """
        missed, since = NOTHING_MISSED, position
        for _ in range(_ATTEMPTS):
            added, removed = plan(missed)
            value = [self._name, since, origin]
            answer = await self._channel.ask("transact", value, change_items(added, removed))
            is_made, since = answer.value
            if is_made:
                return int(since)
            later = (
                await self._run(added_of, answer.items),
                await self._run(removed_of, answer.items),
            )
            missed = _both(missed, Missed(set(later[0]), set(later[1])))
        raise StoreUnavailable("others change the ACLs all the time; try again")

    async def apply_records_since(
        self,
        position: int,
        kind: str,
        put: Mapping[str, str],
        removed: Collection[str],
        origin: Origin,
    ) -> int:
        """Put and remove records if none of them was changed since a position."""
        items = change_items(records=records_changed(kind, put, removed))
        return int(await self._ask("apply_records_since", position, kind, origin, items=items))


def _both(first: Missed, then: Missed) -> Missed:
    """Return what changes and later ones have added and removed in the end."""
    return Missed(
        (first.added - then.removed) | then.added, (first.removed - then.added) | then.removed
    )


class LimitedOwnedStore(DistantOwnedStore):
    """One in ZooKeeper, which cannot keep every ACL."""

    def refusal(self, binding: AclBinding) -> str | None:
        """Tell why an ACL cannot be kept; None if it can."""
        from aclbroker.broker.stores.zookeeper import layout

        reason = layout.refusal(binding)
        if reason is None and binding.pattern in self._unreadable:
            path = layout.node_path(binding.pattern)
            return f"The ACLs of {path} in ZooKeeper cannot be read, so they are not changed."
        return reason

    def unreadable(self) -> Sequence[ResourcePattern]:
        """Return the patterns whose ACLs cannot be read."""
        return self._unreadable


def owned_store(channel: Channel, name: str, url: str) -> AclStore:
    """Return the store that the owner at the other end of a channel opens under a name.

    What kind of store it is follows from its URL.
    """
    if url.startswith(ZOOKEEPER):
        return LimitedOwnedStore(channel, name)
    if url.startswith("kafka://"):
        return DistantOwnedStore(channel, name)
    return (
        OwnedStore(channel, name) if url.startswith("memory:") else SerialOwnedStore(channel, name)
    )
