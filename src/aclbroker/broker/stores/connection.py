"""Connections to a store file that may write: how they are made, begin and bring in the log."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

from aclbroker.broker.stores.advice import DAMAGED
from aclbroker.broker.stores.inspection import value
from aclbroker.broker.stores.schema import APPLICATION_ID
from aclbroker.broker.stores.store import StoreError

_STATEMENTS: Final = 16
"""How many statements are kept prepared; one that appends 1,000 rows is large."""

_BUSY_TIMEOUT_S: Final = 5.0

_RETRY_S: Final = 0.001
"""How often it is looked whether another process has come to the end of its transaction.

SQLite's own waiting sleeps up to 0.1 s at a time, and so hardly ever has its turn beside somebody
who writes all the time.
"""


def connect(path: Path) -> sqlite3.Connection:
    """Open a file for changes: only one that is there, and is a store."""
    # mode=rw: only `creation` makes a file. One that vanished later is an error, not a new one.
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=_BUSY_TIMEOUT_S,
        cached_statements=_STATEMENTS,
    )
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Check that this is still the file that was checked, and set what makes it durable."""
    if value(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise StoreError(f"the ACL store {path} was emptied while in use; {DAMAGED}")
    mode = value(connection, "PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise StoreError(
            f"the ACL store {path} cannot use write-ahead logging (journal mode {mode}); "
            "put it on a local file system"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")


def begin(connection: sqlite3.Connection) -> None:
    """Begin a transaction that changes the file, when nobody else is about to.

    Raises sqlite3.OperationalError if somebody else was for five seconds.
    """
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    _set_timeout(connection, 0)
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(_RETRY_S)
    finally:
        _set_timeout(connection, _BUSY_TIMEOUT_S)


def checkpoint(connection: sqlite3.Connection, mode: str, patience_s: float = 0.0) -> bool:
    """Bring the write-ahead log into the file; return whether all of it is.

    Who reads what was there before the last transaction keeps that from being done. For so many
    seconds it is waited for them, during which anybody may read and write.
    """
    deadline = time.monotonic() + patience_s
    _set_timeout(connection, 0)
    try:
        while not (is_done := _checkpointed(connection, mode)) and time.monotonic() < deadline:
            time.sleep(_RETRY_S)
    finally:
        _set_timeout(connection, _BUSY_TIMEOUT_S)
    return is_done


def _checkpointed(connection: sqlite3.Connection, mode: str) -> bool:
    busy, frames, done = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    return not busy and bool(frames == done)


def _set_timeout(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
