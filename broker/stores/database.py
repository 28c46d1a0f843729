"""The SQLite file of an ACL store: created, locked, checked, read and changed. Blocking.

- One broker at a time: an exclusive lock on ``PATH.lock`` is held while the file is open.
- A file of another program, or of a newer aclbroker, is refused and left as it is.
- A change is one transaction, synced to disk (WAL, synchronous=FULL) before it is answered.
- After any error the connection is closed, which rolls back; the next change opens it anew. So a
  disk that was full or read-only works again as soon as it is not.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, records, schema
from aclbroker.broker.stores.store import StoreError, new_cluster_id

_LITTER: Final = 20_000
"""How many removals may have left dead rows behind before these are deleted."""

_STATEMENTS: Final = 16
"""How many statements are kept prepared; one that appends 1,000 rows is large."""

_BUSY_TIMEOUT_S: Final = 5.0

_DAMAGED: Final = "the file is damaged: stop the broker and restore it from a backup"
_ADVICE: Final = {
    sqlite3.SQLITE_FULL: "free space on its disk; then changes work again",
    sqlite3.SQLITE_IOERR: "check its disk for errors, free space and quotas",
    sqlite3.SQLITE_READONLY: "make it and its directory writable for the broker",
    sqlite3.SQLITE_CANTOPEN: "check that it exists and that the broker may read and write it",
    sqlite3.SQLITE_PERM: "make it and its directory writable for the broker",
    sqlite3.SQLITE_BUSY: "another program holds it: close that program",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: "it is not an ACL store, or damaged: name another, or restore a backup",
}


class Database:
    """One file of ACLs. All methods must be called from one thread; all may raise `StoreError`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # The lock must be the same one by whatever way of links the file is named.
        self.path = Path(os.path.realpath(path))
        self._lock: int | None = None
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._removals = 0

    def open(self) -> None:
        """Lock the file and open it, a new one with mode 0600 if there is none."""
        if self._lock is not None:
            raise StoreError(f"the ACL store {self.path} is open already")
        try:
            with self._explained("open"):
                self._take_lock()
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                self._connect()
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Close and unlock the file."""
        self._disconnect()
        self._removals = 0
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
            self._inode = None

    def cluster_id(self) -> str:
        """Return the id that was made with the file."""
        with self._explained("read"):
            query = "SELECT max(value) FROM meta WHERE name = 'cluster.id'"
            found = _value(self._connect(), query)
            if not isinstance(found, str):
                raise StoreError(f"the ACL store {self.path} has no cluster id; {_DAMAGED}")
            return found

    def load(self) -> Generator[list[AclBinding]]:
        """Return all bindings, in lists."""
        with self._explained("read"):
            connection = self._connect()
            self._removals = changes.removals(connection)
            with closing(changes.load(connection, with_dead=bool(self._removals))) as found:
                yield from found

    def apply(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        """Add and remove bindings in one transaction; it is on disk when this returns."""
        with self._explained("change"):
            connection = self._connect()
            self._check_same_file()
            connection.execute("BEGIN IMMEDIATE")
            changes.append(connection, removed, removed=True)
            changes.append(connection, added, removed=False)
            connection.execute("COMMIT")
            self._removals += len(removed)

    def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        with self._explained("read"):
            return records.load(self._connect(), kind)

    def apply_records(self, kind: str, put: Mapping[str, str], removed: Collection[str]) -> None:
        """Put and remove records in one transaction; it is on disk when this returns."""
        with self._explained("change"):
            connection = self._connect()
            self._check_same_file()
            connection.execute("BEGIN IMMEDIATE")
            records.change(connection, kind, put, removed)
            connection.execute("COMMIT")

    @property
    def is_littered(self) -> bool:
        """Whether `compact` is due, as it never is when closed; may be asked from any thread."""
        return self._removals >= _LITTER

    def compact(self) -> None:
        """Delete what 20,000 removals left behind: about a second with a million bindings."""
        with self._explained("compact"):
            connection = self._connect()
            self._check_same_file()
            connection.execute("BEGIN IMMEDIATE")
            changes.compact(connection, _LITTER)
            connection.execute("COMMIT")
            self._removals = max(0, self._removals - _LITTER)

    def _take_lock(self) -> None:
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise StoreError(
                f"the ACL store {self.path} is in use by another broker, which holds "
                f"{self.path}.lock; stop that broker, or give this one its own aclbroker.store"
            ) from error
        self._lock = lock

    def _connect(self) -> sqlite3.Connection:
        if self._lock is None:
            raise StoreError(f"the ACL store {self.path} is not open")
        if self._connection is None:
            # mode=rw: only open() makes a file. One that vanished later is an error, not a new one.
            self._connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=_BUSY_TIMEOUT_S,
                cached_statements=_STATEMENTS,
            )
            self._prepare(self._connection)
            self._check_same_file()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check that the file is ours before anything is written to it; make the schema if new."""
        application_id = _value(connection, "PRAGMA application_id")
        version = _value(connection, "PRAGMA user_version")
        tables = _value(connection, "SELECT count(*) FROM sqlite_master")
        is_new = not (application_id or version or tables)
        if not is_new and application_id != schema.APPLICATION_ID:
            raise StoreError(
                f"{self.path} is a SQLite database of another program, not an ACL store; "
                "name another file in aclbroker.store"
            )
        if version > schema.SCHEMA_VERSION:
            raise StoreError(
                f"the ACL store {self.path} was written by a newer aclbroker (schema {version}, "
                f"this one knows up to {schema.SCHEMA_VERSION}); run that version, or restore a "
                "backup"
            )
        mode = _value(connection, "PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise StoreError(
                f"the ACL store {self.path} cannot use write-ahead logging (journal mode {mode}); "
                "put it on a local file system"
            )
        connection.execute("PRAGMA synchronous = FULL")
        if is_new and self._inode is not None:
            raise StoreError(f"the ACL store {self.path} was emptied while in use; {_DAMAGED}")
        if is_new:
            schema.create(connection, new_cluster_id())
        elif version < schema.SCHEMA_VERSION:
            schema.upgrade(connection, version)

    def _check_same_file(self) -> None:
        """Refuse a change that would go to a file which is not at the path any more."""
        found = os.stat(self.path)
        inode = (found.st_dev, found.st_ino)
        if self._inode is None:
            self._inode = inode
        if inode != self._inode:
            raise StoreError(
                f"the ACL store {self.path} was replaced while the broker used it; "
                "restart the broker to use the file that is there now"
            )

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        """Turn what goes wrong into a `StoreError` with advice, and give the connection up."""
        try:
            yield
        except StoreError:
            self._disconnect()
            raise
        except schema.InvalidRow as error:
            self._disconnect()
            text = f"the ACL store {self.path} holds {error}; {_DAMAGED}"
            raise StoreError(text) from error
        except sqlite3.Error as error:
            self._disconnect()
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            advice = _ADVICE.get(code, _DAMAGED)
            text = f"cannot {verb} the ACL store {self.path}: {error}; {advice}"
            raise StoreError(text) from error
        except OSError as error:
            self._disconnect()
            advice = "check that its directory exists and that the broker may write there"
            text = f"cannot {verb} the ACL store {self.path}: {error.strerror}; {advice}"
            raise StoreError(text) from error
        except UnicodeError as error:
            self._disconnect()
            raise StoreError(f"cannot {verb} the ACL store {self.path}: {error}") from error


def _value(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
