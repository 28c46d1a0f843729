"""The SQLite file: who may use it, and what happens if it is not as it should be."""

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from aclbroker.broker.stores.schema import SCHEMA_VERSION
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import StoreError
from tests.acl.examples import allow, deny
from tests.stores import full_disk
from tests.stores.origins import ORIGIN

ACLS = sorted(allow(f"User:user-{n}", name=f"a-topic-of-some-length-{n}") for n in range(2_000))
_NOBODY = 65534


@asynccontextmanager
async def opened(path, **settings):
    store = SqliteStore(path, **settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def loaded(store):
    return sorted([binding async for chunk in store.load() for binding in chunk])


async def content(path):
    async with opened(path) as store:
        return await loaded(store)


async def refusal(path) -> str:
    """What the store says when it refuses to open and load the file."""
    with pytest.raises(StoreError) as refused:
        await content(path)
    assert str(path) in str(refused.value)
    threads = [thread.name for thread in threading.enumerate()]
    assert not [name for name in threads if name.startswith("aclbroker-sqlite")]
    return str(refused.value)


@pytest.fixture
async def path(tmp_path):
    """A file with `ACLS`, closed."""
    path = tmp_path / "acls.db"
    async with opened(path) as store:
        await store.apply(ACLS, [], ORIGIN)
    return path


async def test_only_the_owner_may_read_the_files(tmp_path):
    path = tmp_path / "acls.db"
    before = os.umask(0)
    try:
        async with opened(path) as store:
            await store.apply([allow()], [], ORIGIN)
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["acls.db", "acls.db-wal", "acls.db-shm", "acls.db.lock"], 0o600)


async def test_a_second_broker_may_use_the_same_file_by_any_name(path, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(path)
    async with opened(path) as store:
        for name in (path, link):
            assert await content(name) == ACLS
        await store.apply([deny()], [], ORIGIN)
        assert deny() in await content(link)
    assert deny() in await content(path)


async def test_a_lock_file_that_a_dead_broker_left_is_no_lock(path):
    assert Path(f"{path}.lock").exists()
    assert await content(path) == ACLS


@pytest.mark.parametrize("ending", [".lock", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("is_new", [True, False])
async def test_a_link_in_place_of_a_file_beside_the_store_is_refused_and_not_written_through(
    path, tmp_path, ending, is_new
):
    target = tmp_path / "of another program"
    target.write_text("precious")
    if is_new:
        path.unlink()
    link = Path(f"{path}{ending}")
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    said = await refusal(path)
    assert f"{link} is a symbolic link" in said
    assert "Remove the link" in said
    assert target.read_text() == "precious"
    link.unlink()
    assert await content(path) == ([] if is_new else ACLS)


async def test_a_store_that_is_not_open_says_so(path):
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="not open"):
        await store.apply([allow()], [], ORIGIN)
    await store.open()
    with pytest.raises(StoreError, match="open already"):
        await store.open()
    await store.close()


@pytest.mark.parametrize("statement", ["CREATE TABLE t (x)", "PRAGMA application_id = 7"])
async def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path, statement):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.execute("PRAGMA user_version = 5")
    before = path.read_bytes()
    assert "another program" in await refusal(path)
    assert path.read_bytes() == before
    assert not Path(f"{path}-wal").exists()


async def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    assert f"newer aclbroker (schema {SCHEMA_VERSION + 1}" in await refusal(path)
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk\n" * 400)
    before = path.read_bytes()
    assert "not an ACL store" in await refusal(path)
    assert path.read_bytes() == before


async def test_an_empty_file_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "acls.db"
    path.touch()
    assert "is empty (0 bytes)" in await refusal(path)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("name", ["missing/acls.db", "directory", "/proc/acls.db"])
async def test_a_path_where_no_file_can_be_is_refused(tmp_path, name):
    (tmp_path / "directory").mkdir()
    assert "may write there" in await refusal(tmp_path / name)


@pytest.mark.parametrize("offset", [0, 100, 4096, 16 * 4096])
async def test_a_damaged_file_is_refused_and_can_be_restored(path, offset):
    good = path.read_bytes()
    assert len(good) > 20 * 4096
    path.write_bytes(good[:offset] + b"garbage\n" * 512 + good[offset + 4096 :])
    assert "restore" in await refusal(path)
    path.write_bytes(good)
    assert await content(path) == ACLS


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE acl_change SET operation = 77 WHERE resource_name LIKE '%-7'",
        "UPDATE acl_change SET resource_type = 1 WHERE resource_name LIKE '%-7'",
        "UPDATE acl_change SET pattern_type = 2 WHERE resource_name LIKE '%-7'",
        "UPDATE acl_change SET permission = 'x' WHERE resource_name LIKE '%-7'",
        "UPDATE acl_change SET resource_name = '' WHERE resource_name LIKE '%-7'",
        "UPDATE acl_change SET host = x'00' WHERE resource_name LIKE '%-7'",
        "UPDATE acl_change SET principal = CAST(x'ff' AS TEXT) WHERE resource_name LIKE '%-7'",
        "DROP TABLE acl_change",
    ],
)
async def test_a_file_with_what_is_no_acl_is_refused(path, damage):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    assert "restore it from a backup" in await refusal(path)


@pytest.mark.parametrize(
    "row",
    ["(?1, x'00', 'sesame')", "(?1, 'alice', CAST(x'ff736573616d65' AS TEXT))", "(?1, 'a', x'00')"],
)
async def test_a_record_that_is_no_text_is_refused_and_not_shown(path, row):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"INSERT INTO record SELECT *, 1 FROM (VALUES {row})", ("scram",))
        connection.commit()
    said = await refusal(path)
    assert "restore it from a backup" in said
    assert "kind 'scram'" in said
    assert "sesame" not in said


async def test_a_record_that_could_not_be_put_can_be_put_later(path, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.stores.connection._BUSY_TIMEOUT_S", 0.05)
    async with opened(path) as store:
        await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="another program holds it"):
                await store.apply_records("scram", {"bob": "1"}, ["alice"], ORIGIN)
        with pytest.raises(StoreError, match="surrogates"):
            await store.apply_records("scram", {"bob": "1", "\ud800": "1"}, ["alice"], ORIGIN)
        assert await store.load_records("scram") == {"alice": "1"}
        await store.apply_records("scram", {"bob": "1"}, [], ORIGIN)
    async with opened(path) as store:
        assert await store.load_records("scram") == {"alice": "1", "bob": "1"}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM meta", "no cluster id"),
        (
            "UPDATE meta SET value = iif(value LIKE 'a%', 'b', 'a') || substr(value, 2)",
            "wrong checksum in the table seal",
        ),
    ],
)
async def test_a_file_without_its_cluster_id_is_refused(path, damage, said):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    assert said in await refusal(path)


async def test_a_change_is_refused_while_the_file_is_away_and_works_when_it_is_back(path, tmp_path):
    async with opened(path) as store:
        path.rename(tmp_path / "away.db")
        for _ in range(2):
            with pytest.raises(StoreError, match=str(path)):
                await store.apply([deny()], [], ORIGIN)
        assert not path.exists()
        (tmp_path / "away.db").rename(path)
        await store.apply([allow()], [], ORIGIN)
    assert await content(path) == sorted([*ACLS, allow()])


async def test_a_change_is_refused_if_another_file_took_the_place(path, tmp_path):
    async with opened(path) as store:
        path.rename(tmp_path / "away.db")
        path.write_bytes((tmp_path / "away.db").read_bytes())
        for _ in range(2):
            with pytest.raises(StoreError, match="replaced"):
                await store.apply([deny()], [], ORIGIN)
    assert await content(path) == ACLS


async def test_a_store_may_be_opened_again_on_another_file(path, tmp_path):
    store = SqliteStore(path)
    await store.open()
    await store.close()
    path.rename(tmp_path / "away.db")
    await store.open()
    assert await loaded(store) == []
    await store.close()


async def test_a_store_that_was_emptied_is_not_taken_for_a_new_one(path, tmp_path):
    async with opened(path) as store:
        path.rename(tmp_path / "away.db")
        with pytest.raises(StoreError, match=str(path)):
            await store.apply([deny()], [], ORIGIN)
        (tmp_path / "away.db").rename(path)
        os.truncate(path, 0)
        for _ in range(2):
            with pytest.raises(StoreError, match="was emptied while in use"):
                await store.apply([deny()], [], ORIGIN)


async def test_a_change_that_fails_in_the_middle_changes_nothing(path):
    async with opened(path) as store:
        with pytest.raises(StoreError, match="surrogates"):
            await store.apply([deny(), allow(name="a\ud800")], ACLS, ORIGIN)
        assert await loaded(store) == ACLS
        await store.apply([allow()], [], ORIGIN)
    assert await content(path) == sorted([*ACLS, allow()])


async def test_another_program_that_holds_the_file_is_named_as_the_cause(path, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.stores.connection._BUSY_TIMEOUT_S", 0.05)
    async with opened(path) as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="another program holds it"):
                await store.apply([deny()], [], ORIGIN)
        await store.apply([allow()], [], ORIGIN)
    assert await content(path) == sorted([*ACLS, allow()])


@contextmanager
def as_ordinary_user(*owned: Path):
    """Drop root's right to write everywhere; the files belong to the user that then acts."""
    if os.geteuid() != 0:
        yield
        return
    for file in owned:
        os.chown(file, _NOBODY, _NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_directory():
    # pytest's own directories are closed to every user but the one that runs it.
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("read_only", ["file", "directory"])
async def test_a_read_only_store_is_refused_until_it_is_writable(public_directory, read_only):
    path = public_directory / "acls.db"
    async with opened(path) as store:
        await store.apply(ACLS, [], ORIGIN)
    Path(f"{path}.lock").unlink()
    target, mode = (path, 0o400) if read_only == "file" else (public_directory, 0o500)
    with as_ordinary_user(path, public_directory):
        target.chmod(mode)
        assert "may write there" in await refusal(path)
        target.chmod(0o700)
        async with opened(path) as store:
            assert await loaded(store) == ACLS
            await store.apply([allow()], [], ORIGIN)


def test_a_full_disk_refuses_changes_loses_nothing_and_works_again_with_space(tmp_path):
    path = tmp_path / "acls.db"
    script = [sys.executable, "-m", full_disk.__name__, path]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "done"
