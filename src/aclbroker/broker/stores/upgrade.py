"""How a file of an older version gets the tables of this one, and the checksums it has not.

Version 1 had a table of ACLs, ordered by ACL. Version 2 had the table of changes, version 3 the one
of records, neither with checksums, and there was no seal. Version 4 had no origins, version 5 had
in them no names of records.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from aclbroker.broker.stores import changes, checksums, inspection, records, schema, seal
from aclbroker.broker.stores.schema import FIELDS, InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import Origin

_ROWS: Final = 1000


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Bring a file of an older version up to date, in one transaction.

    Rows without checksums that are no ACLs or records are refused with `InvalidRow`, since their
    checksums would confirm them. What was changed before there were origins is no history.
    """
    connection.execute("BEGIN IMMEDIATE")
    if version == schema.ORIGINS_VERSION:
        cluster_id, sealed = _with_names(connection)
    else:
        cluster_id, sealed = _with_origins(connection, version)
    seal.write(
        connection, sealed._replace(transactions=sealed.transactions + 1, whole=0), cluster_id
    )
    connection.execute("COMMIT")


def _with_names(connection: sqlite3.Connection) -> tuple[str, Seal]:
    """Give origins a column for names; return the cluster id and the seal."""
    found = inspection.check_tables(connection, schema.ORIGINS_VERSION)
    connection.execute("ALTER TABLE origin RENAME TO old_origin")
    schema.create_tables(connection, "origin")
    columns = "position, first, time_ms, principal, host, kind, checksum"
    connection.execute(f"INSERT INTO origin ({columns}) SELECT {columns} FROM old_origin")  # noqa: S608
    connection.execute("DROP TABLE old_origin")
    return found


def _with_origins(connection: sqlite3.Connection, version: int) -> tuple[str, Seal]:
    if version < schema.SEALED_VERSION:
        cluster_id, sealed = _with_checksums(connection, version)
    else:
        cluster_id, sealed = inspection.check_tables(connection, version)
        connection.execute("DROP TABLE seal")
        schema.create_tables(connection, "origin", "seal")
    now = Origin.now().time_ms
    return cluster_id, sealed._replace(horizon=sealed.last_change, horizon_ms=now)


def _with_checksums(connection: sqlite3.Connection, version: int) -> tuple[str, Seal]:
    """Write all rows anew, with checksums; return the cluster id and what the seal vouches for."""
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
    return cluster_id, sealed


def _copy_changes(connection: sqlite3.Connection, version: int) -> Seal:
    ids = "id, removed" if version > 1 else "NULL, 0"
    order = "id" if version > 1 else FIELDS
    rows = connection.execute(f"SELECT {ids}, {FIELDS} FROM old_acl ORDER BY {order}")  # noqa: S608
    sealed = Seal()
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
