"""The tables of the SQLite file, and how a file of an older version gets them.

ACLs are kept in a table of changes, to which each change is appended. A table ordered by ACL would
be changed in as many places as a transaction has ACLs, and these lie farther apart the larger it
is; appending costs the same however many ACLs there are. Removed ACLs stay behind as dead rows
until these are deleted. The view ``acl`` shows the ACLs that exist. Other records, which are few,
have a table of names and values.
"""

from __future__ import annotations

import sqlite3
from typing import Final

APPLICATION_ID: Final = 0x61636C62  # "aclb"
SCHEMA_VERSION: Final = 3

FIELDS: Final = "resource_type, resource_name, pattern_type, principal, host, operation, permission"
"""The columns of an ACL, in the order of the fields of `AclBinding`."""


class InvalidRow(Exception):
    """A row of the file is not valid; the text tells which one."""


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


_CHANGES: Final = (
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
    CREATE VIEW acl AS SELECT {FIELDS} FROM acl_change WHERE id NOT IN ({dead_rows("removed")})
    """,  # noqa: S608
)
_RECORDS: Final = (
    """
    CREATE TABLE record (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID
    """,
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_META: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
)


def create(connection: sqlite3.Connection, cluster_id: str) -> None:
    """Make an empty file a store of ACLs."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in (*_CHANGES, *_RECORDS, *_META):
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('cluster.id', ?)", (cluster_id,))
    connection.execute("COMMIT")


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file of an older version up to date."""
    connection.execute("BEGIN IMMEDIATE")
    if version < 2:
        _append_acls_of_version_1(connection)
    for statement in _RECORDS:
        connection.execute(statement)
    connection.execute("COMMIT")


def _append_acls_of_version_1(connection: sqlite3.Connection) -> None:
    """Append the ACLs of the table ``acl`` of version 1, which was ordered by ACL."""
    connection.execute("ALTER TABLE acl RENAME TO acl_1")
    for statement in _CHANGES:
        connection.execute(statement)
    connection.execute(f"INSERT INTO acl_change SELECT NULL, 0, {FIELDS} FROM acl_1")  # noqa: S608
    connection.execute("DROP TABLE acl_1")
