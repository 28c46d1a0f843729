"""Changes are durable, then visible, then answered, in the order in which they were asked for."""

import asyncio
from contextlib import asynccontextmanager
from itertools import count

import pytest
from structlog.testing import capture_logs

from aclbroker.acl.bindings import AclFilter
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.writer import AclWriter
from aclbroker.broker.observability.limited_log import PEER_BURST, LimitedLog
from aclbroker.broker.stores import Origin, StoreError
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.turns import Turns
from tests.acl.examples import PREFIXED, WRITE, allow, allowed, deny

CREATED = (0, None)
INVALID_REQUEST = 42
UNKNOWN_SERVER_ERROR = -1
MANY = 20_000


class WatchedStore(MemoryStore):
    """A store that tells what it is asked to do, and waits with it until it may."""

    def __init__(self):
        super().__init__()
        self.changes = []
        self.asked = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def apply(self, added, removed, origin):
        self.changes.append((list(added), list(removed)))
        self.asked.set()
        await self.may_go_on.wait()
        return await super().apply(added, removed, origin)


@asynccontextmanager
async def running(store, index):
    # A turn is over after some hundred ACLs, however fast the machine is.
    writer = AclWriter(store, index, turns=Turns(count(0, 0.001).__next__))
    try:
        yield writer
    finally:
        await writer.close()


@pytest.fixture
def index():
    return AclIndex()


@pytest.fixture
async def store():
    return WatchedStore()


@pytest.fixture
async def writer(store, index):
    async with running(store, index) as started:
        yield started


def codes(results):
    return [result.error_code for result in results]


async def test_an_acl_that_exists_is_created_again_without_a_write(writer, store):
    await writer.create([allow(), allow()])
    assert await writer.create([allow(), allow()]) == [CREATED, CREATED]
    assert store.changes == [([allow()], [])]


async def test_a_deletion_that_matches_nothing_makes_no_write(writer, store):
    assert await writer.delete([AclFilter()]) == [(0, None, [])]
    assert await writer.create([]) == []
    assert await writer.delete([]) == []
    assert store.changes == []


async def test_each_filter_lists_all_that_it_matched_at_the_start(writer, index):
    await writer.create([allow(), deny(), allow("User:bob")])
    filters = [AclFilter(principal="User:alice"), AclFilter(), AclFilter(operation=WRITE)]
    results = await writer.delete(filters)
    assert [sorted(result.bindings) for result in results] == [
        sorted([allow(), deny()]),
        sorted([allow(), deny(), allow("User:bob")]),
        [],
    ]
    assert codes(results) == [0, 0, 0]
    assert list(index) == []


async def test_a_change_is_visible_only_when_it_is_durable(writer, index, store):
    store.may_go_on.clear()
    creation = asyncio.create_task(writer.create([allow()]))
    await store.asked.wait()
    assert allow() not in index
    assert not creation.done()
    store.may_go_on.set()
    await creation
    assert allow() in index


async def test_creations_that_wait_go_into_one_transaction(writer, store):
    store.may_go_on.clear()
    first = asyncio.create_task(writer.create([allow("User:0")]))
    await store.asked.wait()
    waiting = [
        asyncio.create_task(writer.create([allow(f"User:{n}"), allow("none")]))
        for n in (1, 2, 1, 0)
    ]
    await asyncio.sleep(0)
    store.may_go_on.set()
    assert codes(await first) == [0]
    for results in await asyncio.gather(*waiting):
        assert codes(results) == [0, INVALID_REQUEST]
    assert [added for added, _ in store.changes] == [
        [allow("User:0")],
        [allow("User:1"), allow("User:2")],
    ]


async def test_creations_of_another_principal_or_host_are_another_transaction(store, index):
    here, there, other = ("User:a", "h1"), ("User:a", "h2"), ("User:b", "h1")
    asked = [here, here, other, there, here]
    async with running(store, index) as writer:
        creations = [
            writer.create([allow(name=f"t{place}")], Origin.now(*who))
            for place, who in enumerate(asked)
        ]
        await asyncio.gather(*creations)
    news = store.follow(0)
    told = [await anext(news) for _ in range(4)]
    assert [([acl.resource_name for acl in each.added], each.origin[:2]) for each in told] == [
        (["t0", "t1"], here),
        (["t2"], other),
        (["t3"], there),
        (["t4"], here),
    ]


async def test_deletions_keep_their_place_among_creations(writer, index, store):
    everything = AclFilter()
    results = await asyncio.gather(
        writer.create([allow("User:1")]),
        writer.delete([everything]),
        writer.delete([everything]),
        writer.create([allow("User:1"), allow("User:2")]),
        writer.delete([AclFilter(principal="User:1")]),
    )
    assert [result[0][2] for result in results if len(result[0]) == 3] == [
        [allow("User:1")],
        [],
        [allow("User:1")],
    ]
    assert sorted(index) == [allow("User:2")]
    assert len(store.changes) == 4


async def test_a_change_goes_on_when_the_one_who_asked_is_gone(writer, index, store):
    store.may_go_on.clear()
    asked = [allow("User:first"), allow("User:gone"), allow("User:last")]
    creations = [asyncio.create_task(writer.create([acl])) for acl in asked]
    await store.asked.wait()
    creations[1].cancel()
    store.may_go_on.set()
    assert codes(await creations[0]) == [0]
    assert codes(await creations[2]) == [0]
    assert creations[1].cancelled()
    assert sorted(index) == asked


class BrokenStore(MemoryStore):
    """A store with a bug."""

    async def apply(self, added, removed, origin):
        raise ZeroDivisionError("bug")


async def test_a_bug_of_a_store_fails_the_change_and_not_the_later_ones(index):
    async with running(BrokenStore(), index) as writer:
        with capture_logs() as logs:
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    await writer.create([allow()])
        assert [log["event"] for log in logs] == ["ACLs not changed"] * 2
        assert list(index) == []


class FullStore(MemoryStore):
    """A store on a full disk."""

    async def apply(self, added, removed, origin):
        raise StoreError("the disk is full")


async def test_changes_that_cannot_be_stored_leave_a_few_lines_of_each_peer(index):
    lines = LimitedLog(lambda: 0.0)
    of_alice = Origin.now("User:alice", "192.0.2.1")
    of_bob = Origin.now("User:bob", "192.0.2.2")
    writer = AclWriter(FullStore(), index, lines=lines)
    with capture_logs() as logs:
        for _ in range(100):
            assert codes(await writer.create([allow()], of_alice)) == [UNKNOWN_SERVER_ERROR]
        assert codes(await writer.create([allow()], of_bob)) == [UNKNOWN_SERVER_ERROR]
        await writer.close()
        lines.close()
    assert [each["peer"] for each in logs] == ["192.0.2.1"] * PEER_BURST + ["192.0.2.2"]
    assert {(each["event"], each["reason"]) for each in logs} == {
        ("ACLs not changed", "the disk is full")
    }
    assert logs[-1]["not_logged_before"] == lines.left_out == 100 - PEER_BURST


async def test_closing_finishes_the_changes_that_wait_and_refuses_later_ones(store, index):
    async with running(store, index) as writer:
        store.may_go_on.clear()
        waiting = [asyncio.create_task(writer.create([allow(f"User:{n}")])) for n in range(3)]
        deletion = asyncio.create_task(writer.delete([AclFilter(*allow("User:0"))]))
        await store.asked.wait()
        closing = asyncio.create_task(writer.close())
        await asyncio.sleep(0)
        late = await writer.create([deny()])
        later = await writer.delete([AclFilter()])
        store.may_go_on.set()
        await closing
        assert codes([*late, *later]) == [UNKNOWN_SERVER_ERROR] * 2
        assert [codes(results) for results in await asyncio.gather(*waiting)] == [[0]] * 3
        assert (await deletion)[0].bindings == [allow("User:0")]
    kept = [binding async for chunk in store.load() for binding in chunk]
    assert sorted(kept) == [allow("User:1"), allow("User:2")]


async def count_turns(task, watch) -> int:
    """Call ``watch`` at each turn that others get while the task works; return how many."""
    turns = 0
    while not task.done():
        watch()
        turns += 1
        await asyncio.sleep(0)
    return turns


async def test_a_large_change_lets_others_work_and_allows_nothing_in_between(writer, index):
    # The allowance is the first to be created and the last to be found, the denial the reverse.
    fillers = [allow(f"User:{n}", name=f"topic-{n}") for n in range(MANY)]
    creations = [allow(name="ord", pattern_type=PREFIXED), *fillers, deny()]

    def watch():
        assert not allowed(StandardAuthorizerData(index))

    creation = asyncio.create_task(writer.create(creations))
    # In both halves: when they are checked, and when they are added.
    assert await count_turns(creation, watch) >= 35
    assert codes(creation.result()) == [0] * len(creations)
    assert len(index) == len(creations)

    deletion = asyncio.create_task(writer.delete([AclFilter()]))
    assert await count_turns(deletion, watch) >= 35
    assert len(deletion.result()[0].bindings) == len(creations)
    assert list(index) == []
