"""Authorizers that share a store decide by each other's changes, and by their own once answered."""

import asyncio
from contextlib import asynccontextmanager
from itertools import count

import pytest
from structlog.testing import capture_logs

from aclbroker.acl.authorizer import AclError, RequestContext, Session
from aclbroker.acl.bindings import AclFilter
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.follower import Follower
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.authorizer.writer import AclWriter
from aclbroker.broker.stores import Origin, StoreError, StoreUnavailable
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.store import StoreReset
from aclbroker.broker.turns import Turns
from tests.acl.examples import PREFIXED, READ, TOPIC, allow, allowed, deny
from tests.stores.origins import ORIGIN

MANY = 5_000


def request(principal="User:admin", host="192.0.2.1"):
    return RequestContext(Session((principal,), host, "PLAINTEXT"), 30, 3, None, 1)


def may_read(authorizer, principal="User:alice"):
    [decision] = authorizer.authorize(request(principal), READ, TOPIC, ["orders"])
    return decision.allowed


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def authorizers(store, number=2):
    made = [StandardAuthorizer(store) for _ in range(number)]
    for each in made:
        each.configure({})
        await each.start()
    try:
        yield made
    finally:
        for each in made:
            await each.close()


@pytest.fixture
def store():
    return MemoryStore(is_shared=True)


async def test_what_one_grants_and_revokes_holds_for_the_others(store):
    async with authorizers(store) as (one, other):
        await one.create_acls(request(), [allow()])
        assert may_read(one)
        await until(lambda: may_read(other))
        [result] = await other.delete_acls(request(), [AclFilter()])
        assert result.bindings == [allow()]
        assert not may_read(other)
        await until(lambda: not may_read(one))


async def test_a_change_holds_for_who_made_it_when_it_is_answered(store):
    async with authorizers(store, 3) as three:

        async def grant_and_revoke(authorizer, principal):
            for _ in range(20):
                await authorizer.create_acls(request(), [allow(principal)])
                assert may_read(authorizer, principal)
                await authorizer.delete_acls(request(), [AclFilter(principal=principal)])
                assert not may_read(authorizer, principal)
            await authorizer.create_acls(request(), [allow(principal)])

        await asyncio.gather(*(grant_and_revoke(each, f"User:{n}") for n, each in enumerate(three)))
        expected = sorted(allow(f"User:{n}") for n in range(3))
        for each in three:
            await until(lambda each=each: sorted(each.acls(AclFilter())) == expected)


async def test_what_is_changed_while_an_authorizer_starts_is_not_missed(store):
    acls = [allow(f"User:{number}") for number in range(MANY)]
    await store.open()
    await store.apply(acls, [], ORIGIN)

    class Slow(MemoryStore):
        """Is changed by others between its position, its ACLs and what it tells."""

        is_shared = True

        def __init__(self):
            self.__dict__ = store.__dict__

        async def load(self):
            await store.apply([allow("User:early")], acls[:1], ORIGIN)
            async for chunk in super().load():
                yield chunk
            await store.apply([allow("User:late")], [allow("User:early")], ORIGIN)

    async with authorizers(Slow(), 1) as [one]:
        expected = sorted([*acls[1:], allow("User:late")])
        assert sorted(one.acls(AclFilter())) == expected


class Lagging(MemoryStore):
    """A shared store that tells nothing until it may, and then, if so told, only what there is."""

    def __init__(self):
        super().__init__(is_shared=True)
        self.may_tell = asyncio.Event()
        self.forgets = False

    async def follow(self, position):
        async for each in super().follow(position):
            await self.may_tell.wait()
            if self.forgets:
                yield StoreReset(self._recent.position, list(self._bindings), {})
            else:
                yield each


@asynccontextmanager
async def following(store, index):
    # A turn is over after some hundred ACLs, however fast the machine is.
    turns = Turns(count(0, 0.001).__next__)
    await store.open()
    follower = Follower(store, index, turns)
    await follower.start(await store.position())
    writer = AclWriter(store, index, turns=turns, follower=follower)
    try:
        yield follower, writer
    finally:
        await writer.close()
        await follower.close()


async def test_a_change_is_answered_when_it_came_back_from_the_store():
    store, index = Lagging(), AclIndex()
    async with following(store, index) as (_, writer):
        creation = asyncio.create_task(writer.create([allow()]))
        await until(lambda: store._recent.position)
        assert allow() not in index
        assert not creation.done()
        store.may_tell.set()
        [result] = await creation
        assert result.error_code == AclError.NONE
        assert allow() in index


async def test_closing_ends_the_wait_for_a_change_that_does_not_come_back():
    store, index = Lagging(), AclIndex()
    async with following(store, index) as (follower, writer):
        creation = asyncio.create_task(writer.create([allow()]))
        await until(lambda: store._recent.position)
        with capture_logs() as logs:
            await follower.close()
            [result] = await creation
        assert result.error_code == AclError.REQUEST_TIMED_OUT
        assert "has not seen it" in str(result.error_message)
        assert [each["event"] for each in logs] == ["ACLs not changed"]


async def test_all_that_there_is_replaces_what_there_was_and_allows_nothing_in_between():
    store, index = Lagging(), AclIndex()
    store.forgets = True
    before = [allow(name="ord", pattern_type=PREFIXED), deny()]
    before += [allow(f"User:{n}", name=f"topic-{n}") for n in range(MANY)]
    for binding in before:
        index.add(binding)
    async with following(store, index) as (follower, _):
        after = [allow(), *before[MANY // 2 :], deny(name="ord", pattern_type=PREFIXED)]
        position = await store.apply(after, [], ORIGIN)
        reached = asyncio.create_task(follower.has_reached(position))
        store.may_tell.set()
        turns = 0
        while not reached.done():
            assert not allowed(StandardAuthorizerData(index))
            await asyncio.sleep(0)
            turns += 1
        assert turns > 10
        assert sorted(index) == sorted(after)


async def test_records_that_others_change_are_told_to_who_listens(store):
    index = AclIndex()
    heard = []
    async with following(store, index) as (follower, _):
        follower.listen("scram", lambda values, is_all: heard.append((values, is_all)))
        await store.apply_records("token", {"a": "1"}, [], ORIGIN)
        await store.apply_records("scram", {"a": "1", "b": "2"}, [], ORIGIN)
        last = await store.apply_records("scram", {"a": "3"}, ["b"], ORIGIN)
        assert await follower.has_reached(last)
        assert heard == [({"a": "1", "b": "2"}, False), ({"a": "3", "b": None}, False)]


async def test_records_that_came_in_between_unseen_are_told_all_together(store):
    heard = []
    await store.open()
    await store.apply_records("scram", {"a": "1"}, [], ORIGIN)
    await store.apply([allow(name=f"topic-{n}") for n in range(12_000)], [], ORIGIN)
    follower = Follower(store, AclIndex())
    follower.listen("scram", lambda values, is_all: heard.append((values, is_all)))
    follower.listen("token", lambda values, is_all: heard.append((values, is_all)))
    await follower.start(0)
    await follower.close()
    assert heard == [({"a": "1"}, True), ({}, True)]


class Unreachable(MemoryStore):
    """A shared store that cannot be reached for changes."""

    def __init__(self):
        super().__init__(is_shared=True)
        self.is_away = True

    async def apply(self, added, removed, origin):
        if self.is_away:
            raise StoreUnavailable("nobody answers")
        return await super().apply(added, removed, origin)


async def test_changes_may_be_tried_again_when_the_store_was_away_and_decisions_go_on():
    store = Unreachable()
    store._bindings[allow("User:bob")] = None
    async with authorizers(store, 1) as [one]:
        with capture_logs() as logs:
            [created] = await one.create_acls(request(), [allow()])
            [deleted] = await one.delete_acls(request(), [AclFilter()])
        assert {created.error_code, deleted.error_code} == {AclError.REQUEST_TIMED_OUT}
        assert [each["reason"] for each in logs] == ["nobody answers"] * 2
        assert may_read(one, "User:bob")
        store.is_away = False
        await one.create_acls(request(), [allow()])
        assert may_read(one)


class Failing(MemoryStore):
    """A shared store that fails once in telling what was changed."""

    def __init__(self):
        super().__init__(is_shared=True)
        self.failures = iter([StoreError("a cut cable"), ZeroDivisionError()])

    async def follow(self, position):
        async for each in super().follow(position):
            for failure in self.failures:
                raise failure
            yield each


async def test_a_store_that_fails_to_tell_is_followed_again(monkeypatch):
    monkeypatch.setattr("aclbroker.broker.authorizer.follower._RETRY_S", 0.001)
    async with authorizers(Failing(), 1) as [one]:
        with capture_logs() as logs:
            await one.create_acls(request(), [allow()])
        assert may_read(one)
        assert [(each["event"], each["reason"]) for each in logs] == [
            ("ACL store cannot be followed", "a cut cable")
        ]


async def test_changes_carry_who_asked_and_from_where(store):
    async with authorizers(store, 1) as [one]:
        await one.create_acls(request("User:carol", "2001:db8::1"), [allow()])
        await one.delete_acls(request("User:dave", "192.0.2.9"), [AclFilter()])
        news = store.follow(0)
        told = [await anext(news) for _ in range(2)]
    assert [(each.origin.principal, each.origin.host) for each in told] == [
        ("User:carol", "2001:db8::1"),
        ("User:dave", "192.0.2.9"),
    ]
    assert all(abs(each.origin.time_ms - Origin.now().time_ms) < 60_000 for each in told)
