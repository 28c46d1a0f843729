"""The rows of the table of records: texts with a kind and a name, such as SCRAM credentials."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from aclbroker.broker.stores import checksums
from aclbroker.broker.stores.schema import InvalidRow
from aclbroker.broker.stores.seal import Seal


class Record(NamedTuple):
    """A row as it stands in the file; ``value`` is None if the row is not what was written."""

    kind: str
    name: str
    value: str | None
    checksum: int


def survey(connection: sqlite3.Connection) -> Iterator[Record]:
    """Return all rows, those that are not valid without their value."""
    # As bytes, because the sqlite3 module would show a text that is not UTF-8 in its error.
    rows = connection.execute(
        "SELECT CAST(kind AS BLOB), CAST(name AS BLOB), CAST(value AS BLOB), checksum, "
        "typeof(kind) || typeof(name) || typeof(value) = 'texttexttext' "
        "FROM record ORDER BY kind, name"
    )
    for kind, name, value, checksum, is_text in rows:
        yield _record(kind, name, value, checksum, is_text=bool(is_text))


def _record(kind: bytes, name: bytes, value: bytes, checksum: int, *, is_text: bool) -> Record:
    try:
        texts = kind.decode(), name.decode(), value.decode()
        if is_text and checksums.of_record(*texts) == checksum:
            return Record(*texts, checksum)
    except (UnicodeDecodeError, AttributeError):
        pass
    return Record(_shown(kind), _shown(name), None, 0)


def _shown(text: bytes | None) -> str:
    return (text or b"").decode(errors="replace")


def _described(record: Record) -> str:
    return (
        f"a record of the kind {record.kind!r} and the name {record.name!r} that is no text or "
        "does not have its checksum (table record)"
    )


def check(connection: sqlite3.Connection, sealed: Seal) -> None:
    """Raise `InvalidRow` if a record is not what was written, missing, or there in addition."""
    count = total = 0
    for record in survey(connection):
        if record.value is None:
            raise InvalidRow(_described(record))
        count, total = count + 1, total + record.checksum
    if (count, total) != (sealed.records, sealed.records_sum):
        raise InvalidRow(
            f"{count} records where the table seal has {sealed.records}, or others of them "
            "(table record)"
        )


def load(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    """Return the values of all records of a kind, by name. Raises `InvalidRow`."""
    found = load_all(connection)
    return {name: value for (of_kind, name), value in found.items() if of_kind == kind}


def load_all(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Return the values of all records, by kind and name. Raises `InvalidRow`."""
    found = {}
    for record in survey(connection):
        if record.value is None:
            raise InvalidRow(_described(record))
        found[record.kind, record.name] = record.value
    return found


def values(
    connection: sqlite3.Connection, kind: str, names: Collection[str]
) -> dict[str, str | None]:
    """Return the values of records, None for those that are not there. Raises `InvalidRow`."""
    found = dict[str, str | None]()
    query = "SELECT CAST(value AS BLOB), checksum FROM record WHERE kind = ? AND name = ?"
    for name in names:
        row = connection.execute(query, (kind, name)).fetchone()
        if row is None:
            found[name] = None
            continue
        record = _record(kind.encode(), name.encode(), *row, is_text=True)
        if record.value is None:
            raise InvalidRow(_described(record))
        found[name] = record.value
    return found


def change(
    connection: sqlite3.Connection,
    sealed: Seal,
    kind: str,
    put: Mapping[str, str],
    removed: Collection[str],
) -> tuple[Seal, set[str]]:
    """Give records their values, and delete others; return the seal after that.

    Also return the names of those that were changed: removing what is not there is nothing.
    """
    changed = set(put)
    for name in {*removed, *put}:
        found = connection.execute(
            "SELECT checksum FROM record WHERE kind = ? AND name = ?", (kind, name)
        ).fetchone()
        if found:
            changed.add(name)
            sealed = sealed.with_records(-1, -found[0])
    connection.executemany(
        "DELETE FROM record WHERE kind = ? AND name = ?", [(kind, name) for name in removed]
    )
    rows = [
        (kind, name, value, checksums.of_record(kind, name, value)) for name, value in put.items()
    ]
    append(connection, rows)
    return sealed.with_records(len(rows), sum(row[-1] for row in rows)), changed


def append(connection: sqlite3.Connection, rows: Collection[tuple[str, str, str, int]]) -> None:
    """Write rows of kind, name, value and checksum, in place of those that have their names."""
    connection.executemany("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", rows)
