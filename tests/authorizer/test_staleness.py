"""What a broker does whose store is silent for long."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.settings import StaleSettings
from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.authorizer.staleness import Staleness
from aclbroker.broker.stores import StoreUnavailable
from aclbroker.broker.stores.memory import MemoryStore
from tests.acl.examples import allow, allowed, deny
from tests.stores.origins import ORIGIN

WITHIN_S = 30.0


class Distant(MemoryStore):
    """A shared store that is silent if so told, and then tells what was changed when it may."""

    def __init__(self):
        super().__init__(is_shared=True)
        self.silent_s = 0.0
        self.may_tell = asyncio.Event()
        self.may_tell.set()

    def unread(self, position):
        return None

    async def position(self):
        if self.silent_s:
            raise StoreUnavailable("it is silent")
        return await super().position()

    async def follow(self, position):
        async for each in super().follow(position):
            await self.may_tell.wait()
            yield each


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr("aclbroker.broker.authorizer.staleness._LOOKS_S", 0.01)


@asynccontextmanager
async def looked_after(store):
    index = AclIndex()
    await store.open()
    follower = Follower(store, index)
    await follower.start(0)
    staleness = Staleness(store, index, StaleSettings(1.0, denies=True), follower)
    staleness.start()
    try:
        yield index, follower, staleness
    finally:
        await staleness.close()
        await follower.close()


async def until(condition):
    async with asyncio.timeout(WITHIN_S):
        while not condition():
            await asyncio.sleep(0.001)


def may_read(index):
    return allowed(StandardAuthorizerData(index))


async def test_all_is_denied_until_what_was_missed_is_in_the_index():
    store = Distant()
    await store.apply([allow()], [], ORIGIN)
    async with looked_after(store) as (index, _, staleness):
        await until(lambda: may_read(index))
        store.silent_s = 5.0
        await until(lambda: staleness.is_stale)
        assert not may_read(index)
        store.may_tell.clear()
        await store.apply([deny()], [], ORIGIN)
        store.silent_s = 0.0
        # It has looked several times since.
        for _ in range(5):
            await asyncio.sleep(0.01)
        assert staleness.is_stale
        assert not may_read(index)
        store.may_tell.set()
        await until(lambda: not staleness.is_stale)
        assert not may_read(index)
        await store.apply([], [deny()], ORIGIN)
        await until(lambda: may_read(index))


class Forgetful(Distant):
    """A store that reports by itself that revokes may be missing."""

    is_outdated = False


async def test_all_is_denied_at_once_while_revokes_may_be_missing():
    store = Forgetful()
    await store.apply([allow()], [], ORIGIN)
    async with looked_after(store) as (index, _, staleness):
        await until(lambda: may_read(index))
        # The store is silent for less time than the settings allow.
        store.silent_s = 0.5
        store.is_outdated = True
        await until(lambda: staleness.is_stale)
        assert not may_read(index)
        store.silent_s = 0.0
        store.is_outdated = False
        await until(lambda: may_read(index))


async def test_a_reset_while_the_store_is_silent_does_not_end_the_denial():
    store = Distant()
    await store.apply([allow()], [], ORIGIN)
    async with looked_after(store) as (index, follower, staleness):
        await until(lambda: may_read(index))
        store.silent_s = 5.0
        await until(lambda: staleness.is_stale)
        # So many are told as all that there is.
        many = [allow(name=f"topic-{number}") for number in range(12_000)]
        assert await follower.has_reached(await store.apply(many, [], ORIGIN))
        assert staleness.is_stale
        assert not may_read(index)
        store.silent_s = 0.0
        await until(lambda: may_read(index))
