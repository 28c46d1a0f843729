"""The store in ZooKeeper beside others that write there: what they see of it, and it of them."""

import asyncio
import json
from functools import partial

import pytest
from kazoo.client import KazooClient

from aclbroker.acl.authorizer import AclError, RequestContext
from aclbroker.acl.bindings import AclBinding, AclOperation, ResourcePattern
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.stores import StoreError
from aclbroker.broker.stores.zookeeper import change_nodes
from aclbroker.broker.stores.zookeeper.layout import encode_change
from tests.acl.examples import GROUP, LITERAL, PREFIXED, READ, TOPIC, WRITE, allow, deny, session
from tests.stores.following import Followed, loaded
from tests.stores.origins import ORIGIN
from tests.stores.test_zookeeper_layout import entry, node
from tests.zookeeper.opening import opened, store_at

ORDERS = "/kafka-acl/Topic/orders"
PAYMENTS = ResourcePattern(TOPIC, LITERAL, "payments")
BY_A = ("User:a", "*", READ, allow().permission)


def tell(zk, pattern=PAYMENTS) -> str:
    directory, data = encode_change(pattern)
    return str(zk.create(f"{directory}/acl_changes_", data, sequence=True))


def have(followed: Followed, count: int) -> bool:
    return len(followed.acls) == count


def knows(followed: Followed, acls: set[AclBinding]) -> bool:
    return followed.acls == acls


def changes(zk, directory: str) -> list[bytes]:
    return [zk.get(f"{directory}/{name}")[0] for name in sorted(zk.get_children(directory))]


async def test_an_acl_is_written_as_kafka_writes_it_and_gone_with_its_last_entry(zk, connect):
    prefixed = allow(resource_type=GROUP, pattern_type=PREFIXED)
    async with opened(connect) as store:
        await store.apply([allow(), prefixed], [], ORIGIN)
        data, stat = zk.get(ORDERS)
        assert json.loads(data) == {
            "version": 1,
            "acls": [
                {
                    "principal": "User:alice",
                    "permissionType": "Allow",
                    "operation": "Read",
                    "host": "*",
                }
            ],
        }
        assert zk.exists("/kafka-acl-extended/prefixed/Group/orders").czxid == stat.czxid
        assert changes(zk, "/kafka-acl-changes") == [b"TOPIC:orders"]
        [told] = changes(zk, "/kafka-acl-extended-changes")
        assert json.loads(told)["resourceType"] == "GROUP"
        await store.apply([deny()], [allow()], ORIGIN)
        await store.apply([], [deny()], ORIGIN)
        assert zk.exists(ORDERS) is None
        assert zk.get_children("/kafka-acl/Topic") == []
        assert changes(zk, "/kafka-acl-changes") == [b"TOPIC:orders"] * 3


async def test_a_change_of_nothing_writes_nothing(zk, connect):
    async with opened(connect) as store:
        position = await store.apply([allow()], [], ORIGIN)
        async with Followed(store) as followed:
            assert await store.apply([allow()], [deny()], ORIGIN) <= await store.position()
            assert len(changes(zk, "/kafka-acl-changes")) == 1
            assert followed.acls == {allow()}
            assert position <= await store.position()


async def test_one_store_sees_what_another_does_with_who_did_it(zk, connect):
    async with (
        opened(connect) as one,
        opened(connect) as other,
        Followed(one) as mine,
        Followed(other) as theirs,
    ):
        position = await one.apply([allow(), deny(pattern_type=PREFIXED)], [], ORIGIN)
        for followed in (mine, theirs):
            await followed.until(partial(have, followed, 2))
            [change] = followed.news
            assert change.position == position
        assert mine.changes[0].origin == ORIGIN
        assert theirs.changes[0].origin is None
        await other.apply([], [allow()], ORIGIN)
        await mine.until(lambda: mine.acls == {deny(pattern_type=PREFIXED)})


async def test_the_position_is_that_of_the_last_change_of_anybody(zk, connect):
    async with opened(connect) as one, opened(connect) as other:
        for number in range(10):
            position = await one.apply([allow(f"User:{number}")], [], ORIGIN)
            assert await other.position() == position
            assert len(await loaded(other)) == number + 1


async def test_what_somebody_else_writes_and_tells_is_seen(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        zk.create("/kafka-acl/Topic/payments", node(entry()))
        tell(zk)
        await followed.until(lambda: len(followed.acls) == 1)
        zk.set("/kafka-acl/Topic/payments", node(entry(), entry(operation="WRITE")))
        tell(zk)
        await followed.until(lambda: len(followed.acls) == 2)
        zk.delete("/kafka-acl/Topic/payments")
        tell(zk)
        await followed.until(lambda: not followed.acls)
        assert not followed.resets


async def test_changes_that_say_nothing_are_skipped(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        for data in (b"garbage", b"", b"TOPIC:a/b", b"TOPIC:..", b"FOO:x"):
            zk.create("/kafka-acl-changes/acl_changes_", data, sequence=True)
        zk.create("/kafka-acl-extended-changes/acl_changes_", b'{"version":2}', sequence=True)
        zk.create("/kafka-acl/Topic/payments", node(entry()))
        tell(zk)
        await followed.until(lambda: len(followed.acls) == 1)


async def test_a_change_that_was_missed_makes_it_read_everything(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        zk.create("/kafka-acl/Topic/payments", node(entry()))
        # The number that this node takes is then missing among the changes.
        zk.create("/kafka-acl-changes/zzz", b"")
        await followed.until(lambda: len(followed.acls) == 1)
        assert len(followed.resets) == 1


async def test_what_a_broker_wrote_and_did_not_tell_is_told_by_the_next_change(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        zk.create("/kafka-acl/Topic/payments", node(entry()))
        acl = allow("User:a", name="payments")
        position = await store.apply([acl], [], ORIGIN)
        await followed.until(lambda: bool(followed.news))
        assert followed.acls == {acl}
        assert followed.news[-1].position == position
        assert changes(zk, "/kafka-acl-changes") == [b"TOPIC:payments"]


async def test_unknown_directories_are_ignored_and_odd_names_are_listed(zk, connect):
    zk.create("/kafka-acl/Foo/x", node(entry()), makepath=True)
    zk.create("/kafka-acl/Cluster/other", node(entry()), makepath=True)
    async with opened(connect) as store:
        [acl] = await loaded(store)
        assert acl.resource_name == "other"


async def test_what_an_unknown_operation_is_allowed_stays_in_the_node(zk, connect):
    zk.create(ORDERS, node(entry(operation="Nope")), makepath=True)
    async with opened(connect) as store:
        assert await loaded(store) == []
        await store.apply([allow()], [], ORIGIN)
        await store.apply([], [allow()], ORIGIN)
        assert json.loads(zk.get(ORDERS)[0])["acls"] == [entry(operation="Nope")]


async def test_a_node_that_cannot_be_read_is_told_and_kept_and_the_others_are_loaded(zk, connect):
    bad = node(entry(host=None))
    zk.create(ORDERS, bad, makepath=True)
    zk.create("/kafka-acl/Topic/payments", node(entry()))
    async with opened(connect) as store:
        assert [acl.resource_name for acl in await loaded(store)] == ["payments"]
        assert list(store.unreadable()) == [allow().pattern]
        assert "cannot be read" in (store.refusal(allow()) or "")
        assert store.refusal(allow(name="payments")) is None
        with pytest.raises(StoreError, match="cannot be read"):
            await store.apply([allow(name="fine"), allow()], [], ORIGIN)
        assert zk.get(ORDERS)[0] == bad
        assert zk.exists("/kafka-acl/Topic/fine") is None


async def test_a_broker_that_is_started_then_denies_what_the_node_is_about(zk, connect):
    zk.create(ORDERS, b"no", makepath=True)
    zk.create("/kafka-acl/Topic/*", node(entry(principal="User:alice")))
    authorizer = StandardAuthorizer(store_at(connect))
    authorizer.configure({"super.users": "User:root"})
    await authorizer.start()
    try:
        names = ["orders", "payments"]
        alice, root = (
            RequestContext(session(who), 3, 0, "", 1) for who in ("User:alice", "User:root")
        )
        found = authorizer.authorize(alice, READ, TOPIC, names)
        assert [decision.allowed for decision in found] == [False, True]
        assert all(each.allowed for each in authorizer.authorize(root, READ, TOPIC, names))
        [refused] = await authorizer.create_acls(root, [allow()])
        assert refused.error_code == AclError.INVALID_REQUEST
        zk.delete(ORDERS)
        tell(zk, allow().pattern)
        async with asyncio.timeout(20):
            while not authorizer.authorize(alice, READ, TOPIC, ["orders"])[0].allowed:
                await asyncio.sleep(0.01)
    finally:
        await authorizer.close()


async def test_who_follows_is_told_when_a_node_cannot_be_read_and_when_it_can(zk, connect):
    async with opened(connect) as store, Followed(store) as followed:
        await store.apply([allow()], [], ORIGIN)
        await followed.until(lambda: followed.acls == {allow()})
        zk.set(ORDERS, b"no")
        tell(zk, allow().pattern)
        await followed.until(lambda: len(followed.resets) == 1)
        assert followed.acls == set()
        assert set(followed.resets[-1].unreadable) == {allow().pattern}
        zk.set(ORDERS, node(entry()))
        tell(zk, allow().pattern)
        await followed.until(lambda: len(followed.resets) == 2)
        assert followed.acls == {allow("User:a")}
        assert not followed.resets[-1].unreadable


@pytest.mark.parametrize("name", ["a/b", "..", "a\0b"])
async def test_a_name_that_zookeeper_cannot_have_is_refused(zk, connect, name):
    async with opened(connect) as store:
        assert store.refusal(allow(name=name)) is not None
        with pytest.raises(StoreError, match="ZooKeeper"):
            await store.apply([allow(), allow(name=name)], [], ORIGIN)
        assert await loaded(store) == []


async def test_more_acls_than_a_node_can_have_are_refused_for_that_node(zk, connect):
    many = [allow(f"User:{number:0500}") for number in range(2000)]
    async with opened(connect) as store:
        with pytest.raises(StoreError, match="may have"):
            await store.apply(many, [], ORIGIN)
        await store.apply(many[:1000], [], ORIGIN)
        assert await loaded(store) == sorted(many[:1000])


async def test_many_patterns_are_changed_in_several_transactions_denials_first(zk, connect):
    allowed = [allow(name=f"a{number}") for number in range(600)]
    denied = [deny(name=f"d{number}") for number in range(600)]
    async with opened(connect) as store, Followed(store) as followed:
        position = await store.apply([*allowed, *denied], [], ORIGIN)
        await followed.until(lambda: followed.news[-1:] and followed.news[-1].position == position)
        assert followed.acls == {*allowed, *denied}
        first_allowed = min(zk.exists(f"/kafka-acl/Topic/a{n}").czxid for n in range(600))
        last_denied = max(zk.exists(f"/kafka-acl/Topic/d{n}").czxid for n in range(600))
        assert last_denied <= first_allowed
        await store.apply([], [*allowed, *denied], ORIGIN)
        assert await loaded(store) == []


async def test_large_nodes_are_changed_in_smaller_transactions(zk, connect):
    acls = [
        allow(f"User:{user:0500}", name=f"topic-{topic}")
        for user in range(200)
        for topic in range(12)
    ]
    async with opened(connect) as store:
        await store.apply(acls, [], ORIGIN)
        assert await loaded(store) == sorted(acls)


async def test_of_writers_at_the_same_time_none_loses_anything(zk, connect):
    async with opened(connect) as one, opened(connect) as two, opened(connect) as three:
        stores = (one, two, three)

        async def write(store, number: int) -> None:
            mine = allow(f"User:{number}")
            await store.apply([mine, allow(operation=WRITE)], [], ORIGIN)
            await store.apply([deny(f"User:{number}")], [mine], ORIGIN)

        await asyncio.gather(*(write(store, n) for n, store in enumerate(stores * 10)))
        expected = {allow(operation=WRITE), *(deny(f"User:{n}") for n in range(30))}
        for store in stores:
            async with Followed(store) as followed:
                await followed.until(partial(knows, followed, expected))


async def test_changes_are_removed_when_they_are_old(zk, connect, monkeypatch):
    async with opened(connect) as store, Followed(store) as followed:
        for number in range(5):
            await store.apply([allow(f"User:{number}")], [], ORIGIN)
            await store.apply_records("k", {"n": str(number)}, [], ORIGIN)
        assert len(zk.get_children("/kafka-acl-changes")) == 5
        # Nothing that is told in the same moment as the newest change is old.
        monkeypatch.setattr(change_nodes, "KEPT_MS", -1)
        zk.create("/kafka-acl/Topic/payments", node(entry()))
        tell(zk)
        async with asyncio.timeout(20):
            while zk.get_children("/kafka-acl-changes") or zk.get_children(
                "/aclbroker/record-changes"
            ):
                await asyncio.sleep(0.01)
        await store.apply([allow(operation=AclOperation.ALL)], [], ORIGIN)
        await followed.until(lambda: allow(operation=AclOperation.ALL) in followed.acls)
        assert not followed.resets


async def test_records_are_shared_as_well(zk, connect):
    async with opened(connect) as one, opened(connect) as other, Followed(other) as followed:
        await one.apply_records("scram", {"a/b": "1", "": "2", "..": "3"}, [], ORIGIN)
        await followed.until(lambda: bool(followed.news))
        assert dict(followed.news[0].records) == {
            ("scram", "a/b"): "1",
            ("scram", ""): "2",
            ("scram", ".."): "3",
        }
        await one.apply_records("scram", {}, ["a/b", "nobody"], ORIGIN)
        await followed.until(lambda: len(followed.news) == 2)
        assert dict(followed.news[1].records) == {("scram", "a/b"): None}
        assert await other.load_records("scram") == {"": "2", "..": "3"}


async def test_all_stores_at_a_place_have_one_cluster_id_which_is_kafkas(zk, connect):
    async with opened(connect) as one, opened(connect) as other:
        ids = await asyncio.gather(one.cluster_id(), other.cluster_id())
        assert len(set(ids)) == 1
        assert json.loads(zk.get("/cluster/id")[0]) == {"version": "1", "id": ids[0]}


async def test_a_store_is_new_once_and_its_chroot_is_made(shared_zookeeper, connect):
    deep = f"{connect}/a/b/c"
    async with opened(deep) as store:
        assert (await store.status()).is_new
        await store.apply([allow()], [], ORIGIN)
    async with opened(deep) as store:
        status = await store.status()
        assert not status.is_new
        assert status.place == f"zookeeper://{deep}"
        assert await loaded(store) == [allow()]
    client = KazooClient(shared_zookeeper.address)
    client.start()
    assert client.exists(f"/{deep.partition('/')[2]}/kafka-acl/Topic/orders")
    client.stop()
    client.close()


async def test_what_went_without_being_told_can_be_deleted(zk, connect):
    """As by hand, or by a broker of Kafka that was killed in between."""
    acls = [allow(), deny(name="payments"), allow(name="kept")]
    async with (
        opened(connect) as one,
        opened(connect) as other,
        Followed(one) as mine,
        Followed(other) as theirs,
    ):
        await one.apply(acls, [], ORIGIN)
        for followed in (mine, theirs):
            await followed.until(partial(have, followed, 3))
        for name in ("orders", "payments"):
            zk.delete(f"/kafka-acl/Topic/{name}")
        await one.apply([], acls[:2], ORIGIN)
        for followed in (mine, theirs):
            await followed.until(partial(knows, followed, {acls[2]}))
            assert not followed.resets
        assert zk.get_children("/kafka-acl/Topic") == ["kept"]
