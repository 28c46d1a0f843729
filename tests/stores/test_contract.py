"""What every store must do, run against each of them."""

import asyncio
import re

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore, Origin, StoreError, open_store
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.store import LimitedStore, StoreChange, StoreReset, claim
from tests.acl.examples import GROUP, PREFIXED, WRITE, allow, deny
from tests.stores.million import keep_many
from tests.stores.origins import ORIGIN
from tests.stores.owned import OwnedElsewhere


def memory_store(_path):
    return open_store("memory:")


def shared_memory_store(_path):
    return MemoryStore(is_shared=True)


def sqlite_store(path):
    return open_store(f"sqlite:///{path}/acls.db")


def owned_store(path):
    return OwnedElsewhere(sqlite_store(path))


STORES = {
    "memory": memory_store,
    "shared memory": shared_memory_store,
    "sqlite": sqlite_store,
    "owned": owned_store,
}
"""Each store that all of this must apply to: a function of a directory for its files."""


@pytest.fixture(params=STORES)
async def store(request, tmp_path):
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def another(store, tmp_path):
    """The same store as another broker has it; only of stores that may be shared."""
    if not store.is_shared:
        pytest.skip("the store is not shared")
    # What is in memory has one object, which counts who uses it.
    second = store if isinstance(store, MemoryStore) else sqlite_store(tmp_path)
    await second.open()
    yield second
    await second.close()


async def loaded(store: AclStore) -> list[AclBinding]:
    return sorted({binding async for chunk in store.load() for binding in chunk})


def kept_name(store: AclStore, name: str) -> str:
    """The name, or another where the store refuses that one, as a ZooKeeper does some."""
    refused = isinstance(store, LimitedStore) and store.refusal(allow(name=name))
    return "refused" if refused else name


async def reopened(store: AclStore) -> list[AclBinding]:
    await store.close()
    await store.open()
    return await loaded(store)


async def test_a_new_store_is_empty(store):
    assert await loaded(store) == []


async def test_bindings_that_were_added_are_there_after_a_restart(store):
    acls = sorted([allow(), deny(), allow(resource_type=GROUP), allow(pattern_type=PREFIXED)])
    await store.apply(acls, [], ORIGIN)
    assert await loaded(store) == acls
    found = await reopened(store)
    assert found == acls
    assert [list(map(type, acl)) for acl in found] == [list(map(type, acl)) for acl in acls]


async def test_bindings_that_were_removed_are_gone_after_a_restart(store):
    await store.apply([allow(), deny(), allow("User:bob")], [], ORIGIN)
    await store.apply([allow(operation=WRITE)], [deny(), allow("User:bob")], ORIGIN)
    assert await reopened(store) == sorted([allow(), allow(operation=WRITE)])


async def test_adding_twice_and_removing_what_is_not_there_change_nothing(store):
    await store.apply([allow(), allow()], [], ORIGIN)
    await store.apply([allow()], [deny()], ORIGIN)
    assert await reopened(store) == [allow()]
    await store.apply([], [allow()], ORIGIN)
    assert await reopened(store) == []
    await store.apply([allow()], [], ORIGIN)
    assert await reopened(store) == [allow()]


async def test_every_field_tells_bindings_apart(store):
    acls = [
        allow(),
        allow(resource_type=GROUP),
        allow(name="orders2"),
        allow(pattern_type=PREFIXED),
        allow("User:bob"),
        allow(host="h"),
        allow(operation=WRITE),
        deny(),
    ]
    await store.apply(acls, [], ORIGIN)
    assert await loaded(store) == sorted(acls)
    await store.apply([], acls[:1], ORIGIN)
    assert await loaded(store) == sorted(acls[1:])


async def test_names_that_differ_in_case_are_different(store):
    acls = sorted([allow(name="a"), allow(name="A"), allow("user:alice"), allow(host="H")])
    await store.apply(acls, [], ORIGIN)
    await store.apply([], [allow(name="A")], ORIGIN)
    assert await reopened(store) == sorted(set(acls) - {allow(name="A")})


TEXTS = (
    "é",
    "e\u0301",
    "𝄞",
    "\0",
    "a\0b",
    "a\0",
    "a",
    "'; DROP TABLE acl; --",
    " a ",
    "1",
    "\n",
    "x" * 30_000,
)


async def test_any_text_is_kept_as_it_is(store):
    others = [allow(name=kept_name(store, "a\0c")), allow(name="1.0")]
    acls = [allow(f"User:{text}", name=kept_name(store, text), host=text) for text in TEXTS]
    await store.apply([*acls, *others], [], ORIGIN)
    assert await reopened(store) == sorted([*acls, *others])
    while acls:
        await store.apply([], [acls.pop()], ORIGIN)
        assert await loaded(store) == sorted([*acls, *others])


async def test_many_bindings_are_stored_in_one_change(store, every_case):
    count = 10_000 if every_case else 2_000
    acls = sorted(allow(name=f"topic-{number}") for number in range(count))
    await store.apply(acls, [], ORIGIN)
    assert await reopened(store) == acls
    await store.apply([], acls[:-1], ORIGIN)
    assert await loaded(store) == acls[-1:]


@pytest.mark.timeout(900)
async def test_very_many_bindings_are_there_after_a_restart(store, every_case):
    # A million of them, in `make test-all`.
    await keep_many(store, 4_000 if every_case else 100)


async def test_a_load_that_is_given_up_leaves_the_store_usable(store, every_case):
    count = 10_000 if every_case else 2_000
    await store.apply([allow(name=f"topic-{number}") for number in range(count)], [], ORIGIN)
    chunks = store.load()
    await anext(chunks)
    await chunks.aclose()
    await store.apply([allow()], [], ORIGIN)
    assert allow() in await loaded(store)


async def test_records_that_were_put_are_there_after_a_restart(store):
    await store.apply_records("scram", {"alice": "1", "bob": "2"}, [], ORIGIN)
    await store.apply_records("scram", {"alice": "3", "carol": "4"}, ["bob", "nobody"], ORIGIN)
    expected = {"alice": "3", "carol": "4"}
    assert await store.load_records("scram") == expected
    await reopened(store)
    assert await store.load_records("scram") == expected


async def test_records_of_one_kind_are_not_those_of_another(store):
    await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
    await store.apply_records("token", {"alice": "2"}, ["bob"], ORIGIN)
    await store.apply_records("token", {}, ["alice"], ORIGIN)
    assert await store.load_records("scram") == {"alice": "1"}
    assert await store.load_records("token") == {}
    assert await store.load_records("never") == {}
    assert await reopened(store) == []


async def test_a_record_has_any_name_and_any_value(store):
    others = {"a\0c": "x", "1.0": "1.0"}
    records = {**{text: text for text in TEXTS}, **others}
    await store.apply_records("scram", records, [], ORIGIN)
    await reopened(store)
    assert await store.load_records("scram") == records
    for text in TEXTS:
        await store.apply_records("scram", {}, [text], ORIGIN)
        del records[text]
        assert await store.load_records("scram") == records


async def test_what_was_loaded_does_not_change_with_the_store(store):
    await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
    before = await store.load_records("scram")
    await store.apply_records("scram", {"alice": "2"}, [], ORIGIN)
    assert before == {"alice": "1"}


async def test_the_value_that_a_record_had_first_holds_for_all_who_claim_it(store):
    assert await claim(store, "id", {"a": "1", "b": "2"}, ORIGIN) == {"a": "1", "b": "2"}
    assert await claim(store, "id", {"a": "3", "c": "4"}, ORIGIN) == {"a": "1", "c": "4"}
    assert await claim(store, "id", {"b": "5"}, ORIGIN) == {"b": "2"}
    await store.close()
    await store.open()
    assert await store.load_records("id") == {"a": "1", "b": "2", "c": "4"}


async def test_bindings_and_records_are_changed_at_the_same_time(store):
    changes = [store.apply([allow(name=str(number))], [], ORIGIN) for number in range(20)]
    puts = [store.apply_records("scram", {str(n): str(n)}, [], ORIGIN) for n in range(20)]
    await asyncio.gather(*changes, *puts)
    assert await reopened(store) == sorted(allow(name=str(number)) for number in range(20))
    assert await store.load_records("scram") == {str(n): str(n) for n in range(20)}


class Told:
    """What a store tells who follows it, and the state that follows from that."""

    def __init__(self, store: AclStore, position: int = 0) -> None:
        self.positions = [position]
        self.changes: list[StoreChange] = []
        self.bindings: set[AclBinding] = set()
        self.records: dict[tuple[str, str], str] = {}
        self._news = store.follow(position)

    async def until(self, position: int) -> None:
        async with asyncio.timeout(30):
            while self.positions[-1] < position:
                await self._next()

    async def _next(self) -> None:
        news = await anext(self._news)
        self.positions.append(news.position)
        if isinstance(news, StoreReset):
            self.bindings, self.records = set(news.bindings), dict(news.records)
            return
        self.changes.append(news)
        self.bindings = (self.bindings | set(news.added)) - set(news.removed)
        for key, value in news.records.items():
            self.records.pop(key, None)
            if value is not None:
                self.records[key] = value

    async def ends(self) -> bool:
        async with asyncio.timeout(30):
            return [each async for each in self._news] == []


async def test_positions_grow_with_changes_and_outlive_a_restart(store):
    positions = [await store.position()]
    positions.append(await store.apply([allow(), deny()], [], ORIGIN))
    positions.append(await store.apply_records("scram", {"alice": "1"}, [], ORIGIN))
    positions.append(await store.apply([], [deny()], ORIGIN))
    assert positions == sorted(set(positions))
    assert await store.position() == positions[-1]
    await reopened(store)
    assert await store.position() == positions[-1]
    assert await store.apply([allow("User:bob")], [], ORIGIN) > positions[-1]


async def test_a_change_of_nothing_changes_nothing(store):
    last = await store.apply([allow()], [], ORIGIN)
    assert await store.apply_records("scram", {}, ["nobody"], ORIGIN) == last
    assert await store.apply([], [], ORIGIN) == last
    assert await store.position() == last


async def test_who_follows_is_told_each_change_with_its_origin(store):
    told = Told(store, await store.position())
    odd = allow("User:é\0")
    first = Origin("User:Zoë", "2001:db8::1", 1_700_000_000_123)
    added = await store.apply([allow(), deny(), odd], [], first)
    removed = await store.apply([allow("User:bob")], [deny()], Origin(None, "", 5))
    put = await store.apply_records("scram", {"alice": "1", "bob": "2"}, [], first)
    await store.apply_records("scram", {"alice": "3"}, ["bob"], first)
    last = await store.apply_records("token", {"alice": "4"}, [], first)
    await told.until(last)
    assert told.positions == sorted(set(told.positions))
    assert {added, removed, put, last} <= set(told.positions)
    assert [(set(each.added), set(each.removed)) for each in told.changes[:2]] == [
        ({allow(), deny(), odd}, set()),
        ({allow("User:bob")}, {deny()}),
    ]
    origins = [each.origin for each in told.changes]
    assert origins == [first, Origin(None, "", 5), first, first, first]
    assert told.bindings == set(await loaded(store))
    assert told.records == {("scram", "alice"): "3", ("token", "alice"): "4"}


async def test_who_follows_from_an_old_position_comes_to_what_there_is(store, every_case):
    await store.apply([allow(), deny()], [], ORIGIN)
    old = await store.position()
    await store.apply_records("scram", {"alice": "1", "bob": "2"}, [], ORIGIN)
    # More than is kept in memory; fewer daily where each change is a request to another server.
    count = 12_000 if every_case or not store.is_shared else 2_000
    many = [allow(name=f"topic-{number}") for number in range(count)]
    await store.apply(many, [deny()], ORIGIN)
    await store.apply_records("scram", {}, ["bob"], ORIGIN)
    last = await store.apply([], many[1:], ORIGIN)
    for position, before in ((0, set()), (old, {allow(), deny()})):
        told = Told(store, position)
        told.bindings = before
        await told.until(last)
        assert told.bindings == {allow(), many[0]}
        assert told.records == {("scram", "alice"): "1"}
        last = await store.apply([], [allow()], ORIGIN)
        await told.until(last)
        assert told.bindings == {many[0]}
        last = await store.apply([allow()], [], ORIGIN)


async def test_who_follows_from_before_a_restart_comes_to_what_there_is(store):
    await store.apply([allow()], [], ORIGIN)
    old = await store.position()
    await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
    await store.apply([deny()], [allow()], ORIGIN)
    await reopened(store)
    told = Told(store, old)
    told.bindings = {allow()}
    await told.until(await store.position())
    assert told.bindings == {deny()}
    assert told.records == {("scram", "alice"): "1"}


async def test_following_ends_when_the_store_is_closed(store):
    waiting = asyncio.create_task(Told(store, await store.position()).ends())
    await asyncio.sleep(0)
    await store.close()
    assert await waiting


async def test_what_many_apply_at_once_is_told_in_one_order_and_lost_by_none(store):
    told = [Told(store, await store.position()) for _ in range(2)]

    async def grant_and_revoke(number: int) -> None:
        name = f"topic-{number % 4}"
        for _ in range(5):
            await store.apply([allow(name=name), allow(f"User:{number}")], [], ORIGIN)
            await store.apply([deny(name=name)], [allow(name=name)], ORIGIN)
            await store.apply_records("scram", {name: str(number)}, [], ORIGIN)

    await asyncio.gather(*map(grant_and_revoke, range(8)))
    for each in told:
        await each.until(await store.position())
        assert each.positions == sorted(set(each.positions))
        assert each.bindings == set(await loaded(store))
        kept = await store.load_records("scram")
        assert {name: each.records["scram", name] for name in kept} == kept
    assert told[0].changes == told[1].changes


async def test_who_follows_is_told_what_another_broker_has_changed(store, another):
    told = Told(another, await another.position())
    other = Told(store, await store.position())
    await store.apply([allow(), deny()], [], ORIGIN)
    await another.apply([allow("User:bob")], [deny()], ORIGIN)
    await store.apply_records("scram", {"alice": "1", "bob": "2"}, [], ORIGIN)
    await another.apply_records("scram", {"alice": "3"}, ["bob"], ORIGIN)
    await told.until(await another.position())
    await other.until(await another.position())
    assert told.bindings == set(await loaded(store)) == {allow(), allow("User:bob")}
    assert told.records == {("scram", "alice"): "3"}
    assert await store.load_records("scram") == await another.load_records("scram")


async def test_what_two_brokers_change_at_once_is_lost_by_neither(store, another):
    told = [Told(each, await each.position()) for each in (store, another)]

    async def grant_and_revoke(by: AclStore, number: int) -> None:
        name = f"topic-{number % 4}"
        for _ in range(5):
            await by.apply([allow(name=name), allow(f"User:{number}")], [], ORIGIN)
            await by.apply([deny(name=name)], [allow(name=name)], ORIGIN)
            await by.apply_records("scram", {name: str(number), str(number): "1"}, [], ORIGIN)

    writers = [(store, number) for number in range(4)] + [(another, n) for n in range(4, 8)]
    await asyncio.gather(*(grant_and_revoke(*each) for each in writers))
    for each, of in zip(told, (store, another), strict=True):
        await each.until(await of.position())
        assert each.positions == sorted(set(each.positions))
        assert each.bindings == set(await loaded(store)) == set(await loaded(another))
        kept = await store.load_records("scram")
        assert kept == {name: value for (_, name), value in each.records.items()}
        assert set(kept) >= {str(number) for number in range(8)}


# A store in memory takes whatever it is given; others refuse a text that cannot be written.
@pytest.mark.parametrize("store", [name for name in STORES if "memory" not in name], indirect=True)
async def test_a_change_that_fails_changes_nothing_of_what_it_asks_for(store):
    kept = [allow(), deny()]
    before = await store.apply(kept, [], ORIGIN)
    with pytest.raises(StoreError):
        await store.apply([allow(name="good"), allow(name="\ud800")], kept, ORIGIN)
    with pytest.raises(StoreError):
        await store.apply_records("scram", {"good": "1", "bad": "\ud800"}, [], ORIGIN)
    assert await store.position() == before
    assert await reopened(store) == sorted(kept)
    assert await store.load_records("scram") == {}
    assert await store.apply([], [deny()], ORIGIN) > before
    assert await loaded(store) == [allow()]


async def test_the_cluster_id_is_made_once_and_has_the_form_of_kafkas(store):
    cluster_id = await store.cluster_id()
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster_id)
    await reopened(store)
    assert await store.cluster_id() == cluster_id


async def test_two_stores_have_two_cluster_ids(store, tmp_path):
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    await other.open()
    assert await other.cluster_id() != await store.cluster_id()
    await other.close()


async def test_closing_twice_is_closing_once(store):
    await store.close()
    await store.close()


@pytest.mark.parametrize(
    "url", ["", "acls.db", "sqlite:", "sqlite://", "sqlite:///", "mysql:///x", "sqlite:///a\0b"]
)
def test_a_url_that_names_no_store_is_refused_with_those_that_do(url):
    with pytest.raises(StoreError, match="sqlite:///relative/path"):
        open_store(url)


async def test_a_sqlite_path_is_relative_with_three_slashes_and_absolute_with_four(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///here.db", f"sqlite:///{tmp_path}/there.db"):
        named = open_store(url)
        await named.open()
        await named.close()
    assert (tmp_path / "here.db").exists()
    assert (tmp_path / "there.db").exists()
