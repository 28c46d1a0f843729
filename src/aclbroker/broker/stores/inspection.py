"""Whether a store file is whole, found out before anything is written to it.

What a broker must not start with: a file of another program or of a newer aclbroker, an empty file,
tables that are not what was written, and a file whose last transactions are missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from aclbroker.broker.stores import origins, records, schema, seal, wal
from aclbroker.broker.stores.locks import Mark
from aclbroker.broker.stores.schema import InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import StoreError

_ON_PURPOSE: Final = (
    "If an older copy was put there on purpose, use aclbroker store restore for that; else restore "
    "a backup, or the -wal that belongs to the file, or see what can be kept (aclbroker store "
    "check, then repair)"
)


class Inspection(NamedTuple):
    """A file that is whole, but for rows of ACLs and origins: these are checked when read."""

    version: int
    cluster_id: str
    sealed: Seal | None
    """None in files of versions before `SEALED_VERSION`."""


def check_present(path: Path) -> bool:
    """Return whether the file is there. Raises `StoreError` if it cannot be what it was."""
    log = Path(f"{path}-wal")
    if not path.exists():
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"the ACL store {path} is missing, and its write-ahead log {log} is there: put the "
                "file back that belongs to it, or restore a backup"
            )
        return False
    if path.is_file() and not path.stat().st_size:
        raise StoreError(
            f"the ACL store {path} is empty (0 bytes), so what it had is lost: restore it from a "
            "backup (aclbroker store restore), or remove it together with its -wal and -shm to "
            "start with a new store that has no ACLs"
        )
    return True


def inspect(path: Path, mark: Mark | None) -> Inspection:
    """Check all of a file but its ACLs. ``mark`` is what is known of it in this place.

    Nobody may change the file meanwhile. Raises `StoreError`, `InvalidRow`, sqlite3.Error or
    `OSError`; the file and its write-ahead log are left as they are.
    """
    with read_transaction(path, is_alone=True) as connection:
        version = check_kind(connection, path)
        if version < schema.SEALED_VERSION:
            return Inspection(version, schema.read_cluster_id(connection) or "", None)
        cluster_id, sealed = check_tables(connection, version)
        records.check(connection, sealed)
        if version >= schema.ORIGINS_VERSION:
            origins.check_totals(connection, sealed)
        problem = lost(path, wal_of(connection, path), mark, cluster_id, sealed)
    if problem:
        raise StoreError(f"the ACL store {path} {problem}")
    return Inspection(version, cluster_id, sealed)


def inspect_in_use(path: Path, mark: Mark | None) -> Inspection:
    """Check a file that others use and change, as `inspect` does; ``mark`` was read before.

    What is behind the end of its write-ahead log is not looked at: who opened it first has done so,
    and now it can be a transaction that is being written.
    """
    with read_transaction(path) as connection:
        version = check_kind(connection, path)
        if version < schema.SCHEMA_VERSION:
            raise InvalidRow(f"the version {version} while a broker uses it that upgrades it")
        cluster_id, sealed = check_tables(connection)
        records.check(connection, sealed)
        origins.check_totals(connection, sealed)
    problem = lost(path, wal.Unread(is_empty=False), mark, cluster_id, sealed)
    if problem:
        raise StoreError(f"the ACL store {path} {problem}")
    return Inspection(version, cluster_id, sealed)


@contextmanager
def read_transaction(path: Path, *, is_alone: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a file for reading, and begin a transaction that sees one state of it.

    ``is_alone`` says that nobody changes the file meanwhile; then a quiet file gets no ``-wal`` and
    ``-shm``. A connection that may write would, when it is closed, bring the write-ahead log into
    the file and remove it, and with it what SQLite had passed over.
    """
    options = "mode=ro"
    if is_alone and wal.is_empty(path):
        options += "&immutable=1"
    connection = sqlite3.connect(f"{path.as_uri()}?{options}", uri=True, isolation_level=None)
    with closing(connection):
        connection.execute("BEGIN")
        yield connection


def check_kind(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a store. Raises `StoreError` for anything else."""
    application_id = value(connection, "PRAGMA application_id")
    version = int(value(connection, "PRAGMA user_version"))
    if application_id != schema.APPLICATION_ID:
        raise StoreError(
            f"{path} is a SQLite database of another program, not an ACL store, or damaged; "
            "name another file in aclbroker.store, or restore a backup"
        )
    if version > schema.SCHEMA_VERSION:
        raise StoreError(
            f"the ACL store {path} was written by a newer aclbroker (schema {version}, this one "
            f"knows up to {schema.SCHEMA_VERSION}), or is damaged; run that version, or restore a "
            "backup"
        )
    if version < 1:
        raise InvalidRow(f"the version {version}, which no aclbroker wrote")
    return version


def check_tables(
    connection: sqlite3.Connection, version: int = schema.SCHEMA_VERSION
) -> tuple[str, Seal]:
    """Return the cluster id and the seal. Raises `InvalidRow` if they are not what was written."""
    schema.check_definitions(connection, version)
    cluster_id = schema.read_cluster_id(connection)
    if cluster_id is None:
        raise InvalidRow("no cluster id (table meta)")
    return cluster_id, seal.read(connection, cluster_id, version)


def check_structure(connection: sqlite3.Connection) -> None:
    """Raise `InvalidRow` if the pages of the file do not fit together.

    Rows can be all there although free pages, say, are damaged, and a later change would then
    overwrite some of them.
    """
    found = value(connection, "PRAGMA quick_check(1)")
    if found != "ok":
        raise InvalidRow(f"pages that do not fit together ({found})")


def check_structure_of(path: Path) -> None:
    """As `check_structure`, with a connection of its own."""
    with read_transaction(path) as connection:
        check_structure(connection)


def wal_of(connection: sqlite3.Connection, path: Path) -> wal.Unread:
    """Return what SQLite leaves unread; closes the connection, which has begun a transaction."""
    if wal.is_empty(path):
        return wal.Unread(is_empty=True)
    with wal.index(path) as descriptor:
        frames = wal.frames_read(descriptor)
        connection.close()
    return wal.unread(path, frames)


def lost(
    path: Path, unread: wal.Unread, mark: Mark | None, cluster_id: str, sealed: Seal
) -> str | None:
    """Return which transactions a file has lost, and what to do; None if none are known to be."""
    stored = mark.transactions if mark is not None and mark.cluster_id == cluster_id else None
    if stored is not None and sealed.transactions < stored:
        return (
            f"ends with transaction {sealed.transactions}, and {stored} had been stored here "
            f"({path}.lock): its write-ahead log {path}-wal is damaged, was removed, or belongs to "
            f"another copy. {_ON_PURPOSE}"
        )
    # Where the mark is smaller than the file, the power was cut; that can leave one transaction
    # behind that was not stored. Where it is equal, what is behind was not stored either.
    is_cut = stored is not None and sealed.transactions > stored and unread.commits > 1
    if is_cut or (stored is None and unread.frames):
        return (
            f"has a write-ahead log {path}-wal that is damaged or was cut: what is behind "
            f"transaction {sealed.transactions} cannot be read. {_ON_PURPOSE}"
        )
    if stored is None and unread.is_empty and not sealed.whole:
        return (
            "was copied, or moved, without its write-ahead log: it was in use, and "
            f"{path}-wal is missing or empty. Copy the file with its -wal and -shm while no broker "
            f"runs, or use aclbroker store backup. {_ON_PURPOSE}"
        )
    return None


def value(connection: sqlite3.Connection, statement: str) -> Any:
    """Return the one value that a statement finds."""
    return connection.execute(statement).fetchone()[0]
