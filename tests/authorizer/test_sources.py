"""An authorizer with several providers: what decides, is listed, is changed and is copied."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from aclbroker.acl.authorizer import AclError, RequestContext, Session
from aclbroker.acl.bindings import DENY, AclFilter, ResourcePattern
from aclbroker.broker.authorizer import sources as module
from aclbroker.broker.authorizer.migrated import KIND, digest_of
from aclbroker.broker.authorizer.sources import Sources
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.stores import StoreError, StoreUnavailable
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import StoreReset
from tests.acl.examples import LITERAL, READ, TOPIC, allow, deny
from tests.authorizer.test_follower import may_read, request, until
from tests.stores.origins import ORIGIN

CARRIES_ON = "ACL migration goes on"


class Fragile(MemoryStore):
    """A store that others share, and that fails as long as it is told to."""

    fails = False
    silent_s = 0.0
    unknown: tuple[ResourcePattern, ...] = ()
    refused: tuple[str, ...] = ()

    def __init__(self):
        super().__init__(is_shared=True)

    async def apply(self, added, removed, origin):
        """Fail, or change."""
        if self.fails:
            raise StoreUnavailable("it is away")
        return await super().apply(added, removed, origin)

    def unread(self, position):
        """Tell nothing."""
        return

    def refusal(self, binding):
        """Tell that a name cannot be kept."""
        return "such a name cannot be kept" if binding.resource_name in self.refused else None

    def unreadable(self):
        """Return what is set."""
        return self.unknown


@pytest.fixture
def own():
    return Fragile()


@pytest.fixture
def central():
    return Fragile()


async def unavailable(*_args):
    raise StoreUnavailable("it is away")


@asynccontextmanager
async def authorizer(own, central, told=None, *, migrates=False, **properties):
    made = StandardAuthorizer()
    stores = {"CONFLUENT": central, "ZK_ACL": own}
    made._sources = Sources(stores, "ZK_ACL", "ZK_ACL", migrates=migrates)
    made.store = own
    made.configure(properties)
    await made.start()
    made.migrate(lambda *acls: None if told is None else told.append(acls))
    try:
        yield made
    finally:
        await made.close()


async def stored(store):
    return {acl async for some in store.load() for acl in some}


async def holds(store, *acls):
    await_until = asyncio.get_running_loop().time() + 20
    while await stored(store) != set(acls):
        assert asyncio.get_running_loop().time() < await_until, await stored(store)
        await asyncio.sleep(0.001)


async def saved(store, *acls):
    """Wait until it is written down that these ACLs, and no others, were copied."""

    async def now():
        records = await store.load_records(KIND)
        return sorted("".join(records.values()))

    expected = sorted("".join(map(digest_of, acls)))
    async with asyncio.timeout(20):
        while await now() != expected:
            await asyncio.sleep(0.001)


async def test_all_decide_and_requests_list_and_change_the_clusters_own(own, central):
    await central.apply([allow()], (), ORIGIN)
    async with authorizer(own, central) as one:
        assert may_read(one)
        assert list(one.acls(AclFilter())) == []
        assert [each.error_code for each in await one.create_acls(request(), [deny()])] == [0]
        assert not may_read(one)
        assert list(one.acls(AclFilter())) == [deny()]
        assert await stored(own) == {deny()}
        assert await stored(central) == {allow()}
        [result] = await one.delete_acls(request(), [AclFilter()])
        assert result.bindings == [deny()]
        assert may_read(one)
        assert await stored(central) == {allow()}
        assert one.acl_count == 1


async def test_changes_of_others_in_any_store_hold(own, central):
    async with authorizer(own, central) as one:
        await central.apply([allow()], (), ORIGIN)
        await until(lambda: may_read(one))
        await own.apply([deny()], (), ORIGIN)
        await until(lambda: not may_read(one))
        await own.apply([], [deny()], ORIGIN)
        await until(lambda: may_read(one))


async def test_what_is_deleted_is_deleted_wherever_it_is(own, central):
    for store in (own, central):
        await store.apply([allow()], (), ORIGIN)
    await central.apply([allow("User:bob")], (), ORIGIN)
    async with authorizer(own, central) as one:
        [result] = await one.delete_acls(request(), [AclFilter()])
        assert result.bindings == [allow()]
        assert not may_read(one)
        assert may_read(one, "User:bob")
        assert await stored(central) == {allow("User:bob")}


async def test_if_it_cannot_be_deleted_everywhere_it_is_deleted_nowhere(own, central):
    for store in (own, central):
        await store.apply([allow()], (), ORIGIN)
    async with authorizer(own, central) as one:
        central.fails = True
        [result] = await one.delete_acls(request(), [AclFilter()])
        assert result.error_code == AclError.REQUEST_TIMED_OUT
        assert may_read(one)
        assert await stored(own) == {allow()}
        central.fails = False
        [result] = await one.delete_acls(request(), [AclFilter()])
        assert result.bindings == [allow()]
        assert not may_read(one)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_deletion_that_fails_lets_nobody_in(own, central, tmp_path, monkeypatch, kind):
    if kind == "sqlite":
        own = SqliteStore(tmp_path / "own.db")
    # They were copied to the centralised ones.
    await central.apply([allow(), deny()], (), ORIGIN)
    async with authorizer(own, central) as one:
        await one.create_acls(request(), [allow(), deny()])
        with monkeypatch.context() as patch:
            patch.setattr(own, "apply" if kind == "memory" else "transact", unavailable)
            [result] = await one.delete_acls(request(), [AclFilter()])
        assert result.error_code == AclError.REQUEST_TIMED_OUT
        assert not may_read(one)
        assert await stored(central) == {deny()}
        [result] = await one.delete_acls(request(), [AclFilter()])
        assert set(result.bindings) == {allow(), deny()}
        assert await stored(central) == await stored(own) == set()


async def test_a_denial_whose_copy_cannot_be_deleted_goes_on_to_deny(own, central):
    for store in (own, central):
        await store.apply([deny()], (), ORIGIN)
    await own.apply([allow()], (), ORIGIN)
    async with authorizer(own, central) as one:
        central.fails = True
        [result] = await one.delete_acls(request(), [AclFilter(permission=DENY)])
        assert result.error_code == AclError.REQUEST_TIMED_OUT
        assert await stored(own) == {allow()}
        assert not may_read(one)


async def test_a_copy_that_is_not_seen_to_be_deleted_in_time_is_told(own, central, monkeypatch):
    for store in (own, central):
        await store.apply([allow()], (), ORIGIN)
    async with authorizer(own, central) as one:

        async def never(_position):
            return False

        follower = one._sources.source_of(central).follower
        monkeypatch.setattr(follower, "has_reached", never)
        [result] = await one.delete_acls(request(), [AclFilter()])
        assert result.error_code == AclError.REQUEST_TIMED_OUT
        assert await stored(own) == {allow()}


@pytest.mark.parametrize("which", ["own", "central"])
async def test_what_one_store_cannot_read_is_denied(own, central, which):
    store = {"own": own, "central": central}[which]
    store.unknown = (ResourcePattern(TOPIC, LITERAL, "orders"),)
    for each in (own, central):
        await each.apply([allow()], (), ORIGIN)
    async with authorizer(own, central) as one:
        assert not may_read(one)


@pytest.mark.parametrize("which", ["own", "central"])
async def test_any_store_that_is_stale_denies_if_that_is_set(own, central, which):
    store = {"own": own, "central": central}[which]
    for each in (own, central):
        await each.apply([allow()], (), ORIGIN)
    async with authorizer(own, central, **{"aclbroker.store.stale": "deny"}) as one:
        assert may_read(one)
        store.silent_s = 60.0
        await until(lambda: not may_read(one))
        store.silent_s = 0.0
        await until(lambda: may_read(one))


async def test_decisions_have_the_position_of_each(own, central):
    await central.apply([allow()], (), ORIGIN)
    async with authorizer(own, central) as one:
        position = one.position()
        assert position() == (("CONFLUENT", 1), ("ZK_ACL", 0))
        await one.create_acls(request(), [deny()])
        assert position() == (("CONFLUENT", 1), ("ZK_ACL", 1))


async def test_a_store_that_fails_at_the_start_leaves_none_open(own, central):
    class Broken(Fragile):
        async def load(self):
            if self._users:
                raise StoreError("it is damaged")
            yield []

    broken = Broken()
    with pytest.raises(StoreError, match="it is damaged"):
        async with authorizer(broken, central):
            pass
    assert central._users == broken._users == 0


async def test_a_store_that_is_lost_at_the_end_of_the_start_leaves_nothing_at_work(own, central):
    class Lost(Fragile):
        asked = 0

        async def position(self):
            self.asked += 1
            if self.asked > 2:
                raise StoreUnavailable("it is away")
            return await super().position()

    before = asyncio.all_tasks()
    lost = Lost()
    with pytest.raises(StoreUnavailable, match="it is away"):
        async with authorizer(lost, central):
            pass
    assert central._users == lost._users == 0
    assert asyncio.all_tasks() == before


async def test_the_clusters_own_acls_are_copied_and_so_is_what_changes(own, central):
    await own.apply([allow(), deny("User:bob")], (), ORIGIN)
    await central.apply([allow("User:eve")], (), ORIGIN)
    told: list[Any] = []
    with capture_logs() as logs:
        async with authorizer(own, central, told, migrates=True) as one:
            await holds(central, allow(), deny("User:bob"), allow("User:eve"))
            await one.create_acls(request(), [allow("User:carol")])
            await holds(central, allow(), deny("User:bob"), allow("User:eve"), allow("User:carol"))
            await own.apply([allow("User:dan")], [deny("User:bob")], ORIGIN)
            left = (allow(), allow("User:eve"), allow("User:carol"), allow("User:dan"))
            await holds(central, *left)
            await one.delete_acls(request(), [AclFilter(principal="User:carol")])
            await holds(central, allow(), allow("User:eve"), allow("User:dan"))
            await saved(central, allow(), allow("User:dan"))
    created = {acl for each, _ in told for acl in each}
    assert created == {allow(), deny("User:bob"), allow("User:carol"), allow("User:dan")}
    assert deny("User:bob") in {acl for _, each in told for acl in each}
    done = [each for each in logs if each["event"] == "ACLs migrated to the centralised store"]
    assert (done[0]["created"], done[0]["acls"]) == (2, 2)


async def test_a_restart_copies_what_is_new_and_deletes_what_is_gone_and_nothing_else(own, central):
    kept, gone, deleted, new = (allow(f"User:{name}") for name in "abcd")
    only_central = allow("User:e")
    await own.apply([kept, gone, deleted], (), ORIGIN)
    async with authorizer(own, central, migrates=True):
        await holds(central, kept, gone, deleted)
        await saved(central, kept, gone, deleted)
    # While nobody copies: centrally one is deleted and one created, in the cluster likewise.
    await central.apply([only_central], [deleted], ORIGIN)
    await own.apply([new], [gone], ORIGIN)
    for _ in range(2):
        async with authorizer(own, central, migrates=True):
            await saved(central, kept, deleted, new)
            await holds(central, kept, new, only_central)
    # What is created in the cluster anew has been deleted there before.
    await own.apply([], [deleted], ORIGIN)
    async with authorizer(own, central, migrates=True) as one:
        await saved(central, kept, new)
        await one.create_acls(request(), [deleted])
        await holds(central, kept, new, only_central, deleted)


async def test_nothing_comes_back_that_was_deleted_centrally_while_it_runs(own, central):
    await own.apply([allow()], (), ORIGIN)
    async with authorizer(own, central, migrates=True) as one:
        await holds(central, allow())
        await central.apply((), [allow()], ORIGIN)
        await one.create_acls(request(), [allow("User:bob")])
        await holds(central, allow("User:bob"))


async def test_it_waits_for_the_centralised_store_and_copies_at_the_end_what_is_left(own, central):
    central.fails = True
    await own.apply([allow()], (), ORIGIN)
    with capture_logs() as logs:
        async with authorizer(own, central, migrates=True) as one:
            await until(lambda: any("cannot be migrated now" in each["event"] for each in logs))
            assert may_read(one)
            assert await stored(central) == set()
            central.fails = False
        assert await stored(central) == {allow()}
    assert any(each["event"] == CARRIES_ON for each in logs)


async def test_the_end_does_not_wait_forever(own, central, monkeypatch):
    monkeypatch.setattr(f"{module.__package__}.migration._PATIENCE_S", 0.01)
    central.fails = True
    await own.apply([allow()], (), ORIGIN)
    with capture_logs() as logs:
        async with authorizer(own, central, migrates=True):
            pass
    [told] = [each for each in logs if "ended with changes" in each["event"]]
    assert told["waiting"] == 1


async def test_what_cannot_be_migrated_is_told(own, central):
    central.refused = ("a/b",)
    own.unknown = (ResourcePattern(TOPIC, LITERAL, "unknown"),)
    await own.apply([allow(), deny(name="a/b")], (), ORIGIN)
    with capture_logs() as logs:
        async with authorizer(own, central, migrates=True) as one:
            await holds(central, allow())
            assert not may_read(one, "User:bob")
            await own.apply([], [deny(name="a/b")], ORIGIN)
            await saved(central, allow())
    told = [each for each in logs if "migrated" in each["event"] and each["log_level"] == "error"]
    assert {each["event"] for each in told} == {
        "ACL cannot be migrated",
        "ACLs that cannot be read are not migrated",
    }


async def test_many_are_copied_in_parts_and_others_are_served_meanwhile(own, central):
    many = [allow(name=f"t{number}") for number in range(1_200)]
    await own.apply(many, (), ORIGIN)
    told: list[Any] = []
    async with authorizer(own, central, told, migrates=True):
        await holds(central, *many)
        await saved(central, *many)
        parts = [len(created) for created, _ in told]
        assert sum(parts) == 1_200
        assert len(parts) > 1


async def test_a_reset_of_the_clusters_store_is_copied_as_well(own, central):
    await own.apply([allow()], (), ORIGIN)
    async with authorizer(own, central, migrates=True) as one:
        await holds(central, allow())
        own._bindings = {allow("User:bob"): None}
        own._recent.restart(own._recent.position + 1)
        follower = one._sources.source_of(own).follower
        reset = StoreReset(own._recent.position, [allow("User:bob")], {})
        assert follower is not None
        await until(lambda: may_read(one, "User:bob"))
        assert reset.position == follower.position
        await holds(central, allow("User:bob"))
        await until(lambda: not may_read(one))


async def test_nothing_is_asked_of_what_is_not_started():
    made = StandardAuthorizer(MemoryStore())
    context = RequestContext(Session(("User:a",), "192.0.2.1", "PLAINTEXT"), 30, 3, None, 1)
    for ask in (made.position, lambda: made.acls(AclFilter())):
        with pytest.raises(RuntimeError, match="not started"):
            ask()
    with pytest.raises(RuntimeError, match="not started"):
        made.authorize(context, READ, TOPIC, ["orders"])
    with pytest.raises(RuntimeError, match="configured"):
        await StandardAuthorizer().start()
