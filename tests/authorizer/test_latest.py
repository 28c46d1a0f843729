"""Waiting for the latest ACLs of a store that others share."""

import asyncio

import pytest

from aclbroker.acl.authorizer import LatestAuthorizer
from aclbroker.acl.bindings import AclFilter
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.stores import StoreUnavailable
from aclbroker.broker.stores.memory import MemoryStore
from tests.acl.examples import allow
from tests.stores.origins import ORIGIN

LATEST = {"aclbroker.store.read": "latest"}


class Distant(MemoryStore):
    """A store that others share, asked for its position one time after the other."""

    def __init__(self):
        super().__init__(is_shared=True)
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.is_away = False

    async def position(self):
        self.asked += 1
        await self.may_answer.wait()
        if self.is_away:
            raise StoreUnavailable("it is away")
        return await super().position()


async def started(store, **properties):
    authorizer = StandardAuthorizer(store)
    authorizer.configure(properties)
    await authorizer.start()
    return authorizer


async def test_what_another_broker_has_changed_before_is_listed():
    store = Distant()
    authorizer = await started(store, **LATEST)
    can_catch_up = isinstance(authorizer, LatestAuthorizer)
    assert can_catch_up
    for number in range(20):
        acl = allow(name=f"topic-{number}")
        await store.apply([acl], [], ORIGIN)
        assert await authorizer.catch_up()
        assert acl in list(authorizer.acls(AclFilter()))
    await authorizer.close()


async def test_many_that_ask_together_are_served_by_two_questions():
    store = Distant()
    authorizer = await started(store, **LATEST)
    asked, store.may_answer = store.asked, asyncio.Event()
    asking = [asyncio.create_task(authorizer.catch_up())]
    await asyncio.sleep(0)
    while store.asked == asked:
        await asyncio.sleep(0)
    asking += [asyncio.create_task(authorizer.catch_up()) for _ in range(100)]
    for _ in range(5):
        await asyncio.sleep(0)
    store.may_answer.set()
    assert all(await asyncio.gather(*asking))
    assert store.asked == asked + 2
    await authorizer.close()


async def test_the_time_of_who_waits_for_others_begins_when_they_come(monkeypatch):
    store = Distant()
    authorizer = await started(store, **LATEST)
    store.may_answer = asyncio.Event()
    begun, timeout = [], asyncio.timeout

    def noted(seconds):
        begun.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", noted)
    first = asyncio.create_task(authorizer.catch_up())
    while not begun:
        await asyncio.sleep(0)
    second = asyncio.create_task(authorizer.catch_up())
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun == [10.0, 10.0]
    store.may_answer.set()
    assert all(await asyncio.gather(first, second))
    await authorizer.close()


async def test_a_store_that_is_away_is_said_to_be_and_asked_again():
    store = Distant()
    authorizer = await started(store, **LATEST)
    store.is_away = True
    assert not await authorizer.catch_up()
    store.is_away = False
    assert await authorizer.catch_up()
    await authorizer.close()


async def test_by_default_nobody_waits():
    store = Distant()
    authorizer = await started(store)
    asked = store.asked
    store.is_away = True
    assert authorizer.catch_up() is None
    assert store.asked == asked
    await authorizer.close()


def test_any_other_value_is_refused():
    with pytest.raises(ValueError, match=r"aclbroker.store.read='newest': allowed: local, latest"):
        StandardAuthorizer(MemoryStore()).configure({"aclbroker.store.read": "newest"})
