"""Copies of a store: made while a broker runs, put in its place while none does, always whole."""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from aclbroker.broker.stores import changes, inspection, origins, records, schema, seal
from aclbroker.broker.stores.advice import explained, refuse_damaged
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
        refuse_damaged(f"the ACL store {found.path}", found.problems, "copied")
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
                refuse_damaged(f"the ACL store {found.path}", found.problems, "copied")
                write_file(
                    path,
                    lambda made: _copy(connection, made, found),
                    lambda: aside.extend(_set_aside(path)),
                )
            if found.cluster_id is not None and found.sealed is not None:
                locks.replace_mark(Mark(found.cluster_id, found.sealed.transactions))
    finally:
        locks.release()
    return found, aside[0] if aside else None


def _lock(locks: StoreLocks, path: Path) -> None:
    try:
        locks.take_alone()
        with suppress(FileNotFoundError):
            if not locks.take_file():
                raise BlockingIOError
    except BlockingIOError as error:
        text = f"the ACL store {path} is in use by a broker; stop all brokers that use it first"
        raise StoreError(text) from error


def _copy(source: sqlite3.Connection, made: sqlite3.Connection, found: Examination) -> None:
    """Copy all pages, check every row, and say that the copy is whole."""
    source.backup(made)
    inspection.check_structure(made)
    if found.version < schema.SEALED_VERSION:
        return
    cluster_id, sealed = inspection.check_tables(made, found.version)
    records.check(made, sealed)
    if found.version >= schema.ORIGINS_VERSION:
        origins.check(made, sealed, found.version)
    gone = changes.removals(made)
    acls = set()
    for chunk in changes.load(made, sealed, gone):
        acls.update(chunk)
    found.cluster_id, found.sealed = cluster_id, sealed
    found.acls, found.records, found.changes = len(acls), sealed.records, sealed.changes
    seal.write(made, sealed._replace(whole=1), cluster_id, found.version)


def _set_aside(path: Path) -> list[Path]:
    """Give the files of the store another name; return the new names, that of the file first.

    The file keeps its own name, too, until the new one takes it: a start that found nothing there
    would make an empty store. If its log has gone by then, and was not empty, a start refuses it.
    """
    ending = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = [each for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")) if each.exists()]
    targets = [Path(f"{path}.replaced-{ending}{str(each)[len(str(path)) :]}") for each in names]
    for target in targets:
        if target.exists():
            raise StoreError(f"{target} exists; wait for a second, and restore again")
    for name, target in zip(names, targets, strict=True):
        if name == path:
            _link(path, target)
        else:
            name.rename(target)
    return targets


def _link(path: Path, target: Path) -> None:
    """Give a file a second name; where no file can have two, that one alone."""
    try:
        target.hardlink_to(path)
    except OSError:
        path.rename(target)
