"""Copies of a store: made while a broker runs, put in its place while none does, always whole."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from aclbroker.broker.stores import changes, inspection, records, schema, seal
from aclbroker.broker.stores.advice import explained
from aclbroker.broker.stores.creation import write_file
from aclbroker.broker.stores.examination import Examination, examining
from aclbroker.broker.stores.locks import Mark, StoreLocks
from aclbroker.broker.stores.store import StoreError


def backup(path: Path, target: Path) -> Examination:
    """Copy a store, which may be in use, to a new file, and check the copy.

    Raises `StoreError`, and leaves nothing, if the copy would not be whole.
    """
    if target.exists():
        raise StoreError(f"{target} exists; name another file, or remove it")
    with examining(path) as (found, connection), explained(target, "write"):
        _refuse_damaged(found)
        write_file(target, lambda made: _copy(connection, made, found))
    return found


def restore(source: Path, path: Path) -> tuple[Examination, Path | None]:
    """Put a copy in the place of a store that no broker uses.

    Returns what is in the copy, and where the files went that were there before; their names have
    the time at the end. Raises `StoreError`, and changes nothing, if the copy is not whole.
    """
    locks = StoreLocks(path)
    aside: list[Path] = []
    try:
        with explained(path, "restore"):
            _lock(locks, path)
            with examining(source) as (found, connection):
                _refuse_damaged(found)

                def fill(made: sqlite3.Connection) -> None:
                    _copy(connection, made, found)
                    aside.extend(_move_aside(path))

                write_file(path, fill)
            if found.cluster_id is not None and found.sealed is not None:
                locks.write_mark(Mark(found.cluster_id, found.sealed.transactions))
    finally:
        locks.release()
    return found, aside[0] if aside else None


def _lock(locks: StoreLocks, path: Path) -> None:
    try:
        locks.take()
        with suppress(FileNotFoundError):
            locks.take_file()
    except BlockingIOError as error:
        text = f"the ACL store {path} is in use by a broker; stop the broker first"
        raise StoreError(text) from error


def _refuse_damaged(found: Examination) -> None:
    if found.problems:
        raise StoreError(
            f"the ACL store {found.path} is damaged, and is not copied: {found.problems[0]} "
            "(aclbroker store check tells all)"
        )


def _copy(source: sqlite3.Connection, made: sqlite3.Connection, found: Examination) -> None:
    """Copy all pages, check every row, and say that the copy is whole."""
    source.backup(made)
    inspection.check_structure(made)
    if found.version < schema.SCHEMA_VERSION:
        return
    cluster_id, sealed = inspection.check_tables(made)
    records.check(made, sealed)
    removals = changes.removals(made)
    acls = set()
    for chunk in changes.load(made, sealed, removals.last):
        acls.update(chunk)
    found.cluster_id, found.sealed = cluster_id, sealed
    found.acls, found.records, found.changes = len(acls), sealed.records, sealed.changes
    seal.write(made, sealed._replace(whole=1), cluster_id)


def _move_aside(path: Path) -> list[Path]:
    """Give the files of the store another name; return the new names, that of the file first."""
    ending = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    moved = []
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if name.exists():
            target = Path(f"{path}.replaced-{ending}{name.name.removeprefix(path.name)}")
            if target.exists():
                raise StoreError(f"{target} exists; wait for a second, and restore again")
            moved.append(name.rename(target))
    return moved
