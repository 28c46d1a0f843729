"""How a file of an older version gets the tables of this one, and the checksums it has not.

Version 1 had a table of ACLs, ordered by ACL. Version 2 had the table of changes, version 3 the one
of records, neither with checksums, and there was no seal.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from aclbroker.broker.stores import changes, checksums, records, schema, seal
from aclbroker.broker.stores.schema import FIELDS, InvalidRow
from aclbroker.broker.stores.seal import Seal

_ROWS: Final = 1000


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file of a version from 1 to 3 up to date, in one transaction.

    Rows that are no ACLs or records are refused with `InvalidRow`, since their checksums would
    confirm them.
    """
    connection.execute("BEGIN IMMEDIATE")
    if version > 1:
        connection.execute("DROP VIEW IF EXISTS acl")
    old = "acl" if version == 1 else "acl_change"
    connection.execute(f"ALTER TABLE {old} RENAME TO old_acl")
    if version > 2:
        connection.execute("ALTER TABLE record RENAME TO old_record")
    schema.create_tables(connection)
    sealed = _copy_changes(connection, version)
    connection.execute("DROP TABLE old_acl")
    if version > 2:
        sealed = _copy_records(connection, sealed)
        connection.execute("DROP TABLE old_record")
    cluster_id = schema.read_cluster_id(connection)
    if cluster_id is None:
        raise InvalidRow("no cluster id (table meta)")
    seal.write(connection, sealed, cluster_id)
    connection.execute("COMMIT")


def _copy_changes(connection: sqlite3.Connection, version: int) -> Seal:
    ids = "id, removed" if version > 1 else "NULL, 0"
    order = "id" if version > 1 else FIELDS
    rows = connection.execute(f"SELECT {ids}, {FIELDS} FROM old_acl ORDER BY {order}")  # noqa: S608
    sealed = Seal(whole=0)
    while some := rows.fetchmany(_ROWS):
        found = [
            changes.unchecked(number or sealed.last_change + place, *row)
            for place, (number, *row) in enumerate(some, 1)
        ]
        sealed = sealed.with_changes(changes.copy(connection, found)).up_to(found[-1].id)
    return sealed


def _copy_records(connection: sqlite3.Connection, sealed: Seal) -> Seal:
    rows = []
    query = "SELECT kind, CAST(name AS BLOB), CAST(value AS BLOB), typeof(name) || typeof(value) "
    for kind, name, value, types in connection.execute(f"{query} FROM old_record"):
        if types != "texttext":
            raise InvalidRow(f"a record of the kind {kind} that is no text")
        try:
            texts = kind, name.decode(), value.decode()
        except UnicodeDecodeError:
            raise InvalidRow(f"a record of the kind {kind} that is no text") from None
        rows.append((*texts, checksums.of_record(*texts)))
    records.append(connection, rows)
    return sealed.with_records(len(rows), sum(row[-1] for row in rows))
