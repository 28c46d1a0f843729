"""All that is wrong with a store file, and all that can be read of it in spite of that."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from aclbroker.broker.stores import changes, inspection, origins, records, schema
from aclbroker.broker.stores.advice import explained
from aclbroker.broker.stores.changes import Change
from aclbroker.broker.stores.locks import keep_out, read_mark
from aclbroker.broker.stores.origins import OriginRow
from aclbroker.broker.stores.records import Record
from aclbroker.broker.stores.schema import FIELDS, InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import StoreError


class Unreadable(NamedTuple):
    """A range of ids whose rows, if there are any, are on pages that cannot be read."""

    first: int
    last: int


@dataclass(slots=True)
class Examination:
    """What was found in a file. Each problem is a sentence for the operator."""

    path: Path
    is_running: bool
    """A broker uses the file, so that the end of its write-ahead log could not be looked at."""

    version: int = 0
    cluster_id: str | None = None
    sealed: Seal | None = None
    problems: list[str] = field(default_factory=list)
    may_have_lost_acls: bool = False
    """Changes of ACLs are damaged or missing, or it cannot be known that none are."""

    changes: int = 0
    """How many rows of changes of ACLs are what was written."""

    records: int = 0
    acls: int | None = None

    def lost(self, problem: str) -> None:
        """Note a problem that may have cost changes of ACLs, DENYs among them."""
        self.problems.append(problem)
        self.may_have_lost_acls = True


@contextmanager
def examining(path: Path) -> Iterator[tuple[Examination, sqlite3.Connection]]:
    """Open a file for reading; give what is known of it without its rows, and a connection.

    No broker can start meanwhile. Raises `StoreError` for what is no store, or cannot be opened.
    """
    with explained(path, "read"), keep_out(path) as is_running:
        if not inspection.check_present(path):
            raise StoreError(f"there is no ACL store {path}")
        with inspection.read_transaction(path, is_alone=not is_running) as connection:
            found = Examination(path, is_running)
            found.version = inspection.check_kind(connection, path)
            if found.version >= schema.SEALED_VERSION:
                _look_at_tables(found, connection)
        # Another connection: to look at the log's end, the one before had to be closed.
        with inspection.read_transaction(path, is_alone=not is_running) as connection:
            if found.sealed is not None:
                # A broker may have gone on; the rows that follow are those of this transaction.
                found.cluster_id, found.sealed = inspection.check_tables(connection, found.version)
            yield found, connection


def _look_at_tables(found: Examination, connection: sqlite3.Connection) -> None:
    try:
        found.cluster_id = schema.read_cluster_id(connection)
        found.cluster_id, found.sealed = inspection.check_tables(connection, found.version)
        for (line,) in connection.execute("PRAGMA integrity_check(20)").fetchall():
            if line != "ok":
                found.problems.append(f"the pages do not fit together: {line}")
    except (InvalidRow, sqlite3.DatabaseError) as error:
        found.lost(f"there is {error}" if isinstance(error, InvalidRow) else f"SQLite: {error}")
    if found.is_running or found.sealed is None or found.cluster_id is None:
        return
    unread = inspection.wal_of(connection, found.path)
    mark = read_mark(found.path)
    problem = inspection.lost(found.path, unread, mark, found.cluster_id, found.sealed)
    if problem:
        found.lost(f"the file {problem}")


def examine(path: Path) -> Examination:
    """Read all of a file and return what is wrong with it. Raises `StoreError` as `examining`."""
    with examining(path) as (found, connection):
        if found.version < schema.SEALED_VERSION:
            inspection.check_structure(connection)
            return found
        for _ in valid_changes(found, connection):
            pass
        for _ in valid_records(found, connection):
            pass
        for _ in valid_origins(found, connection):
            pass
        if not found.problems:
            query = f"SELECT count(*) FROM (SELECT DISTINCT {FIELDS} FROM acl)"  # noqa: S608
            found.acls = inspection.value(connection, query)
    return found


def valid_changes(found: Examination, connection: sqlite3.Connection) -> Iterator[Change]:
    """Return the changes of ACLs that are what was written; note in ``found`` those that are not.

    If there are any problems with them, ``found`` has them when all were returned.
    """
    total, gap = 0, None
    for row in _salvage(connection, 1, _last_id(found, connection)):
        if isinstance(row, Unreadable):
            gap = Unreadable(gap.first, row.last) if gap and gap.last + 1 == row.first else row
            continue
        if gap is not None:
            found.lost(f"table acl_change: rows {gap.first} to {gap.last} cannot be read")
            gap = None
        if row.binding is None:
            found.lost(
                f"table acl_change: row {row.id} is not what was written; it reads {row.shown}"
            )
            continue
        found.changes, total = found.changes + 1, total + row.checksum
        yield row
    if gap is not None:
        found.lost(f"table acl_change: rows {gap.first} to {gap.last} cannot be read")
    if found.sealed is not None:
        try:
            changes.check_totals(found.sealed, found.changes, total)
        except InvalidRow as error:
            found.lost(f"there are {error}")


def _last_id(found: Examination, connection: sqlite3.Connection) -> int:
    if found.sealed is not None:
        return found.sealed.last_change
    return int(inspection.value(connection, "SELECT max(id) FROM acl_change") or 0)


def _salvage(
    connection: sqlite3.Connection, first: int, last: int
) -> Iterator[Change | Unreadable]:
    """Return the rows of a range of ids; halve the range where the pages cannot be read."""
    if first > last:
        return
    try:
        for change in changes.survey(connection, first, last):
            if change.id >= first:
                first = change.id + 1
                yield change
    except sqlite3.DatabaseError:
        if first >= last:
            yield Unreadable(first, last)
            return
        middle = (first + last) // 2
        yield from _salvage(connection, first, middle)
        yield from _salvage(connection, middle + 1, last)


def valid_records(found: Examination, connection: sqlite3.Connection) -> Iterator[Record]:
    """Return the records that are what was written; note in ``found`` those that are not."""
    total = 0
    try:
        for record in records.survey(connection):
            if record.value is None:
                found.problems.append(
                    f"table record: {record.name!r} of the kind {record.kind!r} is not what was "
                    "written"
                )
                continue
            found.records, total = found.records + 1, total + record.checksum
            yield record
    except sqlite3.DatabaseError as error:
        found.problems.append(f"table record: not all rows can be read ({error})")
    sealed = found.sealed
    if sealed is not None and (found.records, total) != (sealed.records, sealed.records_sum):
        found.problems.append(
            f"table record: {found.records} rows are what was written, where the table seal has "
            f"{sealed.records}"
        )


def valid_origins(found: Examination, connection: sqlite3.Connection) -> Iterator[OriginRow]:
    """Return the origins that are what was written; note in ``found`` those that are not."""
    if found.version < schema.ORIGINS_VERSION:
        return
    count = total = 0
    try:
        for position, row, checksum in origins.survey(connection, found.version):
            if row is None:
                found.problems.append(
                    f"table origin: who made the change {position} is not what was written"
                )
                continue
            count, total = count + 1, total + checksum
            yield row
    except sqlite3.DatabaseError as error:
        found.problems.append(f"table origin: not all rows can be read ({error})")
    sealed = found.sealed
    if sealed is not None and (count, total) != (sealed.origins, sealed.origins_sum):
        found.problems.append(
            f"table origin: {count} rows are what was written, where the table seal has "
            f"{sealed.origins}"
        )
