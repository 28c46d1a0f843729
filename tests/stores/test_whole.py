"""A quiet store is one whole file, its parts belong together, and nobody else gets at it."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.stores.database import Database
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import StoreError
from tests.acl.examples import allow, deny
from tests.stores import killed_writer
from tests.stores.origins import ORIGIN
from tests.stores.test_sqlite import content, loaded, opened, refusal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "acls.db"


@pytest.fixture
def quick(monkeypatch):
    """Let a store be quiet after a moment."""
    monkeypatch.setattr("aclbroker.broker.stores.sqlite._TICK_S", 0.01)


def wal(path: Path) -> Path:
    return Path(f"{path}-wal")


async def until(holds):
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


async def test_a_quiet_store_is_one_file_that_may_be_copied_while_it_is_in_use(
    path, tmp_path, quick
):
    async with opened(path) as store:
        for acl in (allow(), deny()):
            await store.apply([acl], [], ORIGIN)
            await until(lambda: not wal(path).stat().st_size)
        await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
        await until(lambda: not wal(path).stat().st_size)
        shutil.copy(path, tmp_path / "copy.db")
    assert await content(tmp_path / "copy.db") == sorted([allow(), deny()])


async def test_a_copy_without_the_log_of_a_store_in_use_is_refused(path, tmp_path):
    async with opened(path) as store:
        await store.apply([allow()], [], ORIGIN)
        # Already now: the file says that there may be more, before the first change is answered.
        shutil.copy(path, tmp_path / "copy.db")
        await store.apply([deny()], [], ORIGIN)
        shutil.copy(path, tmp_path / "later.db")
    for name in ("copy.db", "later.db"):
        said = await refusal(tmp_path / name)
        assert "without its write-ahead log" in said
        assert f"{name}-wal" in said
    assert await content(path) == sorted([allow(), deny()])


async def test_an_older_copy_at_the_same_place_is_refused_until_its_mark_is_gone(path, tmp_path):
    async with opened(path) as store:
        await store.apply([allow()], [], ORIGIN)
    shutil.copy(path, tmp_path / "older.db")
    async with opened(path) as store:
        await store.apply([deny()], [], ORIGIN)
    shutil.copy(tmp_path / "older.db", path)
    said = await refusal(path)
    assert "ends with transaction 1, and 2 had been stored here" in said
    assert "aclbroker store restore" in said
    Path(f"{path}.lock").unlink()
    assert await content(path) == [allow()]


async def test_a_log_without_its_file_is_refused(path):
    wal(path).write_bytes(b"x" * 100)
    assert "put the file back that belongs to it" in await refusal(path)
    assert not path.exists()


async def test_a_store_that_was_only_read_by_a_shell_after_a_crash_starts(path):
    command = [sys.executable, "-m", killed_writer.__name__, path]
    subprocess.run(command, timeout=60, check=False)
    assert wal(path).stat().st_size
    with closing(sqlite3.connect(path)) as shell:
        shell.execute("SELECT * FROM acl").fetchall()
    assert not wal(path).exists()
    assert deny("User:mallory") in await content(path)


async def test_a_start_that_is_killed_leaves_no_half_of_a_store(path):
    Path(f"{path}.new").write_bytes(b"half")
    assert await content(path) == []
    assert not Path(f"{path}.new").exists()


async def test_a_file_that_is_removed_is_noticed_without_a_change(path, tmp_path, quick):
    with capture_logs() as logs:
        async with opened(path) as store:
            await store.apply([allow()], [], ORIGIN)
            path.rename(tmp_path / "away.db")
            await until(lambda: logs)
            await asyncio.gather(*(store.position() for _ in range(3)), return_exceptions=True)
            with pytest.raises(StoreError, match="before you restart the broker"):
                await store.apply([deny()], [], ORIGIN)
            (tmp_path / "away.db").rename(path)
            await store.apply([deny()], [], ORIGIN)
    assert [log["log_level"] for log in logs] == ["error"]
    assert "was removed while the broker used it" in logs[0]["reason"]
    assert "-wal and -shm" in logs[0]["reason"]
    assert await content(path) == sorted([allow(), deny()])


async def test_a_store_says_where_it_is_and_whether_it_is_new(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    for is_new in (True, False):
        store = SqliteStore(path.name)
        await store.open()
        status = await store.status()
        assert (status.place, status.is_new, status.records) == (str(path), is_new, 1 - is_new)
        await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
        await store.close()


async def test_damaged_rows_are_named(path):
    async with opened(path) as store:
        await store.apply([allow(name=str(number)) for number in range(20)], [], ORIGIN)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("UPDATE acl_change SET permission = 2 WHERE id IN (7, 11)")
    assert "the table acl_change: those with the ids 7, 11;" in await refusal(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("DELETE FROM acl_change WHERE id IN (7, 11)")
    assert "18 rows of the table acl_change where the table seal has 20" in await refusal(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE record SET value = 'x' WHERE name = 'bob'",
        "DELETE FROM record WHERE name = 'bob'",
        "UPDATE seal SET records = 0",
        "DELETE FROM seal",
        "PRAGMA user_version = 0",
        "ALTER TABLE meta ADD COLUMN extra TEXT",
    ],
)
async def test_other_damage_is_refused_too(path, damage):
    async with opened(path) as store:
        await store.apply([allow()], [], ORIGIN)
        await store.apply_records("scram", {"alice": "1", "bob": "sesame"}, [], ORIGIN)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute(damage)
    said = await refusal(path)
    assert "restore it from a backup" in said
    assert "sesame" not in said


async def test_the_seal_follows_compaction_and_ids_are_never_used_again(path, monkeypatch):
    monkeypatch.setattr("aclbroker.broker.stores.database._LITTER", 2)
    acls = [allow(name=str(number)) for number in range(6)]
    async with opened(path, history_changes=0) as store:
        await store.apply(acls, [], ORIGIN)
        await store.apply([], acls[3:], ORIGIN)
        await loaded(store)
        await store.apply([allow("User:new")], [], ORIGIN)
    with closing(sqlite3.connect(path)) as shell:
        [[greatest]] = shell.execute("SELECT max(id) FROM acl_change").fetchall()
    assert greatest == 10
    assert await content(path) == sorted([*acls[:3], allow("User:new")])


def test_a_file_that_loses_transactions_while_it_is_used_is_noticed(path, tmp_path):
    database = Database(path)
    database.open()
    database.apply([allow()], [], ORIGIN)
    database.settle()
    before = path.read_bytes()
    database.apply([deny()], [], ORIGIN)
    database.settle()
    with pytest.raises(StoreError, match="surrogates"):
        database.apply([allow(name="\ud800")], [], ORIGIN)
    path.write_bytes(before)
    with pytest.raises(StoreError, match="1 transactions where 2 had been stored"):
        database.apply([allow("User:new")], [], ORIGIN)
    database.close()
