"""The tables of the SQLite file: of older versions, as a person reads them, and without litter."""

import sqlite3
import struct
from contextlib import closing
from zlib import crc32

import pytest
from structlog.testing import capture_logs

from aclbroker.broker.stores.copies import backup, restore
from aclbroker.broker.stores.examination import examine
from aclbroker.broker.stores.locks import Mark, StoreLocks
from aclbroker.broker.stores.repair import repair
from aclbroker.broker.stores.schema import SCHEMA_VERSION
from aclbroker.broker.stores.store import StoreError
from tests.acl.examples import PREFIXED, allow, deny
from tests.stores.origins import ORIGIN
from tests.stores.test_sqlite import content, loaded, opened, refusal

ACLS = sorted([allow(), deny("User:\0é"), allow(pattern_type=PREFIXED), *map(allow, "abc")])

VERSION_1 = (
    """
    CREATE TABLE acl (
        resource_type INTEGER NOT NULL,
        resource_name TEXT NOT NULL,
        pattern_type INTEGER NOT NULL,
        principal TEXT NOT NULL,
        host TEXT NOT NULL,
        operation INTEGER NOT NULL,
        permission INTEGER NOT NULL,
        PRIMARY KEY (
            resource_type, resource_name, pattern_type, principal, host, operation, permission
        )
    ) WITHOUT ROWID
    """,
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "INSERT INTO meta VALUES ('cluster.id', 'abcdefghijklmnopqrstuv')",
    "PRAGMA application_id = 1633905762",
    "PRAGMA user_version = 1",
    "PRAGMA journal_mode = WAL",
)


FIELDS = "resource_type, resource_name, pattern_type, principal, host, operation, permission"
VERSION_2 = (
    """
    CREATE TABLE acl_change (
        id INTEGER PRIMARY KEY,
        removed INTEGER NOT NULL CHECK (removed IN (0, 1)),
        resource_type INTEGER NOT NULL,
        resource_name TEXT NOT NULL,
        pattern_type INTEGER NOT NULL,
        principal TEXT NOT NULL,
        host TEXT NOT NULL,
        operation INTEGER NOT NULL,
        permission INTEGER NOT NULL
    )
    """,
    f"""
    CREATE VIEW acl AS SELECT {FIELDS} FROM acl_change WHERE id NOT IN (
        SELECT change.id FROM acl_change AS change CROSS JOIN (
            SELECT {FIELDS}, max(id) AS last FROM acl_change WHERE removed GROUP BY {FIELDS}
        ) AS removal USING ({FIELDS})
        WHERE change.id <= removal.last
    )
    """,
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "INSERT INTO meta VALUES ('cluster.id', 'abcdefghijklmnopqrstuv')",
    "PRAGMA application_id = 1633905762",
    "PRAGMA user_version = 2",
    "PRAGMA journal_mode = WAL",
)


VERSION_3 = (
    *VERSION_2,
    """
    CREATE TABLE record (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID
    """,
    "INSERT INTO record VALUES ('token', 'a', 'kept')",
    "PRAGMA user_version = 3",
)
PERMISSION_AND_CHECKSUM = "permission INTEGER NOT NULL, checksum INTEGER NOT NULL"
VERSION_4 = (
    VERSION_2[0].replace("permission INTEGER NOT NULL", PERMISSION_AND_CHECKSUM),
    *VERSION_2[1:],
    """
    CREATE TABLE record (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE seal (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        transactions INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        changes_sum INTEGER NOT NULL,
        last_change INTEGER NOT NULL,
        records INTEGER NOT NULL,
        records_sum INTEGER NOT NULL,
        whole INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    )
    """,
    "PRAGMA user_version = 4",
)
VERSIONS = {1: VERSION_1, 2: VERSION_2, 3: VERSION_3, 4: VERSION_4}


def shell(path, *statements):
    """Do what a person does with sqlite3; return what the last statement finds."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            found = connection.execute(statement).fetchall()
        return found


def rows(path):
    [[count]] = shell(path, "SELECT count(*) FROM acl_change")
    return count


@pytest.fixture
def path(tmp_path):
    return tmp_path / "acls.db"


def old_file(path, version):
    """Make a file of an older version, with `ACLS`."""
    shell(path, *VERSIONS[version])
    if version == 4:
        fill_version_4(path)
        return
    start = (
        "INSERT INTO acl VALUES (" if version == 1 else "INSERT INTO acl_change VALUES (NULL, 0, "
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(f"{start}?, ?, ?, ?, ?, ?, ?)", ACLS)
        connection.commit()


def fill_version_4(path):
    """Write what that version wrote: each row with its checksum, and a seal over all."""
    rows = []
    for number, acl in enumerate(ACLS, 1):
        kind, name, pattern, principal, host, operation, permission = acl
        code = kind << 24 | pattern << 16 | operation << 8 | permission
        head = struct.pack("<qqLL", number, code, len(name), len(principal))
        checksum = crc32((name + principal + host).encode(), crc32(head))
        rows.append((number, 0, *acl, checksum))
    record = crc32(b"5 1 tokenakept")
    total = sum(row[-1] for row in rows)
    numbers = (9, len(rows), total, len(rows), 1, record, 1)
    vouched = " ".join([*map(str, numbers), "abcdefghijklmnopqrstuv"])
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(f"INSERT INTO acl_change VALUES ({'?, ' * 9}?)", rows)
        connection.execute("INSERT INTO record VALUES ('token', 'a', 'kept', ?)", (record,))
        values = (1, *numbers, crc32(vouched.encode()))
        connection.execute(f"INSERT INTO seal VALUES ({'?, ' * 8}?)", values)
        connection.commit()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_file_of_an_older_version_is_upgraded_in_place(path, version):
    old_file(path, version)
    async with opened(path) as store:
        assert await loaded(store) == ACLS
        assert await store.cluster_id() == "abcdefghijklmnopqrstuv"
        assert await store.load_records("scram") == {}
        assert await store.load_records("token") == ({"a": "kept"} if version > 2 else {})
        await store.apply([allow("User:new")], ACLS[:2], ORIGIN)
        await store.apply_records("scram", {"alice": "1"}, [], ORIGIN)
    assert await content(path) == sorted([allow("User:new"), *ACLS[2:]])
    scram = "SELECT name, value FROM record WHERE kind = 'scram'"
    assert shell(path, scram) == [("alice", "1")]
    assert shell(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert shell(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_new_file_has_the_version_of_an_upgraded_one(path):
    await content(path)
    assert shell(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize(
    ("version", "name"), [(1, "acl_change"), (1, "record"), (2, "seal"), (3, "seal"), (4, "origin")]
)
async def test_an_upgrade_that_fails_leaves_the_file_as_it_was(path, version, name):
    old_file(path, version)
    shell(path, f"CREATE VIEW {name} AS SELECT 1")
    with pytest.raises(StoreError, match=name):
        await content(path)
    assert shell(path, "PRAGMA user_version") == [(version,)]
    shell(path, f"DROP VIEW {name}")
    assert await content(path) == ACLS


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE acl_change SET operation = 77 WHERE id = 2", "no ACL (id 2)"),
        ("UPDATE record SET value = x'00'", "a record of the kind token that is no text"),
        ("DELETE FROM meta", "no cluster id"),
    ],
)
async def test_an_upgrade_confirms_nothing_that_is_damaged(path, damage, said):
    old_file(path, 3)
    shell(path, damage)
    assert said in await refusal(path)
    assert shell(path, "PRAGMA user_version") == [(3,)]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE acl_change SET operation = 4 WHERE id = 2", "the ids 2;"),
        ("DELETE FROM acl_change WHERE id = 2", "5 rows of the table acl_change where"),
        ("UPDATE record SET value = 'other'", "does not have its checksum"),
        ("UPDATE seal SET transactions = 8", "wrong checksum in the table seal"),
        ("ALTER TABLE seal ADD COLUMN origins INTEGER", "no right definition of seal"),
    ],
)
async def test_what_is_damaged_in_a_file_with_a_seal_is_refused_when_it_is_upgraded(
    path, damage, said
):
    old_file(path, 4)
    shell(path, damage)
    assert said in await refusal(path)
    examined = examine(path)
    assert examined.problems


async def test_a_lost_log_of_an_older_file_is_noticed_before_it_is_upgraded(path):
    old_file(path, 4)
    locks = StoreLocks(path)
    locks.take()
    locks.replace_mark(Mark("abcdefghijklmnopqrstuv", 10))
    locks.release()
    assert "ends with transaction 9, and 10 had been stored here" in await refusal(path)
    assert shell(path, "PRAGMA user_version") == [(4,)]


async def test_an_older_file_is_copied_as_it_is_and_repaired_to_a_new_one(path, tmp_path):
    old_file(path, 4)
    assert examine(path).problems == []
    copied = backup(path, tmp_path / "copy.db")
    assert (copied.acls, copied.version) == (len(ACLS), 4)
    restore(tmp_path / "copy.db", path)
    assert shell(path, "PRAGMA user_version") == [(4,)]
    repair(path, tmp_path / "repaired.db", accept_loss=False)
    assert await content(tmp_path / "repaired.db") == ACLS
    assert await content(path) == ACLS


async def test_removals_of_an_older_file_stay(path):
    old_file(path, 2)
    shell(
        path,
        f"INSERT INTO acl_change SELECT NULL, 1, {FIELDS} FROM acl_change WHERE id = 1",
        "DELETE FROM acl_change WHERE id = 3",
    )
    assert await content(path) == [ACLS[1], *ACLS[3:]]
    assert shell(path, "SELECT max(id) FROM acl_change") == [(len(ACLS) + 1,)]


async def test_a_person_reads_in_the_view_what_there_is(path):
    async with opened(path) as store:
        await store.apply(ACLS, [], ORIGIN)
        await store.apply([], ACLS[1:], ORIGIN)
        await store.apply([ACLS[1]], [], ORIGIN)
        await store.apply([], [ACLS[1]], ORIGIN)
        await store.apply(ACLS[1:3], [], ORIGIN)
    assert sorted(shell(path, "SELECT * FROM acl")) == ACLS[:3]


@pytest.fixture
def tidy(monkeypatch):
    """Let the file be compacted after every third removal."""
    monkeypatch.setattr("aclbroker.broker.stores.database._LITTER", 3)


async def test_rows_of_removed_acls_are_deleted_after_a_number_of_them(path, tidy):
    async with opened(path, history_changes=0) as store:
        await store.apply(ACLS, [], ORIGIN)
        await store.apply([], ACLS[:2], ORIGIN)
        await store.apply(ACLS[:1], [], ORIGIN)
        await store.apply([], ACLS[2:3], ORIGIN)
        expected = [ACLS[0], *ACLS[3:]]
        assert await loaded(store) == expected
    assert rows(path) == len(expected)
    assert await content(path) == expected


async def test_a_large_removal_is_cleared_up_in_parts(path, tidy):
    acls = sorted(map(allow, "abcdefgh"))
    async with opened(path, history_changes=0) as store:
        await store.apply(acls, [], ORIGIN)
        await store.apply([], acls, ORIGIN)
        await store.apply(acls[:2], [], ORIGIN)
        assert await loaded(store) == acls[:2]
        await store.apply([], acls[:1], ORIGIN)
        assert await loaded(store) == acls[1:2]
    assert rows(path) == 1
    assert await content(path) == acls[1:2]


async def test_removals_are_counted_over_restarts(path, tidy):
    async with opened(path, history_changes=0) as store:
        await store.apply(ACLS, [], ORIGIN)
    for acl in ACLS[:3]:
        async with opened(path, history_changes=0) as store:
            await loaded(store)
            await store.apply([], [acl], ORIGIN)
    assert rows(path) == len(ACLS) - 3
    assert await content(path) == ACLS[3:]


async def test_a_file_that_cannot_be_compacted_is_a_warning_and_the_change_stays(
    path, tidy, monkeypatch
):
    async with opened(path, history_changes=0) as store:
        await store.apply(ACLS, [], ORIGIN)

        def refuse(connection, sealed, last):
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as full, capture_logs() as logs:
            full.setattr("aclbroker.broker.stores.history.compact", refuse)
            await store.apply([], ACLS[:3], ORIGIN)
            assert await loaded(store) == ACLS[3:]
        assert [(log["log_level"], str(path) in log["reason"]) for log in logs] == [
            ("warning", True)
        ]
        assert rows(path) == len(ACLS) + 3
        await store.apply([allow("User:new")], [], ORIGIN)
        assert await loaded(store) == sorted([*ACLS[3:], allow("User:new")])
    assert rows(path) == len(ACLS) - 3 + 1
