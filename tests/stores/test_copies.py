"""Backups, their way back, and what can be kept of a damaged file."""

import errno
import fcntl
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from aclbroker.broker.stores.copies import backup, restore
from aclbroker.broker.stores.examination import examine, examining
from aclbroker.broker.stores.locks import StoreLocks
from aclbroker.broker.stores.repair import LossNotAccepted, repair
from aclbroker.broker.stores.store import StoreError
from tests.acl.examples import allow, deny
from tests.stores import killed_writer
from tests.stores.origins import ORIGIN
from tests.stores.test_schema import old_file
from tests.stores.test_sqlite import content, opened, refusal
from tests.stores.test_whole import wal

ACLS = sorted([allow(f"User:{n}", name=f"topic-{n}") for n in range(3_000)] + [deny()])


@pytest.fixture
async def path(tmp_path):
    path = tmp_path / "acls.db"
    async with opened(path) as store:
        await store.apply(ACLS, [], ORIGIN)
        await store.apply_records("scram", {"alice": "1", "bob": "sesame"}, [], ORIGIN)
    return path


def ends(*_):
    raise OSError(errno.EIO, "as if it had been killed")


def damage(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute(statement, values)


async def records(path):
    async with opened(path) as store:
        return await store.load_records("scram")


async def test_a_backup_of_a_store_in_use_is_one_whole_file(path, tmp_path):
    async with opened(path) as store:
        await store.apply([], [deny()], ORIGIN)
        found = backup(path, tmp_path / "copy.db")
        assert (found.acls, found.records) == (len(ACLS) - 1, 2)
        await store.apply([allow("User:late")], [], ORIGIN)
        # The broker's locks are still there, and its connection still works.
        with pytest.raises(StoreError, match="in use by a broker"):
            restore(tmp_path / "copy.db", path)
    assert sorted(tmp_path.glob("copy.db*")) == [tmp_path / "copy.db"]
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    assert await content(tmp_path / "copy.db") == sorted({*ACLS} - {deny()})
    assert allow("User:late") in await content(path)


async def test_a_restored_store_is_that_of_the_backup_and_the_former_one_is_kept(path, tmp_path):
    backup(path, tmp_path / "copy.db")
    async with opened(path) as store:
        await store.apply([], ACLS, ORIGIN)
    _, aside = restore(tmp_path / "copy.db", path)
    assert await content(path) == ACLS
    assert await records(path) == {"alice": "1", "bob": "sesame"}
    assert aside is not None
    assert await content(aside) == []


@pytest.mark.parametrize("step", ["creation.sync", "creation.Path.replace"])
async def test_a_restore_that_does_not_come_to_its_end_leaves_the_store(
    path, tmp_path, monkeypatch, step
):
    backup(path, tmp_path / "copy.db")
    async with opened(path) as store:
        await store.apply([], ACLS[1:], ORIGIN)
    monkeypatch.setattr(f"aclbroker.broker.stores.{step}", ends)
    with pytest.raises(StoreError, match="killed"):
        restore(tmp_path / "copy.db", path)
    assert await content(path) == ACLS[:1]


async def test_a_store_whose_log_was_set_aside_alone_is_refused(path, tmp_path, monkeypatch):
    backup(path, tmp_path / "copy.db")
    subprocess.run([sys.executable, "-m", killed_writer.__name__, tmp_path / "a.db"], check=False)
    assert wal(tmp_path / "a.db").stat().st_size
    monkeypatch.setattr(Path, "replace", ends)
    with pytest.raises(StoreError, match="killed"):
        restore(tmp_path / "copy.db", tmp_path / "a.db")
    assert "restore" in await refusal(tmp_path / "a.db")


async def test_a_store_is_restored_where_there_was_none(path, tmp_path):
    _, aside = restore(path, tmp_path / "other.db")
    assert aside is None
    assert await content(tmp_path / "other.db") == ACLS


async def test_a_damaged_store_is_neither_backed_up_nor_restored(path, tmp_path):
    shutil.copy(path, tmp_path / "good.db")
    damage(path, "UPDATE acl_change SET host = 'x' WHERE id = 1000")
    with pytest.raises(StoreError, match="1000"):
        backup(path, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="1000"):
        restore(path, tmp_path / "good.db")
    assert not (tmp_path / "copy.db").exists()
    assert await content(tmp_path / "good.db") == ACLS
    with pytest.raises(StoreError, match="exists"):
        backup(tmp_path / "good.db", path)


def test_a_store_of_an_older_version_is_backed_up_as_it_is(tmp_path):
    old_file(tmp_path / "old.db", 2)
    assert backup(tmp_path / "old.db", tmp_path / "copy.db").version == 2
    assert examine(tmp_path / "copy.db").problems == []
    with pytest.raises(StoreError, match="no checksums"):
        repair(tmp_path / "old.db", tmp_path / "repaired.db", accept_loss=True)


async def test_a_whole_store_has_no_problems_also_while_it_is_used(path):
    before = path.read_bytes()
    found = examine(path)
    assert (found.problems, found.acls, found.records) == ([], len(ACLS), 2)
    assert path.read_bytes() == before
    assert not Path(f"{path}-shm").exists()
    async with opened(path) as store:
        await store.apply([], [deny()], ORIGIN)
        found = examine(path)
        assert (found.problems, found.acls, found.is_running) == ([], len(ACLS) - 1, True)
        await store.apply([deny()], [], ORIGIN)
    assert await content(path) == ACLS


DAMAGES = {
    "a row": "UPDATE acl_change SET permission = 5 - permission WHERE id = 1000",
    "a text that is none": "UPDATE acl_change SET host = CAST(x'ff' AS TEXT) WHERE id = 1000",
    "a row less": "DELETE FROM acl_change WHERE id = 1000",
    "the seal": "UPDATE seal SET changes = 7",
    "the cluster id": "UPDATE meta SET value = 'x'",
}


@pytest.mark.parametrize("statement", DAMAGES.values(), ids=DAMAGES)
async def test_a_denial_is_never_dropped_without_a_word(path, tmp_path, statement):
    damage(path, statement)
    repaired = tmp_path / "repaired.db"
    with pytest.raises(LossNotAccepted, match="may have been a DENY") as refused:
        repair(path, repaired, accept_loss=False)
    assert refused.value.found.problems
    assert not list(tmp_path.glob("repaired*"))
    found = repair(path, repaired, accept_loss=True)
    assert found.problems
    kept = await content(repaired)
    assert set(kept) <= set(ACLS)
    assert len(kept) >= len(ACLS) - 1
    assert await records(repaired) == {"alice": "1", "bob": "sesame"}
    # The last change was one of records: no other may have its position.
    async with opened(repaired) as store:
        await store.apply([deny(name="new")], [], ORIGIN)
    assert await content(repaired) == sorted([*kept, deny(name="new")])
    assert not examine(repaired).problems


async def test_damaged_rows_are_shown_and_values_of_records_are_not(path, tmp_path):
    damage(path, "UPDATE acl_change SET host = 'evil' WHERE id = 1000")
    damage(path, "UPDATE record SET value = 'sesame2' WHERE name = 'bob'")
    found = repair(path, tmp_path / "repaired.db", accept_loss=True)
    assert "row 1000" in found.problems[0]
    assert "evil" in found.problems[0]
    assert "'bob' of the kind 'scram'" in found.problems[2]
    assert "sesame" not in str(found.problems)
    assert await records(tmp_path / "repaired.db") == {"alice": "1"}


async def test_a_lost_record_is_no_lost_acl(path, tmp_path):
    damage(path, "DELETE FROM record WHERE name = 'bob'")
    found = repair(path, tmp_path / "repaired.db", accept_loss=False)
    assert "1 rows are what was written, where the table seal has 2" in found.problems[0]
    assert await content(tmp_path / "repaired.db") == ACLS


async def test_rows_around_a_page_that_cannot_be_read_are_kept(path, tmp_path):
    with closing(sqlite3.connect(path)) as shell:
        pages = "SELECT pageno FROM dbstat WHERE name = 'acl_change' AND pagetype = 'leaf'"
        leaves = [number for (number,) in shell.execute(pages)]
    data = bytearray(path.read_bytes())
    page = leaves[len(leaves) // 2] - 1
    data[page * 4096 : page * 4096 + 200] = bytes([255]) * 200
    path.write_bytes(data)
    found = repair(path, tmp_path / "repaired.db", accept_loss=True)
    assert any("cannot be read" in problem for problem in found.problems)
    kept = await content(tmp_path / "repaired.db")
    assert set(kept) < set(ACLS)
    assert len(kept) > len(ACLS) - 200


async def test_a_file_in_use_is_known_by_its_own_lock_where_the_other_was_removed(path, tmp_path):
    Path(f"{path}.lock").unlink()
    with path.open("rb") as used:
        # As a broker in another process has it.
        fcntl.flock(used, fcntl.LOCK_SH)
        assert examine(path).is_running
        with pytest.raises(StoreError, match="in use by a broker"):
            repair(path, tmp_path / "repaired.db", accept_loss=True)
    with examining(path) as (found, _):
        assert not found.is_running
        locks = StoreLocks(path)
        locks.take()
        with pytest.raises(BlockingIOError):
            locks.take_file()
        locks.release()
    assert await content(path) == ACLS


async def test_repair_writes_over_nothing_and_leaves_a_store_in_use_alone(path, tmp_path):
    with pytest.raises(StoreError, match="exists"):
        repair(path, path, accept_loss=True)
    async with opened(path):
        with pytest.raises(StoreError, match="in use by a broker"):
            repair(path, tmp_path / "repaired.db", accept_loss=True)
    with pytest.raises(StoreError, match="there is no ACL store"):
        examine(tmp_path / "none.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreError, match="0 bytes"):
        examine(tmp_path / "empty.db")
