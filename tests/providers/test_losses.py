"""A source that lost its data removes no central ACL until an operator confirms the loss."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.authorizer import migration as module
from aclbroker.broker.authorizer.migrated import KIND as MIGRATED
from aclbroker.broker.authorizer.remembered_source import KIND
from aclbroker.broker.authorizer.source_guard import SourceGuard, SourceLoss, gone_of
from aclbroker.broker.config.access_rules import ACCEPTED_LOSS
from aclbroker.broker.stores import Origin
from aclbroker.broker.stores.identity import CLUSTER_ID, SourceIdentity
from aclbroker.broker.stores.memory import MemoryStore
from tests.acl.examples import DESCRIBE, allow, deny
from tests.providers.test_copying import WITHIN, Central, Running, acl, acls_of, changed, running

ALL = range(100)
DENIALS = {acl(number) for number in ALL if number % 3 == 0}


class Own(MemoryStore):
    """The cluster's own store. It can turn into another cluster, or into an older state."""

    def __init__(self) -> None:
        super().__init__()
        self.id = "cluster-a"
        self.zxid = 100

    async def cluster_id(self) -> str:
        return self.id

    async def identity(self) -> SourceIdentity:
        return SourceIdentity({CLUSTER_ID: self.id}, {"zxid": (self.zxid,)})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.001)
    monkeypatch.setattr(module, "_LOOKS_AGAIN_S", 0.001)


@pytest.fixture
async def own() -> Own:
    store = Own()
    await changed(store, ALL)
    return store


@pytest.fixture
async def central(own: Own) -> Central:
    """A centralised store with a copy of all ACLs of the cluster."""
    store = Central()
    async with running(own, store) as broker:
        await all_copied(broker)
    return store


async def stopped(broker: Running) -> str:
    """Wait until the migration has stopped; return the token that confirms the loss."""
    async with asyncio.timeout(WITHIN):
        while not broker.migration.problem:
            await asyncio.sleep(0.001)
    found = re.search(rf"set {ACCEPTED_LOSS}=(\w+) and restart", broker.migration.problem)
    assert found, broker.migration.problem
    return found[1]


async def all_copied(broker: Running) -> None:
    """Wait until all current ACLs of the cluster are copied."""
    follower = broker.own.follower
    assert follower is not None
    assert await follower.has_reached(await broker.own.store.position(), WITHIN)
    await broker.copied()


async def going_on(broker: Running) -> None:
    async with asyncio.timeout(WITHIN):
        while broker.migration.problem:
            await asyncio.sleep(0.001)
    await all_copied(broker)


async def wiped(own: Own) -> None:
    await changed(own, removed=ALL)


async def all_but_one(own: Own) -> None:
    await changed(own, removed=range(1, 100))


async def replaced(own: Own) -> None:
    """Replace the source by another cluster at the same address, with nearly the same ACLs."""
    own.id = "cluster-b"
    await changed(own, range(100, 101), removed=range(3, 4))


async def restored(own: Own) -> None:
    """Set the source back to an older state of the same cluster, before one DENY was added."""
    own.zxid = 50
    await changed(own, removed=range(3, 4))


LOSSES = {
    wiped: "it has no ACLs at all, and had 100",
    all_but_one: "it has lost 99 of its 100 ACLs at once, more than 50 %",
    replaced: "its cluster id was cluster-a and is cluster-b now",
    restored: "its zxid went back from 100 to 50",
}


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize("lose", LOSSES)
async def test_nothing_is_lost_centrally_where_the_source_lost_it_also_over_restarts(
    own: Own, central: Central, lose: Callable[[Own], object], is_running: bool
) -> None:
    if is_running:
        async with running(own, central) as broker:
            await all_copied(broker)
            await lose(own)  # type: ignore[misc]
            await stopped(broker)
            assert LOSSES[lose] in broker.migration.problem  # type: ignore[index]
    else:
        await lose(own)  # type: ignore[misc]
    for _ in range(2):
        async with running(own, central) as broker:
            await stopped(broker)
            assert LOSSES[lose] in broker.migration.problem  # type: ignore[index]
        assert await acls_of(central) == set(map(acl, ALL))


@pytest.mark.parametrize("lose", [wiped, all_but_one, restored])
async def test_a_confirmed_loss_is_brought_over_once(
    own: Own, central: Central, lose: Callable[[Own], object]
) -> None:
    before = await acls_of(own)
    async with running(own, central) as broker:
        await lose(own)  # type: ignore[misc]
        token = await stopped(broker)
    async with running(own, central, confirmed="0123456789") as broker:
        assert await stopped(broker) == token
    async with running(own, central, confirmed=token) as broker:
        await going_on(broker)
        assert await acls_of(central) == await acls_of(own) != before
        # The token of one loss confirms no other loss, and not the same loss again.
        await own.apply(before - await acls_of(own), [], Origin.now())
        own.zxid = 200
        await all_copied(broker)
        await lose(own)  # type: ignore[misc]
        assert await stopped(broker) != token
    async with running(own, central, confirmed=token) as broker:
        assert await stopped(broker) != token
    assert await acls_of(central) == before


async def test_another_cluster_that_is_confirmed_is_copied_and_takes_nothing_along(
    own: Own, central: Central
) -> None:
    async with running(own, central) as broker:
        await replaced(own)
        token = await stopped(broker)
    async with running(own, central, confirmed=token) as broker:
        await going_on_with(broker, acl(100))
    assert await acls_of(central) == {*map(acl, range(101))}
    # The new cluster is known from now on, and the token is used up.
    async with running(own, central) as broker:
        await changed(own, range(101, 102))
        await going_on_with(broker, acl(101))
        own.id = "cluster-a"
        await changed(own, range(102, 103))
        assert await stopped(broker) != token


async def going_on_with(broker: Running, new: AclBinding) -> None:
    async with asyncio.timeout(WITHIN):
        while new not in broker.central.index:
            await asyncio.sleep(0.001)
    assert not broker.migration.problem


async def test_a_source_that_has_all_of_it_again_is_copied_without_an_operator(
    own: Own, central: Central
) -> None:
    async with running(own, central) as broker:
        await wiped(own)
        token = await stopped(broker)
        # Some ACLs are back and fewer than half are missing, but the source still lacks some.
        await changed(own, range(60))
        await changed(own, range(100, 101))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert broker.migration.problem
        assert await acls_of(central) == {*map(acl, ALL)}
        await changed(own, ALL)
        await going_on(broker)
    # The token of a loss that is over confirms no later loss.
    async with running(own, central, confirmed=token) as broker:
        await wiped(own)
        assert await stopped(broker) != token
    assert await acls_of(central) == {*map(acl, range(101))}


async def test_a_loss_that_comes_in_small_parts_is_stopped_before_half_is_gone(
    own: Own, central: Central
) -> None:
    async with running(own, central) as broker:
        for first in range(0, 80, 4):
            if broker.migration.problem:
                break
            await changed(own, removed=range(first, first + 4))
            async with asyncio.timeout(WITHIN):
                while broker.migration.waiting and not broker.migration.problem:
                    await asyncio.sleep(0.001)
        await stopped(broker)
    assert len(await acls_of(central)) >= 50
    # The count of lost ACLs survives a restart.
    async with running(own, central) as broker:
        await stopped(broker)
    assert len(await acls_of(central)) >= 50


async def test_no_denial_goes_while_a_loss_is_seen_in_part(own: Own, central: Central) -> None:
    async with running(own, central) as broker:
        follower = broker.own.follower
        assert follower is not None
        # This is the middle of a long change: a few ACLs have left the index, and more will follow.
        follower._is_bringing = True
        for number in range(4):
            broker.own.index.remove(acl(number))
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert await acls_of(central) == {*map(acl, ALL)}
        for number in range(4, 100):
            broker.own.index.remove(acl(number))
        follower._is_bringing = False
        follower._wake()
        await stopped(broker)
    assert await acls_of(central) == {*map(acl, ALL)}


async def test_small_losses_go_on_to_be_copied_denials_too(own: Own, central: Central) -> None:
    async with running(own, central) as broker:
        await changed(own, removed=range(3, 4))
        await all_copied(broker)
        await changed(own, removed=range(10, 40))
        await all_copied(broker)
    few = Own()
    two = Central()
    await changed(few, range(3))
    async with running(few, two) as broker:
        await all_copied(broker)
        await changed(few, removed=range(2))
        await all_copied(broker)
    assert await acls_of(two) == {acl(2)}


async def test_acls_that_can_no_longer_be_read_are_not_lost(own: Own, central: Central) -> None:
    denial = acl(3)
    async with running(own, central) as broker:
        await all_copied(broker)
        # The store in ZooKeeper withholds a damaged node in the same way.
        broker.own.index.withhold(denial.pattern)
        broker.own.index.remove(denial)
        await changed(own, range(100, 101))
        await going_on_with(broker, acl(100))
        assert denial in broker.central.index
        broker.own.index.release(denial.pattern)
        async with asyncio.timeout(WITHIN):
            while denial in broker.central.index:
                await asyncio.sleep(0.001)


@pytest.mark.parametrize("step", range(1, 12))
async def test_a_confirmed_loss_whose_copy_is_killed_needs_no_second_confirmation(
    own: Own, central: Central, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    async with running(own, central) as broker:
        await all_but_one(own)
        token = await stopped(broker)
    with monkeypatch.context() as context:
        context.setattr(module, "_AT_ONCE", 10)
        context.setattr(module, "_PATIENCE_S", 0)
        central.made, central.stops_at = 0, step
        async with running(own, central, confirmed=token):
            async with asyncio.timeout(WITHIN):
                await central.stopped.wait()
    central.stops_at = None
    # A DENY is removed only after every ALLOW that it may limit.
    left = await acls_of(central)
    assert left >= DENIALS or left <= {acl(0), *DENIALS}
    async with running(own, central, confirmed=token) as broker:
        await all_copied(broker)
    assert await acls_of(central) == {acl(0)}


async def test_a_migration_of_an_older_version_knows_its_acls(own: Own, central: Central) -> None:
    await central.apply_records(KIND, {}, [own.id], Origin.now())
    assert await central.load_records(KIND) == {}
    await all_but_one(own)
    async with running(own, central) as broker:
        await stopped(broker)
    own.id = "cluster-b"
    async with running(own, central) as broker:
        await stopped(broker)
        assert "its cluster id was cluster-a and is cluster-b now" in broker.migration.problem
    assert await acls_of(central) == {*map(acl, ALL)}
    assert await central.load_records(MIGRATED)


async def test_a_confirmed_loss_whose_copy_fails_is_copied_once_the_store_is_back(
    own: Own, central: Central
) -> None:
    async with running(own, central) as broker:
        await restored(own)
        token = await stopped(broker)
    central.fails = True
    async with running(own, central, confirmed=token) as broker:
        async with asyncio.timeout(WITHIN):
            await central.failed.wait()
        await going_on(broker)
    assert await acls_of(central) == await acls_of(own)


FIVE = [allow("User:bob", DESCRIBE, name=f"t{number}") for number in range(5)]


def judged(guard: SourceGuard, left: int, had: int, lost: list[AclBinding]) -> str:
    """Judge a source; return the token of its loss, "" if it has none."""
    try:
        guard.judge(SourceIdentity(), left, had, gone_of(lost))
    except SourceLoss as loss:
        return loss.token
    guard.took(lost)
    return ""


def test_losses_of_different_minutes_are_judged_apart() -> None:
    now = 0.0
    guard = SourceGuard(clock=lambda: now)
    assert not judged(guard, 5, 10, FIVE)
    assert judged(guard, 2, 5, FIVE[:3])
    now = 61.0
    guard = SourceGuard(clock=lambda: now)
    assert not judged(guard, 5, 10, FIVE)
    now = 122.0
    assert not judged(guard, 3, 5, FIVE[:2])


def test_a_mark_that_is_not_told_for_a_moment_is_not_forgotten() -> None:
    guard = SourceGuard()
    none = gone_of([])
    guard.judge(SourceIdentity({}, {"metadata offset": (100,)}), 5, 5, none)
    # A quorum with a new leader does not report its metadata offset, either.
    guard.judge(SourceIdentity(), 5, 5, none)
    with pytest.raises(SourceLoss, match="its metadata offset went back from 100 to 99"):
        guard.judge(SourceIdentity({}, {"metadata offset": (99,)}), 5, 5, none)


def test_while_it_is_stopped_a_small_loss_goes_without_a_word_unless_it_may_deny() -> None:
    guard = SourceGuard(kept=False)
    assert judged(guard, 0, 5, FIVE)
    assert judged(guard, 4, 5, [deny()])
    assert not judged(guard, 4, 5, FIVE[:1])
    assert not judged(guard, 4, 5, [deny()])


def test_a_token_that_is_not_remembered_is_good_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    day = 86_400
    monkeypatch.setattr("time.time", lambda: 100.5 * day)
    token = judged(SourceGuard(kept=False), 0, 5, FIVE)
    monkeypatch.setattr("time.time", lambda: 101.4 * day)
    guard = SourceGuard(confirmed=token, kept=False)
    assert not judged(guard, 0, 5, FIVE)
    guard.settle()
    assert judged(guard, 0, 5, FIVE)
    monkeypatch.setattr("time.time", lambda: 102.0 * day)
    assert judged(SourceGuard(confirmed=token, kept=False), 0, 5, FIVE)
