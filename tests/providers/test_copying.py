"""What is copied where the process ends, or the store fails, between any two steps."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from time import thread_time

import pytest
from structlog.testing import capture_logs

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.index import AclIndex
from aclbroker.acl.joint import parts_of
from aclbroker.acl.settings import stale_settings
from aclbroker.broker.authorizer import migration as module
from aclbroker.broker.authorizer.migrated import KIND
from aclbroker.broker.authorizer.migration import AclMigration
from aclbroker.broker.authorizer.source import AclSource
from aclbroker.broker.authorizer.source_guard import SourceGuard
from aclbroker.broker.stores import Origin, StoreError
from aclbroker.broker.stores.memory import MemoryStore
from tests.acl.examples import DESCRIBE, allow, deny

WITHIN = 10.0


def acl(number: int) -> AclBinding:
    made = deny if number % 3 == 0 else allow
    return made("User:bob", DESCRIBE, name=f"t{number}")


class Central(MemoryStore):
    """The centralised store. It never answers the change ``stops_at``, and ``fails`` once when ACLs
    are changed; whether that is made is ``makes_it``. ``meanwhile`` is done once, while it is
    written down what was copied.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made = 0
        self.stops_at: int | None = None
        self.fails = False
        self.makes_it = False
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.stopped = asyncio.Event()
        self.failed = asyncio.Event()

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        made = self._is_made() and (self.makes_it or not self.fails)
        position = await super().apply(added, removed, origin) if made else 0
        if self.fails:
            self.fails = False
            self.failed.set()
            raise StoreError("nobody knows whether that was made")
        await self._answers()
        return position

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        made = self._is_made()
        position = await super().apply_records(kind, put, removed, origin) if made else 0
        # The records of what is begun are removed last of all.
        if self.meanwhile is not None and removed:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        await self._answers()
        return position

    def _is_made(self) -> bool:
        self.made += 1
        return self.made != self.stops_at or self.makes_it

    async def _answers(self) -> None:
        if self.made == self.stops_at:
            self.stopped.set()
            await asyncio.Event().wait()


class Running:
    """A broker that copies, between its start and its end."""

    def __init__(self, own: AclSource, central: AclSource, migration: AclMigration) -> None:
        self.own = own
        self.central = central
        self.migration = migration

    async def copied(self) -> None:
        """Wait until the centralised ACLs are those of the cluster."""
        async with asyncio.timeout(WITHIN):
            while set(self.own.index) != set(self.central.index) or self.migration.waiting:
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(
    own: MemoryStore, central: MemoryStore, confirmed: str = ""
) -> AsyncIterator[Running]:
    """Copy from one store to the other within the block; at its end, what is left."""
    parts = parts_of(AclIndex(), 2)
    cluster = AclSource("ZK_ACL", own, parts[0], follows=True)
    centralised = AclSource("CONFLUENT", central, parts[1], follows=True)
    sources = cluster, centralised
    for each in sources:
        await each.store.open()
        await each.load(stale_settings({}))
    guard = SourceGuard(confirmed=confirmed)
    migration = AclMigration(cluster, centralised, parts[0], guard)
    migration.start()
    try:
        yield Running(cluster, centralised, migration)
    finally:
        await migration.close()
        for each in sources:
            await each.close()


async def changed(store: MemoryStore, added: range = range(0), removed: range = range(0)) -> None:
    await store.apply(list(map(acl, added)), list(map(acl, removed)), Origin.now())


async def acls_of(store: MemoryStore) -> set[AclBinding]:
    return {each async for some in store.load() for each in some}


@pytest.fixture
def in_small_steps(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    monkeypatch.setattr(module, "_SAVED_AFTER", 6)
    monkeypatch.setattr(module, "_RETRY_S", 0.001)
    return monkeypatch


KILLED_AT = [(number, makes_it) for number in range(1, 17) for makes_it in (False, True)]
"""At which change of the centralised store the process ends, and whether that is still made."""


@pytest.mark.parametrize(("number", "makes_it"), KILLED_AT)
async def test_what_the_cluster_loses_after_a_kill_at_any_step_is_lost_centrally(
    in_small_steps: pytest.MonkeyPatch, number: int, makes_it: bool
) -> None:
    own, central = MemoryStore(), Central()
    await changed(own, range(12))
    central.stops_at, central.makes_it = number, makes_it
    with in_small_steps.context() as context:
        context.setattr(module, "_PATIENCE_S", 0)
        async with running(own, central) as broker:
            work = asyncio.create_task(all_copied_and_some_lost(broker, own))
            async with asyncio.timeout(WITHIN):
                await central.stopped.wait()
            work.cancel()
    # Meanwhile the cluster loses what may have been copied, and gets back what it had lost.
    await changed(own, range(2), removed=range(4, 8))
    async with running(own, central):
        pass
    assert await acls_of(central) == await acls_of(own)
    assert all(len(name.rpartition("/")[2]) == 2 for name in await central.load_records(KIND))
    # What is deleted centrally from now on stays so.
    await changed(central, removed=range(8, 9))
    async with running(own, central):
        pass
    assert await acls_of(own) - await acls_of(central) == {acl(8)}


async def all_copied_and_some_lost(broker: Running, own: MemoryStore) -> None:
    await broker.copied()
    await changed(own, removed=range(2))


@pytest.mark.parametrize("makes_it", [False, True])
async def test_what_the_cluster_loses_while_nobody_knows_whether_it_was_copied_is_lost_centrally(
    in_small_steps: pytest.MonkeyPatch, makes_it: bool
) -> None:
    own, central = MemoryStore(), Central()
    await changed(own, range(5, 6))
    async with running(own, central) as broker:
        await broker.copied()
        central.fails, central.makes_it = True, makes_it
        in_small_steps.setattr(module, "_RETRY_S", 0.05)
        await changed(own, range(1))
        async with asyncio.timeout(WITHIN):
            await central.failed.wait()
        await changed(own, removed=range(1))
        await broker.copied()
    assert await acls_of(central) == {acl(5)}
    assert len(await central.load_records(KIND)) == 1


@pytest.mark.parametrize("ends", [False, True])
async def test_what_changes_while_it_is_written_down_what_was_copied_is_copied_at_once(
    ends: bool,
) -> None:
    own, central = MemoryStore(), Central()
    with capture_logs() as logs:
        await copied_while_it_changes(own, central, ends=ends)
    assert await acls_of(central) == {acl(1)}
    # Nothing is said to be migrated as long as something is left.
    told = [each for each in logs if each["event"].startswith("ACLs migrated")]
    assert [(each["created"], each["deleted"]) for each in told if each["acls"]] == [(2, 1)]


async def copied_while_it_changes(own: MemoryStore, central: Central, *, ends: bool) -> None:
    async with running(own, central) as broker:
        follower = broker.own.follower
        assert follower is not None

        async def change(added: range, removed: range = range(0)) -> None:
            await changed(own, added, removed)
            assert await follower.has_reached(await own.position(), WITHIN)

        async def change_again() -> None:
            await change(range(1, 2), removed=range(1))
            has_changed.set()

        has_changed = asyncio.Event()
        central.meanwhile = change_again
        await change(range(1))
        if not ends:
            async with asyncio.timeout(WITHIN):
                await has_changed.wait()
            await broker.copied()


async def test_each_outage_is_told_and_its_end_though_there_is_always_something_left(
    in_small_steps: pytest.MonkeyPatch,
) -> None:
    own, central = MemoryStore(), Central()
    with capture_logs() as logs:
        async with running(own, central) as broker:
            follower = broker.own.follower
            assert follower is not None

            async def change_and_fail() -> None:
                await changed(own, range(1, 2))
                assert await follower.has_reached(await own.position(), WITHIN)
                central.fails = True

            central.fails, central.meanwhile = True, change_and_fail
            await changed(own, range(1))
            async with asyncio.timeout(WITHIN):
                await central.failed.wait()
            await broker.copied()
    assert await acls_of(central) == {acl(0), acl(1)}
    told = [each["event"] for each in logs if each["event"].startswith("ACL")]
    fails, goes_on = "ACLs cannot be migrated now; trying again", "ACL migration goes on"
    assert [each for each in told if each in {fails, goes_on}] == [fails, goes_on] * 2


MANY = 20_000
LATE = 0.1
"""For how long the loop may be held up, in seconds of work: a half of what all at once takes."""


@pytest.mark.thorough
async def test_others_have_their_turns_while_it_is_seen_that_many_acls_are_copied() -> None:
    own, central = MemoryStore(), MemoryStore()
    for store in (own, central):
        await changed(store, range(MANY))
    async with running(own, central) as broker:
        await broker.migration.close()
    async with running(own, central) as broker:
        closing = asyncio.create_task(broker.migration.close())
        late = 0.0
        gc.collect()
        # What it takes depends on what all other tests have left.
        gc.disable()
        try:
            while not closing.done():
                began = thread_time()
                await asyncio.sleep(0)
                late = max(late, thread_time() - began)
        finally:
            gc.enable()
    assert late < LATE
