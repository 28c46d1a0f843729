"""The rows of the table of records: texts with a kind and a name, such as SCRAM credentials."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

from aclbroker.broker.stores.schema import InvalidRow


def load(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    """Return the values of all records of a kind, by name. Raises `InvalidRow`."""
    # As bytes, because the sqlite3 module would show a text that is not UTF-8 in its error.
    found = connection.execute(
        """
        SELECT CAST(name AS BLOB), CAST(value AS BLOB), typeof(name) || typeof(value) = 'texttext'
        FROM record WHERE kind = ?
        """,
        (kind,),
    ).fetchall()
    try:
        records = {name.decode(): value.decode() for name, value, is_text in found if is_text}
    except UnicodeDecodeError:
        records = {}
    if len(records) < len(found):
        raise InvalidRow(f"a record of the kind {kind} that is no text")
    return records


def change(
    connection: sqlite3.Connection, kind: str, put: Mapping[str, str], removed: Collection[str]
) -> None:
    """Give records their values, and delete others."""
    connection.executemany(
        "DELETE FROM record WHERE kind = ? AND name = ?", [(kind, name) for name in removed]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO record VALUES (?, ?, ?)",
        [(kind, name, value) for name, value in put.items()],
    )
