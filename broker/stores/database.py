"""The SQLite file of an ACL store: created, locked, checked, read and changed. Blocking.

- One broker at a time: see `StoreLocks`.
- A file that is not whole is refused and left as it is: see `inspection`.
- A change is one transaction, synced to disk (WAL, synchronous=FULL) before it is answered.
- When it has been quiet for a while, `settle` brings all changes into the one file, and says so in
  its seal. The first change after that takes the saying back.
- After any error the connection is closed, which rolls back; the next change opens it anew. So a
  disk that was full or read-only works again as soon as it is not.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, inspection, records, seal
from aclbroker.broker.stores.advice import DAMAGED, EXPORT, explained
from aclbroker.broker.stores.creation import create_file
from aclbroker.broker.stores.inspection import value
from aclbroker.broker.stores.locks import Mark, StoreLocks
from aclbroker.broker.stores.schema import APPLICATION_ID, SCHEMA_VERSION, InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.stores.upgrade import upgrade

_LITTER: Final = 20_000
"""How many removals may have left dead rows behind before these are deleted."""

_STATEMENTS: Final = 16
"""How many statements are kept prepared; one that appends 1,000 rows is large."""

_BUSY_TIMEOUT_S: Final = 5.0


class Database:
    """One file of ACLs. All methods must be called from one thread; all may raise `StoreError`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # The lock must be the same one by whatever way of links the file is named.
        self.path = Path(os.path.realpath(path))
        self.is_new = False
        self._locks = StoreLocks(self.path)
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._cluster_id = ""
        self._stored = Seal()
        self._removals = 0
        self._is_settled = True
        # Whether the file, without its log, may say that it is whole.
        self._says_whole = True

    def open(self) -> None:
        """Lock the file, check it and open it, a new one with mode 0600 if there is none."""
        if self._locks.are_held:
            raise StoreError(f"the ACL store {self.path} is open already")
        try:
            with self._explained("open"):
                self._take_lock(self._locks.take, f"{self.path}.lock")
                self.is_new = not inspection.check_present(self.path)
                if self.is_new:
                    create_file(self.path)
                self._take_lock(self._locks.take_file, "a lock on the file")
                self._open_checked()
        except BaseException:
            self._release()
            raise

    def _open_checked(self) -> None:
        mark = None if self.is_new else self._locks.read_mark()
        found = inspection.inspect(self.path, mark)
        self._connect()
        if found.sealed is None:
            upgrade(self._connect(), found.version)
            found = inspection.Inspection(SCHEMA_VERSION, *inspection.check_tables(self._connect()))
        self._cluster_id = found.cluster_id
        self._stored = found.sealed or Seal()
        self._is_settled = bool(self._stored.whole)
        self._says_whole = True
        self._locks.write_mark(Mark(self._cluster_id, self._stored.transactions))

    def close(self) -> None:
        """Bring all changes into the one file, close and unlock it."""
        if self._locks.are_held and not self._is_settled:
            # Nothing is lost if this fails: then the changes stay in the write-ahead log.
            with suppress(StoreError):
                self.settle()
        self._release()

    def _release(self) -> None:
        self._disconnect()
        self._locks.release()
        self._inode = None
        self._cluster_id = ""
        self._removals = 0
        self._is_settled = True

    def cluster_id(self) -> str:
        """Return the id that was made with the file."""
        with self._explained("read"):
            self._connect()
            return self._cluster_id

    @property
    def stored(self) -> Seal:
        """What the last transaction left; may be asked from any thread."""
        return self._stored

    def load(self) -> Generator[list[AclBinding]]:
        """Return all bindings, in lists, as they are now, and check all that is read."""
        with self._explained("read"):
            self._connect()
            self._check_same_file()
            with inspection.read_transaction(self.path) as connection:
                sealed = seal.read(connection, self._cluster_id)
                self._removals, gone = changes.removals(connection)
                with closing(changes.load(connection, sealed, gone)) as found:
                    yield from found
                inspection.check_structure(connection)

    def apply(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        """Add and remove bindings in one transaction; it is on disk when this returns."""
        with self._changing("change") as (connection, sealed):
            sealed = changes.append(connection, sealed, removed, removed=True)
            sealed = changes.append(connection, sealed, added, removed=False)
            self._commit(connection, sealed)
        self._removals += len(removed)

    def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        with self._explained("read"):
            return records.load(self._connect(), kind)

    def apply_records(self, kind: str, put: Mapping[str, str], removed: Collection[str]) -> None:
        """Put and remove records in one transaction; it is on disk when this returns."""
        with self._changing("change") as (connection, sealed):
            self._commit(connection, records.change(connection, sealed, kind, put, removed))

    @property
    def is_littered(self) -> bool:
        """Whether `compact` is due, as it never is when closed; may be asked from any thread."""
        return self._removals >= _LITTER

    def compact(self) -> None:
        """Delete what 20,000 removals left behind: about a second with a million bindings."""
        with self._changing("compact") as (connection, sealed):
            self._commit(connection, changes.compact(connection, sealed, _LITTER))
        self._removals = max(0, self._removals - _LITTER)

    @property
    def is_settled(self) -> bool:
        """Whether all changes are in the one file; may be asked from any thread."""
        return self._is_settled

    def settle(self) -> None:
        """Bring all changes from the write-ahead log into the one file, and empty the log.

        A program that reads the file at the time can keep that from being done; then
        `is_settled` stays false.
        """
        with self._changing("settle") as (connection, sealed):
            whole = sealed._replace(whole=1)
            seal.bring_forward(connection, sealed, whole, self._cluster_id)
            connection.execute("COMMIT")
            self._stored = whole
            self._says_whole = True
            self._is_settled = _checkpoint(connection, "TRUNCATE")

    def check_in_place(self) -> None:
        """Raise `StoreError` if the file was removed or replaced; do nothing when closed."""
        if self._inode is not None:
            with explained(self.path, "find"):
                self._check_same_file()

    @contextmanager
    def _changing(self, verb: str) -> Iterator[tuple[sqlite3.Connection, Seal]]:
        """Begin a transaction; give the connection and the seal that the last one left."""
        with self._explained(verb):
            connection = self._connect()
            self._check_same_file()
            connection.execute("BEGIN IMMEDIATE")
            yield connection, self._stored

    def _commit(self, connection: sqlite3.Connection, sealed: Seal) -> None:
        """Commit; after that the file itself says that there may be more in its log."""
        sealed = sealed._replace(transactions=sealed.transactions + 1, whole=0)
        seal.bring_forward(connection, self._stored, sealed, self._cluster_id)
        connection.execute("COMMIT")
        self._stored = sealed
        self._locks.write_mark(Mark(self._cluster_id, sealed.transactions))
        self._is_settled = False
        if self._says_whole:
            # The change is stored, whatever happens here. If this fails a later change tries again.
            with suppress(sqlite3.Error):
                self._says_whole = not _checkpoint(connection, "PASSIVE")

    def _take_lock(self, take: Callable[[], None], name: str) -> None:
        try:
            take()
        except BlockingIOError as error:
            raise StoreError(
                f"the ACL store {self.path} is in use by another broker, which holds {name}; stop "
                "that broker, or give this one its own aclbroker.store"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        if not self._locks.are_held:
            raise StoreError(f"the ACL store {self.path} is not open")
        if self._connection is None:
            self.check_in_place()
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
            if self._cluster_id:
                self._read_again(self._connection)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check that this is still the file that was checked, and set what makes it durable."""
        if value(connection, "PRAGMA application_id") != APPLICATION_ID:
            raise StoreError(f"the ACL store {self.path} was emptied while in use; {DAMAGED}")
        mode = value(connection, "PRAGMA journal_mode = WAL")
        if mode != "wal":
            raise StoreError(
                f"the ACL store {self.path} cannot use write-ahead logging (journal mode {mode}); "
                "put it on a local file system"
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA temp_store = MEMORY")

    def _read_again(self, connection: sqlite3.Connection) -> None:
        """Find out what is stored after an error: it can have come at the end of a commit."""
        sealed = seal.read(connection, self._cluster_id)
        if sealed.transactions < self._stored.transactions:
            raise InvalidRow(
                f"{sealed.transactions} transactions where {self._stored.transactions} had been "
                "stored"
            )
        self._stored = sealed

    def _check_same_file(self) -> None:
        """Refuse a change that would go to a file which is not at the path any more."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            raise StoreError(
                f"the ACL store {self.path} was removed while the broker used it: {EXPORT}, which "
                "would begin with a new, empty store; or put the file back, with its -wal and -shm"
            ) from None
        inode = (found.st_dev, found.st_ino)
        if self._inode is None:
            self._inode = inode
        if inode != self._inode:
            raise StoreError(
                f"the ACL store {self.path} was replaced while the broker used it: {EXPORT}, which "
                "would use the file that is there now"
            )

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        """Turn what goes wrong into a `StoreError` with advice, and give the connection up."""
        try:
            with explained(self.path, verb):
                yield
        except Exception:
            self._disconnect()
            raise


def _checkpoint(connection: sqlite3.Connection, mode: str) -> bool:
    """Bring the write-ahead log into the file; return whether all of it is, without waiting."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        busy, frames, done = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_TIMEOUT_S * 1000)}")
    return not busy and frames == done
