"""What every store must do, run against each of them."""

import asyncio
import re

import pytest

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore, StoreError, open_store
from tests.acl.examples import GROUP, PREFIXED, WRITE, allow, deny


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/acls.db"
    opened = open_store(url)
    await opened.open()
    yield opened
    await opened.close()


async def loaded(store: AclStore) -> list[AclBinding]:
    return sorted({binding async for chunk in store.load() for binding in chunk})


async def reopened(store: AclStore) -> list[AclBinding]:
    await store.close()
    await store.open()
    return await loaded(store)


async def test_a_new_store_is_empty(store):
    assert await loaded(store) == []


async def test_bindings_that_were_added_are_there_after_a_restart(store):
    acls = sorted([allow(), deny(), allow(resource_type=GROUP), allow(pattern_type=PREFIXED)])
    await store.apply(acls, [])
    assert await loaded(store) == acls
    found = await reopened(store)
    assert found == acls
    assert [list(map(type, acl)) for acl in found] == [list(map(type, acl)) for acl in acls]


async def test_bindings_that_were_removed_are_gone_after_a_restart(store):
    await store.apply([allow(), deny(), allow("User:bob")], [])
    await store.apply([allow(operation=WRITE)], [deny(), allow("User:bob")])
    assert await reopened(store) == sorted([allow(), allow(operation=WRITE)])


async def test_adding_twice_and_removing_what_is_not_there_change_nothing(store):
    await store.apply([allow(), allow()], [])
    await store.apply([allow()], [deny()])
    assert await reopened(store) == [allow()]
    await store.apply([], [allow()])
    assert await reopened(store) == []
    await store.apply([allow()], [])
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
    await store.apply(acls, [])
    assert await loaded(store) == sorted(acls)
    await store.apply([], acls[:1])
    assert await loaded(store) == sorted(acls[1:])


async def test_names_that_differ_in_case_are_different(store):
    acls = sorted([allow(name="a"), allow(name="A"), allow("user:alice"), allow(host="H")])
    await store.apply(acls, [])
    await store.apply([], [allow(name="A")])
    assert await reopened(store) == sorted(set(acls) - {allow(name="A")})


TEXTS = {
    "precomposed": "é",
    "decomposed": "e\u0301",
    "beyond the basic plane": "𝄞",
    "NUL": "\0",
    "NUL inside": "a\0b",
    "NUL at the end": "a\0",
    "no NUL": "a",
    "SQL": "'; DROP TABLE acl; --",
    "spaces": " a ",
    "number": "1",
    "newline": "\n",
    "long": "x" * 30_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_any_text_is_kept_as_it_is(store, text):
    others = [allow(name="a\0c"), allow(name="1.0")]
    acl = allow(f"User:{text}", name=text, host=text)
    await store.apply([acl, *others], [])
    assert await reopened(store) == sorted([acl, *others])
    await store.apply([], [acl])
    assert await loaded(store) == sorted(others)


async def test_many_bindings_are_stored_in_one_change(store):
    acls = sorted(allow(name=f"topic-{number}") for number in range(10_000))
    await store.apply(acls, [])
    assert await reopened(store) == acls
    await store.apply([], acls[:9_999])
    assert await loaded(store) == acls[9_999:]


async def test_a_load_that_is_given_up_leaves_the_store_usable(store):
    await store.apply([allow(name=f"topic-{number}") for number in range(10_000)], [])
    chunks = store.load()
    await anext(chunks)
    await chunks.aclose()
    await store.apply([allow()], [])
    assert allow() in await loaded(store)


async def test_records_that_were_put_are_there_after_a_restart(store):
    await store.apply_records("scram", {"alice": "1", "bob": "2"}, [])
    await store.apply_records("scram", {"alice": "3", "carol": "4"}, ["bob", "nobody"])
    expected = {"alice": "3", "carol": "4"}
    assert await store.load_records("scram") == expected
    await reopened(store)
    assert await store.load_records("scram") == expected


async def test_records_of_one_kind_are_not_those_of_another(store):
    await store.apply_records("scram", {"alice": "1"}, [])
    await store.apply_records("token", {"alice": "2"}, ["bob"])
    await store.apply_records("token", {}, ["alice"])
    assert await store.load_records("scram") == {"alice": "1"}
    assert await store.load_records("token") == {}
    assert await store.load_records("never") == {}
    assert await reopened(store) == []


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_record_has_any_name_and_any_value(store, text):
    others = {"a\0c": "x", "1.0": "1.0"}
    await store.apply_records("scram", {text: text, **others}, [])
    await reopened(store)
    assert await store.load_records("scram") == {text: text, **others}
    await store.apply_records("scram", {}, [text])
    assert await store.load_records("scram") == others


async def test_what_was_loaded_does_not_change_with_the_store(store):
    await store.apply_records("scram", {"alice": "1"}, [])
    before = await store.load_records("scram")
    await store.apply_records("scram", {"alice": "2"}, [])
    assert before == {"alice": "1"}


async def test_bindings_and_records_are_changed_at_the_same_time(store):
    changes = [store.apply([allow(name=str(number))], []) for number in range(20)]
    puts = [store.apply_records("scram", {str(n): str(n)}, []) for n in range(20)]
    await asyncio.gather(*changes, *puts)
    assert await reopened(store) == sorted(allow(name=str(number)) for number in range(20))
    assert await store.load_records("scram") == {str(n): str(n) for n in range(20)}


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
