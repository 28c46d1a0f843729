"""A store of another process: a change is answered when all who follow it have applied it."""

import asyncio
import gc
import threading
from contextlib import AsyncExitStack
from functools import partial

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import StoreError, StoreUnavailable, open_store
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.owned.channel import Channel
from aclbroker.broker.stores.owned.client import (
    DistantOwnedStore,
    LimitedOwnedStore,
    OwnedStore,
    SerialOwnedStore,
    owned_store,
)
from aclbroker.broker.stores.owned.service import OwnedStores
from aclbroker.broker.stores.store import (
    DistantStore,
    LimitedStore,
    Missed,
    SerialStore,
    StoreChange,
    StoreConflict,
)
from tests.acl.examples import allow, deny
from tests.stores.origins import ORIGIN
from tests.stores.owned import NAME, Link

LONG = 60.0


class Process:
    """One that uses a store of another: what it has applied is what it was told."""

    def __init__(self, link: Link, store: OwnedStore) -> None:
        self.link = link
        self.store = store
        self.bindings: set[AclBinding] = set()
        self.may_apply = asyncio.Event()
        self.may_apply.set()

    async def follow(self) -> None:
        async for news in self.store.follow(0):
            await self.may_apply.wait()
            assert isinstance(news, StoreChange)
            self.bindings = (self.bindings | set(news.added)) - set(news.removed)


@pytest.fixture
async def stores():
    made = OwnedStores({NAME: MemoryStore(is_shared=True)}, patience_s=LONG)
    yield made
    await made.close()


async def joined(running: AsyncExitStack, stores: OwnedStores, too_late=None) -> Process:
    link = Link(stores, too_late) if too_late else Link(stores)
    store = OwnedStore(await link.open(), NAME)
    await store.open()
    process = Process(link, store)
    following = asyncio.create_task(process.follow())
    running.push_async_callback(link.close)
    running.callback(following.cancel)
    # The owner knows that it follows when it has answered something that was asked later.
    await asyncio.sleep(0)
    await store.position()
    return process


async def test_a_change_is_answered_when_all_have_applied_it(stores):
    async with AsyncExitStack() as running:
        one, other = await joined(running, stores), await joined(running, stores)
        other.may_apply.clear()
        change = asyncio.create_task(one.store.apply([allow(), deny()], [], ORIGIN))
        while not one.bindings:
            await asyncio.sleep(0)
        await one.store.position()
        assert not change.done()
        other.may_apply.set()
        await change
        assert one.bindings == other.bindings == {allow(), deny()}
        await other.store.apply([], [allow()], ORIGIN)
        assert one.bindings == other.bindings == {deny()}


async def test_nobody_waits_for_a_process_that_is_gone(stores):
    async with AsyncExitStack() as running:
        one, other = await joined(running, stores), await joined(running, stores)
        other.may_apply.clear()
        change = asyncio.create_task(one.store.apply([allow()], [], ORIGIN))
        while not one.bindings:
            await asyncio.sleep(0)
        await other.link.close()
        await change


class Slow(MemoryStore):
    """One in which a change is made when it may be."""

    def __init__(self) -> None:
        super().__init__(is_shared=True)
        self.is_asked = asyncio.Event()
        self.may_change = asyncio.Event()

    async def apply(self, *change):
        self.is_asked.set()
        await self.may_change.wait()
        return await super().apply(*change)


async def test_a_change_is_made_and_told_though_the_process_that_asked_is_gone():
    store = Slow()
    stores = OwnedStores({NAME: store}, patience_s=LONG)
    async with AsyncExitStack() as running:
        one, other = await joined(running, stores), await joined(running, stores)
        change = asyncio.create_task(one.store.apply([deny()], [], ORIGIN))
        await store.is_asked.wait()
        await one.link.close()
        with pytest.raises(StoreUnavailable):
            await change
        store.may_change.set()
        async with asyncio.timeout(10):
            while other.bindings != {deny()}:
                await asyncio.sleep(0)
    await stores.close()


async def test_a_process_that_stops_to_follow_is_waited_for_until_it_follows_again(stores):
    async with AsyncExitStack() as running:
        one, other = await joined(running, stores), await joined(running, stores)
        other.store._streams[1].put_nowait(None)
        while other.store._streams:
            await asyncio.sleep(0)
        change = asyncio.create_task(one.store.apply([allow()], [], ORIGIN))
        while not one.bindings:
            await asyncio.sleep(0)
        assert not change.done()
        again = asyncio.create_task(other.follow())
        running.callback(again.cancel)
        await change
        assert other.bindings == {allow()}


async def test_a_process_that_is_too_slow_is_ended_before_the_change_is_answered():
    stores = OwnedStores({NAME: MemoryStore(is_shared=True)}, patience_s=0.05)
    ended = []
    async with AsyncExitStack() as running:

        async def end(reason: str) -> None:
            ended.append(reason)

        one = await joined(running, stores)
        other = await joined(running, stores, end)
        other.may_apply.clear()
        await one.store.apply([allow()], [], ORIGIN)
        assert len(ended) == 1
        assert "has not applied" in ended[0]
    await stores.close()


async def test_without_its_owner_a_store_is_out_of_reach(stores):
    async with AsyncExitStack() as running:
        one = await joined(running, stores)
        waiting = asyncio.create_task(one.store.load_records("scram"))
        one.link.owner.close()
        with pytest.raises(StoreUnavailable):
            await waiting
        with pytest.raises(StoreUnavailable):
            await one.store.position()


async def test_a_closed_store_is_not_used(stores):
    async with AsyncExitStack() as running:
        one = await joined(running, stores)
        await one.store.close()
        with pytest.raises(StoreError, match="not open"):
            await one.store.load_records("scram")
        with pytest.raises(StoreError, match="not open"):
            await anext(one.store.follow(0))


class Broken(MemoryStore):
    async def cluster_id(self) -> str:
        raise ValueError("a bug")

    async def load_records(self, kind: str) -> dict[str, str]:
        raise StoreUnavailable("it is far away")

    async def apply_records(self, *_change):
        raise StoreError("it is full")


async def test_what_fails_at_the_owner_fails_where_it_was_asked_for():
    stores = OwnedStores({NAME: Broken()})
    link = Link(stores)
    store = OwnedStore(await link.open(), NAME)
    await store.open()
    with pytest.raises(StoreUnavailable, match="it is far away"):
        await store.load_records("scram")
    with pytest.raises(StoreError, match="it is full") as error:
        await store.apply_records("scram", {"a": "b"}, (), ORIGIN)
    assert not isinstance(error.value, StoreUnavailable)
    with pytest.raises(StoreError, match="its log says why"):
        await store.cluster_id()
    assert stores.opened
    await link.close()
    await stores.close()


class Elsewhere(MemoryStore):
    """A store that is silent, misses removals and has unreadable ACLs, as a remote one may."""

    silent_s = 1000.0
    is_outdated = True

    def unread(self, _position):
        return 7

    def unreadable(self):
        return [allow(name="odd").pattern]

    def refusal(self, _binding):
        return None


async def test_what_an_owner_knows_of_a_distant_store_all_do():
    stores = OwnedStores({NAME: Elsewhere(is_shared=True)})
    link = Link(stores)
    store = owned_store(await link.open(), NAME, "zookeeper://127.0.0.1:1/x")
    assert isinstance(store, LimitedOwnedStore)
    await store.open()
    assert list(store.unreadable()) == [allow(name="odd").pattern]
    assert "cannot be read" in (store.refusal(allow(name="odd")) or "")
    assert store.refusal(allow(name="even")) is None
    assert store.refusal(allow(name="a/b"))
    following = asyncio.ensure_future(anext(store.follow(0)))
    async with asyncio.timeout(30):
        while store.silent_s < 1000:
            await asyncio.sleep(0.01)
    assert store.is_outdated
    following.cancel()
    assert store.unread(0) is None
    await link.close()
    await stores.close()


@pytest.fixture
async def of_a_file(tmp_path):
    """Two processes that use a file through its owner."""
    owner = OwnedStores({NAME: open_store(f"sqlite:///{tmp_path}/acl.db")}, patience_s=LONG)
    async with AsyncExitStack() as running:
        links = [Link(owner), Link(owner)]
        stores = []
        for link in links:
            store = owned_store(await link.open(), NAME, "sqlite:///acl.db")
            assert isinstance(store, SerialOwnedStore)
            await store.open()
            running.push_async_callback(link.close)
            stores.append(store)
        yield stores
    await owner.close()


async def test_what_a_process_had_begun_to_read_ends_with_it(tmp_path):
    def is_read() -> bool:
        return any(each.name.startswith("aclbroker-check") for each in threading.enumerate())

    owner = OwnedStores({NAME: open_store(f"sqlite:///{tmp_path}/acl.db")})
    link = Link(owner)
    store = SerialOwnedStore(await link.open(), NAME)
    await store.open()
    # More than is read ahead of who asks.
    await store.apply([allow(name=str(number)) for number in range(50_000)], [], ORIGIN)
    gc.disable()
    try:
        chunks = store.load()
        await anext(chunks)
        assert is_read()
        await link.close()
        async with asyncio.timeout(10):
            while is_read():
                await asyncio.sleep(0.01)
        with pytest.raises(StoreUnavailable):
            assert not [chunk async for chunk in chunks if not chunk]
    finally:
        gc.enable()
        await link.close()
        await owner.close()


async def test_a_plan_is_made_anew_of_what_another_process_has_changed(of_a_file):
    one, other = of_a_file
    begin = await one.position()
    await other.apply([allow(), deny()], [], ORIGIN)
    await other.apply([], [deny()], ORIGIN)
    seen = []

    def plan(missed: Missed):
        seen.append((set(missed.added), set(missed.removed)))
        return [deny(name="new")], list(missed.added)

    position = await one.transact(begin, plan, ORIGIN)
    assert seen == [(set(), set()), ({allow()}, {deny()})]
    assert [acl async for chunk in other.load() for acl in chunk] == [deny(name="new")]
    # What changes nothing writes nothing.
    assert await one.transact(position, lambda _: ((), ()), ORIGIN) == position
    assert await other.position() == position


def planned(change, _missed):
    return change


async def test_many_plans_of_two_processes_are_all_carried_out(of_a_file):
    async def add(store: SerialOwnedStore, name: str) -> None:
        position = 0
        for number in range(20):
            new = [allow(name=f"{name}-{number}")], ()
            position = await store.transact(position, partial(planned, new), ORIGIN)

    await asyncio.gather(*(add(store, f"of-{n}") for n, store in enumerate(of_a_file)))
    found = [acl async for chunk in of_a_file[0].load() for acl in chunk]
    wanted = [allow(name=f"of-{n}-{number}") for n in range(2) for number in range(20)]
    assert sorted(found) == sorted(wanted)


async def test_a_record_that_another_process_has_changed_is_left_as_it_is(of_a_file):
    one, other = of_a_file
    since = await one.position()
    await other.apply_records("scram", {"alice": "theirs"}, (), ORIGIN)
    with pytest.raises(StoreConflict):
        await one.apply_records_since(since, "scram", {"alice": "ours"}, (), ORIGIN)
    await one.apply_records_since(since, "scram", {"bob": "ours"}, (), ORIGIN)
    assert await other.load_records("scram") == {"alice": "theirs", "bob": "ours"}


def test_what_kind_of_store_it_is_follows_from_its_url():
    kinds = {
        "memory:": (OwnedStore, False, False),
        "sqlite:///x": (SerialOwnedStore, True, False),
        "kafka://a:1/x": (DistantOwnedStore, True, False),
        "zookeeper://a:1/x": (LimitedOwnedStore, True, True),
    }
    for url, (kind, is_distant, is_limited) in kinds.items():
        store = owned_store(Channel({}), NAME, url)
        assert type(store) is kind
        assert isinstance(store, DistantStore) == is_distant
        assert isinstance(store, LimitedStore) == is_limited
        assert isinstance(store, SerialStore) == (kind is SerialOwnedStore)


async def test_a_load_and_a_change_of_many_long_names_leave_the_loop_to_others(stores):
    async with AsyncExitStack() as running:
        one = await joined(running, stores)
        acls = [allow(name=f"{number}-{'n' * 20_000}") for number in range(2_000)]
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        counting = asyncio.create_task(count())
        await one.store.apply(acls, [], ORIGIN)
        assert turns > 300
        found = [each async for chunk in one.store.load() for each in chunk]
        counting.cancel()
        assert sorted(found) == sorted(acls)
