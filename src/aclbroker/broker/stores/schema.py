"""The tables of the SQLite file.

ACLs are kept in a table of changes, to which each change is appended. A table ordered by ACL would
be changed in as many places as a transaction has ACLs, and these lie farther apart the larger it
is; appending costs the same however many ACLs there are. Removed ACLs stay behind as dead rows
until these are deleted: they are the history. The table ``origin`` has who made the changes of a
range of ids, and takes an id for each change of records, whose kind and names it has. The view
``acl`` shows the ACLs that exist. Other records, which are few, have a table of names and values.
Each row has a checksum; the table ``seal`` vouches for all rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

APPLICATION_ID: Final = 0x61636C62  # "aclb"
SCHEMA_VERSION: Final = 6
SEALED_VERSION: Final = 4
"""The first version with checksums and a seal."""

ORIGINS_VERSION: Final = 5
"""The first version with origins, those of records without the names of these."""

FIELDS: Final = "resource_type, resource_name, pattern_type, principal, host, operation, permission"
"""The columns of an ACL, in the order of the fields of `AclBinding`."""


class InvalidRow(Exception):
    """Rows of the file are not valid; the text tells which."""


def dead_rows(removals: str) -> str:
    """Return a query for the ids of dead rows: removals that a condition selects, and their ACLs.

    An ACL that was added again is dead up to its last removal only.
    """
    # CROSS keeps the order: one pass over the many rows, each looked up among the few removals.
    return f"""
        SELECT change.id FROM acl_change AS change CROSS JOIN (
            SELECT {FIELDS}, max(id) AS last FROM acl_change WHERE {removals} GROUP BY {FIELDS}
        ) AS removal USING ({FIELDS})
        WHERE change.id <= removal.last
    """  # noqa: S608


_DEFINITIONS: Final = {
    "acl_change": """
    CREATE TABLE acl_change (
        id INTEGER PRIMARY KEY,
        removed INTEGER NOT NULL CHECK (removed IN (0, 1)),
        resource_type INTEGER NOT NULL,
        resource_name TEXT NOT NULL,
        pattern_type INTEGER NOT NULL,
        principal TEXT NOT NULL,
        host TEXT NOT NULL,
        operation INTEGER NOT NULL,
        permission INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    )
    """,
    "acl": f"""
    CREATE VIEW acl AS SELECT {FIELDS} FROM acl_change WHERE id NOT IN ({dead_rows("removed")})
    """,  # noqa: S608
    "origin": """
    CREATE TABLE origin (
        position INTEGER PRIMARY KEY,
        first INTEGER NOT NULL,
        time_ms INTEGER NOT NULL,
        principal TEXT,
        host TEXT NOT NULL,
        kind TEXT,
        names TEXT,
        checksum INTEGER NOT NULL
    )
    """,
    "record": """
    CREATE TABLE record (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID
    """,
    "seal": """
    CREATE TABLE seal (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        transactions INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        changes_sum INTEGER NOT NULL,
        last_change INTEGER NOT NULL,
        records INTEGER NOT NULL,
        records_sum INTEGER NOT NULL,
        whole INTEGER NOT NULL,
        origins INTEGER NOT NULL,
        origins_sum INTEGER NOT NULL,
        horizon INTEGER NOT NULL,
        horizon_ms INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    )
    """,
}
_SEAL_4: Final = """
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
"""
_ORIGIN_5: Final = """
    CREATE TABLE origin (
        position INTEGER PRIMARY KEY,
        first INTEGER NOT NULL,
        time_ms INTEGER NOT NULL,
        principal TEXT,
        host TEXT NOT NULL,
        kind TEXT,
        checksum INTEGER NOT NULL
    )
"""
_META: Final = "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"


def create(connection: sqlite3.Connection, cluster_id: str) -> None:
    """Make the tables of an empty file; the caller writes the seal, and commits."""
    create_tables(connection)
    connection.execute(_META)
    connection.execute("INSERT INTO meta VALUES ('cluster.id', ?)", (cluster_id,))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def create_tables(connection: sqlite3.Connection, *names: str) -> None:
    """Make the tables that are new, or other ones, since version 1; or only some of them."""
    for name in names or _DEFINITIONS:
        connection.execute(_DEFINITIONS[name])
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def check_definitions(connection: sqlite3.Connection, version: int = SCHEMA_VERSION) -> None:
    """Raise `InvalidRow` if a table is not defined as here: its rows could be taken for others."""
    definitions = {**_DEFINITIONS, "meta": _META}
    if version == SEALED_VERSION:
        del definitions["origin"]
        definitions["seal"] = _SEAL_4
    elif version == ORIGINS_VERSION:
        definitions["origin"] = _ORIGIN_5
    expected = {name: text.split() for name, text in definitions.items()}
    found = {
        name: str(text).split()
        for name, text in connection.execute("SELECT name, sql FROM sqlite_master")
    }
    # The view is there for people: nothing is read through it.
    wrong = [
        name
        for name, text in expected.items()
        if found.get(name, text if name == "acl" else None) != text
    ]
    if wrong:
        raise InvalidRow(f"no right definition of {', '.join(wrong)} (sqlite_master)")


def read_cluster_id(connection: sqlite3.Connection) -> str | None:
    """Return the id that was made with the file, None if it is not there."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'cluster.id'").fetchone()
    return found[0] if found and isinstance(found[0], str) else None


def fetched(rows: sqlite3.Cursor, count: int, damage: Callable[[], str]) -> list[tuple[Any, ...]]:
    """Return the next rows. Raises `InvalidRow` with what the damage is for a text not in UTF-8.

    The sqlite3 module's own error would show the text, and not say where it is.
    """
    try:
        return rows.fetchmany(count)
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
        # It is not from SQLite.
        raise InvalidRow(damage()) from None
