"""What the store does when ZooKeeper is not there, is cut off, or has ended the session."""

import asyncio
from functools import partial

import pytest
from kazoo.client import KazooClient

from aclbroker.broker.stores import StoreUnavailable
from tests.acl.examples import allow, deny
from tests.stores.following import WITHIN_S, Followed, loaded
from tests.stores.origins import ORIGIN
from tests.stores.test_zookeeper_layout import entry, node
from tests.support.proxy import Proxy
from tests.support.zookeeper import Zookeeper, running_zookeeper
from tests.zookeeper.opening import opened, store_at

SHORT = {"zookeeper_session_timeout_ms": "1000", "zookeeper_connection_timeout_ms": "1000"}


@pytest.fixture
def own_zookeeper(tmp_path):
    """A ZooKeeper that the test may stop."""
    with running_zookeeper(tmp_path) as running:
        yield running


async def refused(store) -> None:
    """Wait until a change is refused since ZooKeeper cannot be reached."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await store.apply([allow("User:nobody")], [allow("User:nobody2")], ORIGIN)
            except StoreUnavailable:
                return


async def applied(store, acl) -> int:
    """Wait until a change is made."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                return int(await store.apply([acl], [], ORIGIN))
            except StoreUnavailable:
                await asyncio.sleep(0.01)


def has(followed: Followed, acl) -> bool:
    return acl in followed.acls


def reached(followed: Followed, position: int) -> bool:
    return bool(followed.news) and followed.news[-1].position >= position


def includes(followed: Followed, acls) -> bool:
    return bool(acls <= followed.acls)


async def expire(connect: str, store) -> None:
    """End the session of a store: whoever has its number and password can close it."""
    client = store._opened.connection._client
    thief = KazooClient(connect.partition("/")[0], client_id=client.client_id)
    await asyncio.to_thread(thief.start)
    await asyncio.to_thread(thief.stop)
    thief.close()


async def test_all_is_read_again_when_the_session_has_ended(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        await store.apply([allow()], [], ORIGIN)
        # Nobody tells of this one.
        zk.create("/kafka-acl/Topic/payments", node(entry()))
        await expire(connect, store)
        await followed.until(lambda: len(followed.resets) == 1)
        assert followed.acls == {allow(), allow("User:a", name="payments")}
        await applied(store, deny())
        await followed.until(partial(has, followed, deny()))
        assert set(await loaded(store)) == followed.acls


async def test_what_is_changed_while_all_is_read_again_is_reached(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        for number in range(10):
            await expire(connect, store)
            position = await applied(store, allow(f"User:{number}"))
            await followed.until(partial(reached, followed, position))
            assert allow(f"User:{number}") in followed.acls


async def test_acls_are_there_without_zookeeper_and_changes_are_refused_until_it_is_back(
    own_zookeeper: Zookeeper,
):
    address = own_zookeeper.address
    async with opened(address, **SHORT) as store, Followed(store) as followed:
        await store.apply([allow()], [], ORIGIN)
        await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
        assert await store.load_records("scram") == {"alice": "1"}
        own_zookeeper.kill()
        await refused(store)
        with pytest.raises(StoreUnavailable):
            await store.apply_records("scram", {"bob": "1"}, [], ORIGIN)
        with pytest.raises(StoreUnavailable):
            await store.apply_records("readiness", {}, ["probe"], ORIGIN)
        assert allow() in await loaded(store)
        assert await store.load_records("scram") == {"alice": "1"}
        await asyncio.to_thread(own_zookeeper.start)
        await applied(store, deny())
        await followed.until(lambda: followed.acls >= {allow(), deny()})
        async with opened(address) as other:
            await other.apply([], [deny()], ORIGIN)
            await followed.until(lambda: deny() not in followed.acls)


async def test_a_cut_network_is_noticed_and_what_happened_meanwhile_is_told(
    shared_zookeeper, zk, connect
):
    server, slash, chroot = connect.partition("/")
    with Proxy(server) as proxy:
        through = f"{proxy.address}{slash}{chroot}"
        async with opened(through, **SHORT) as store, Followed(store) as followed:
            await store.apply([allow()], [], ORIGIN)
            await followed.until(partial(has, followed, allow()))
            proxy.cut()
            await refused(store)
            async with opened(connect) as other:
                await other.apply([deny()], [allow()], ORIGIN)
            assert allow() in await loaded(store)
            proxy.mend()
            await followed.until(partial(has, followed, deny()))
            assert allow() not in followed.acls
            position = await applied(store, allow())
            await followed.until(partial(has, followed, allow()))
            assert followed.news[-1].position >= position


async def test_a_dropped_connection_misses_no_change_of_its_session(zk, connect):
    server, slash, chroot = connect.partition("/")
    with Proxy(server) as proxy:
        through = f"{proxy.address}{slash}{chroot}"
        async with opened(through) as store, Followed(store) as followed:
            for number in range(5):
                proxy.drop()
                async with opened(connect) as other:
                    await other.apply([allow(f"User:{number}")], [], ORIGIN)
                await followed.until(partial(has, followed, allow(f"User:{number}")))
            assert not followed.resets


async def test_nothing_acknowledged_is_lost_while_zookeeper_is_killed_and_started(
    own_zookeeper: Zookeeper,
):
    acknowledged = set()

    async def write(store, who: str) -> None:
        for number in range(60):
            acl = allow(f"User:{who}-{number}")
            await applied(store, acl)
            acknowledged.add(acl)

    address = own_zookeeper.address
    async with opened(address, **SHORT) as one, opened(address, **SHORT) as other:
        writing = asyncio.gather(write(one, "one"), write(other, "other"))
        for _ in range(2):
            await asyncio.sleep(0)
            await asyncio.to_thread(own_zookeeper.kill)
            await asyncio.to_thread(own_zookeeper.start)
        await writing
        for store in (one, other):
            # Its connection may be on its way back still.
            await applied(store, deny())
            async with Followed(store) as followed:
                await followed.until(partial(includes, followed, acknowledged))


async def test_it_waits_for_a_zookeeper_that_is_not_there_yet(tmp_path):
    zookeeper = Zookeeper(tmp_path)
    store = store_at(zookeeper.address, **SHORT)
    opening = asyncio.create_task(store.open())
    done, _ = await asyncio.wait([opening], timeout=1.5)
    assert not done
    try:
        await asyncio.to_thread(zookeeper.start)
        async with asyncio.timeout(WITHIN_S):
            await opening
        await store.apply([allow()], [], ORIGIN)
        await store.close()
    finally:
        zookeeper.kill()


async def test_to_wait_for_it_can_be_given_up(tmp_path):
    store = store_at(Zookeeper(tmp_path).address, **SHORT)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await store.open()
    await store.close()


async def test_a_zookeeper_that_has_lost_everything_is_followed_all_the_same(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for each in (first, second):
        each.mkdir()
    with (
        running_zookeeper(first) as zookeeper,
        Proxy(zookeeper.address) as proxy,
        running_zookeeper(second) as other,
    ):
        quick = SHORT | {"zookeeper_session_timeout_ms": "400"}
        async with opened(proxy.address, **quick) as store, Followed(store) as followed:
            for number in range(20):
                await store.apply([allow(f"User:{number}")], [], ORIGIN)
            assert len(await loaded(store)) == 20
            proxy.target = other.address
            proxy.drop()
            await followed.until(lambda: followed.resets and not followed.acls)
            await applied(store, deny())
            await followed.until(lambda: followed.acls == {deny()})
            assert await loaded(store) == [deny()]
