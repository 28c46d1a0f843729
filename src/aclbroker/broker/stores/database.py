"""The SQLite file of an ACL store: created, checked, read, changed and followed. Blocking.

- Any number of processes of one machine may use it: see `StoreLocks`.
- A file that is not whole is refused and left as it is: see `inspection`.
- A change is one transaction, synced to disk (WAL, synchronous=FULL) before anybody sees it. It
  goes on from what is in the file, which others may have changed a moment ago.
- When it has been quiet for a while, `settle` brings all changes into the one file, and says so in
  its seal. The first change after that takes the saying back.
- After any error the connection is closed, which rolls back; the next change opens it anew. So a
  disk that was full or read-only works again as soon as it is not.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import changes, history, inspection, news, opening, origins, records
from aclbroker.broker.stores import seal as seals
from aclbroker.broker.stores.advice import EXPORT, explained
from aclbroker.broker.stores.connection import begin, checkpoint, connect
from aclbroker.broker.stores.locks import Mark, StoreLocks
from aclbroker.broker.stores.news import News
from aclbroker.broker.stores.recent_changes import records_changed
from aclbroker.broker.stores.schema import InvalidRow
from aclbroker.broker.stores.seal import Seal
from aclbroker.broker.stores.store import (
    NOTHING_MISSED,
    Origin,
    Plan,
    StoreChange,
    StoreConflict,
    StoreError,
    StoreUnavailable,
)

_LITTER: Final = 20_000
"""How many removals may have left dead rows behind before these are deleted."""

HISTORY: Final = 100_000
"""How many of the last changes are kept by default, also if they are undone."""

_READERS_S: Final = 0.5
"""How long the first change after a quiet time waits for others who read what was before it.

To look takes them a millisecond; only who loads or copies the whole store takes longer.
"""


Tell = Callable[[Sequence[News]], None]
"""Takes changes that were not told before, by others or by a call, in their order."""


def _tell_nobody(_news: Sequence[News]) -> None:
    pass


class Database:
    """One file of ACLs. All methods must be called from one thread; all may raise `StoreError`.

    A position is the greatest id that a change of an ACL had, or that a change of records took.
    So many of the last changes as ``history_changes`` says are kept as history. ``tell`` is called
    in the thread with what is new, before the call that has found or made it returns: who waits for
    that call may be gone by then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        history_changes: int = HISTORY,
        tell: Tell = _tell_nobody,
    ) -> None:
        # The lock must be the same one by whatever way of links the file is named.
        self.path = Path(os.path.realpath(path))
        self.is_new = False
        self._history = history_changes
        self._tell = tell
        self._locks = StoreLocks(self.path)
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._cluster_id = ""
        self._stored = Seal()
        self._known = 0
        self._litter = self._due = 0
        self._is_settled = True
        # Whether the file, without its log, may say that it is whole.
        self._says_whole = True

    def open(self) -> None:
        """Lock the file, check it and open it, a new one with mode 0600 if there is none."""
        if self._locks.are_held:
            raise StoreError(f"the ACL store {self.path} is open already")
        try:
            with self._explained("open"):
                found, self.is_new = opening.use(self.path, self._locks)
                self._cluster_id = found.cluster_id
                self._stored = found.sealed or Seal()
                with self._reading() as (_, sealed):
                    self._known = sealed.last_change
                    self._is_settled = bool(sealed.whole)
        except BaseException:
            self._release()
            raise
        self._says_whole = True

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
        self._litter = self._due = 0
        self._is_settled = True

    def cluster_id(self) -> str:
        """Return the id that was made with the file."""
        with self._explained("read"):
            self._connect()
            return self._cluster_id

    @property
    def stored(self) -> Seal:
        """What the last transaction left that was looked at; may be asked from any thread."""
        return self._stored

    def others_mark(self) -> bytes:
        """Return what another process left that has changed the file last, if one has.

        It may be asked from any thread, takes a microsecond, and is another text after each change;
        but who makes a change can be killed before it leaves anything.
        """
        return self._locks.others_mark()

    def load(self) -> Generator[list[AclBinding]]:
        """Return all bindings, in lists, as they are now, and check all that is read."""
        with self._explained("read"):
            self._connect()
            self._check_same_file()
            with inspection.read_transaction(self.path) as connection:
                sealed = seals.read(connection, self._cluster_id)
                gone = changes.removals(connection)
                self._litter, self._due = history.litter(connection), 0
                with (
                    ThreadPoolExecutor(1, thread_name_prefix="aclbroker-check") as beside,
                    closing(changes.load(connection, sealed, gone)) as found,
                ):
                    # It takes SQLite, which does not need Python's lock, half a second per million.
                    checked = beside.submit(inspection.check_structure_of, self.path)
                    yield from found
                    checked.result()

    def look(self) -> None:
        """Tell what others have changed since anything was told."""
        with self._explained("read"), self._reading() as (connection, sealed):
            if sealed.last_change == self._known:
                return
            told = news.after(connection, sealed, self._known)
            if told is None:
                told = [News(-1, news.everything(connection, sealed))]
            self._told(sealed, told)

    def read_after(self, position: int) -> list[News]:
        """Return all that was changed after a position, whoever was told of it before."""
        with self._explained("read"), self._reading() as (connection, sealed):
            told = news.after(connection, sealed, position)
            return [News(-1, news.everything(connection, sealed))] if told is None else told

    def transact(self, position: int, plan: Plan, origin: Origin) -> int:
        """Add and remove the bindings that a plan says, in one transaction; see `SerialStore`.

        It is on disk when this returns the position since which that holds.
        """
        if not any(plan(NOTHING_MISSED)):
            # Often there is nothing to do. To know that, nobody need be kept waiting.
            with self._explained("read"), self._reading() as (_, sealed):
                if sealed.last_change == position:
                    return position
        return self._make(plan, origin, position)

    def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove bindings in one transaction, whatever others have changed."""
        return self._make(lambda _: (added, removed), origin, self._known)

    def _make(self, plan: Plan, origin: Origin, position: int) -> int:
        with self._changing("change") as (connection, before):
            missed = news.after(connection, before, position)
            if missed is None:
                raise StoreUnavailable(
                    f"{self.path}: too much was changed by others; try again when it was read"
                )
            added, removed = plan(news.missed(missed) if missed else NOTHING_MISSED)
            sealed = changes.append(connection, before, removed, removed=True)
            sealed = changes.append(connection, sealed, added, removed=False)
            sealed = origins.append(connection, before, sealed, origin)
            self._commit(connection, before, sealed, is_asked=bool(added or removed))
        change = StoreChange(sealed.last_change, list(added), list(removed), {}, origin)
        return self._told(sealed, [*missed, News(before.last_change, change)])

    def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        with self._explained("read"):
            return records.load(self._connect(), kind)

    def apply_records(
        self,
        kind: str,
        put: Mapping[str, str],
        removed: Collection[str],
        origin: Origin,
        since: int | None = None,
    ) -> int:
        """Put and remove records in one transaction; it is on disk when this returns.

        Raises `StoreConflict` if one of them was changed since a position.
        """
        with self._changing("change") as (connection, before):
            if since is not None:
                missed = news.after(connection, before, since)
                if missed is None or news.concern(missed, kind, {*put, *removed}):
                    raise StoreConflict(f"{self.path}: another broker has changed the same {kind}")
            return self._make_records(connection, before, kind, put, removed, origin)

    def claim(
        self, kind: str, values: Mapping[str, str], origin: Origin
    ) -> tuple[int, dict[str, str]]:
        """Put those records that are not there; also return what all of them have then."""
        with self._changing("change") as (connection, before):
            found = records.values(connection, kind, values)
            kept = {name: value for name, value in found.items() if value is not None}
            put = {name: value for name, value in values.items() if name not in kept}
            position = self._make_records(connection, before, kind, put, (), origin)
            return position, kept | put

    def _make_records(
        self,
        connection: sqlite3.Connection,
        before: Seal,
        kind: str,
        put: Mapping[str, str],
        removed: Collection[str],
        origin: Origin,
    ) -> int:
        missed = news.after(connection, before, self._known)
        sealed, changed = records.change(connection, before, kind, put, removed)
        if changed:
            # It has a position, too, by an id that no change of an ACL will have.
            sealed = sealed.up_to(before.last_change + 1)
        sealed = origins.append(connection, before, sealed, origin, kind, changed)
        self._commit(connection, before, sealed, is_asked=bool(put or removed))
        told = records_changed(kind, put, removed)
        change = StoreChange(sealed.last_change, (), (), told, origin)
        return self._told(sealed, [*(missed or ()), News(before.last_change, change)])

    def _told(self, sealed: Seal, told: Sequence[News]) -> int:
        fresh = [each for each in told if each.what.position > self._known]
        self._known = sealed.last_change
        for each in fresh:
            if isinstance(each.what, StoreChange):
                self._litter += len(each.what.removed) + bool(each.what.records)
        self._tell(fresh)
        return sealed.last_change

    @property
    def is_littered(self) -> bool:
        """Whether `compact` may be due, as it never is when closed; any thread may ask."""
        return self._litter >= _LITTER and self._stored.last_change >= self._due

    def compact(self) -> None:
        """Delete what 20,000 removals left behind, if they are older than what is history.

        That takes about a second with a million bindings.
        """
        with self._changing("compact") as (connection, sealed):
            last = history.litter_at(connection, _LITTER)
            self._due = (last or sealed.last_change) + self._history
            is_due = last is not None and self._due <= sealed.last_change
            if last is not None and is_due:
                self._commit(connection, sealed, history.compact(connection, sealed, last))
            else:
                connection.execute("ROLLBACK")
            self._litter = history.litter(connection)

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
            if sealed.whole:
                connection.execute("ROLLBACK")
            else:
                whole = sealed._replace(whole=1)
                seals.bring_forward(connection, sealed, whole, self._cluster_id)
                connection.execute("COMMIT")
                self._stored = whole
            self._says_whole = True
            self._is_settled = checkpoint(connection, "TRUNCATE")

    @contextmanager
    def _reading(self) -> Iterator[tuple[sqlite3.Connection, Seal]]:
        """Begin a transaction that only reads; give the connection and what is stored now."""
        connection = self._connect()
        self._check_same_file()
        connection.execute("BEGIN")
        yield connection, self._sealed(connection)
        connection.execute("COMMIT")

    @contextmanager
    def _changing(self, verb: str) -> Iterator[tuple[sqlite3.Connection, Seal]]:
        """Begin a transaction; give the connection and the seal that the last one left."""
        with self._explained(verb):
            connection = self._connect()
            self._check_same_file()
            begin(connection)
            yield connection, self._sealed(connection)

    def _sealed(self, connection: sqlite3.Connection) -> Seal:
        """Return what the last transaction left, whoever made it."""
        sealed = seals.read(connection, self._cluster_id)
        if sealed.transactions < self._stored.transactions:
            raise InvalidRow(
                f"{sealed.transactions} transactions where {self._stored.transactions} had been "
                "stored"
            )
        if sealed.whole != self._stored.whole:
            self._is_settled = bool(sealed.whole)
        self._stored = sealed
        return sealed

    def _commit(
        self, connection: sqlite3.Connection, before: Seal, sealed: Seal, *, is_asked: bool = True
    ) -> None:
        """Commit; after that the file itself says that there may be more in its log.

        What nobody asked for is not written: others would look at it, and the disk would sync. A
        change that leaves all as it is, is: so it is found out whether the store can be written.
        """
        if not is_asked:
            connection.execute("ROLLBACK")
            return
        sealed = sealed._replace(transactions=sealed.transactions + 1, whole=0)
        seals.bring_forward(connection, before, sealed, self._cluster_id)
        connection.execute("COMMIT")
        self._stored = sealed
        self._locks.write_mark(Mark(self._cluster_id, sealed.transactions))
        self._is_settled = False
        if self._says_whole or before.whole:
            # The change is stored, whatever happens here. If this fails a later change tries again.
            self._says_whole = True
            patience_s = _READERS_S if before.whole else 0.0
            with suppress(sqlite3.Error):
                self._says_whole = not checkpoint(connection, "PASSIVE", patience_s)

    def _connect(self) -> sqlite3.Connection:
        if not self._locks.are_held:
            raise StoreError(f"the ACL store {self.path} is not open")
        if self._connection is None:
            if self._inode is not None:
                self._check_same_file()
            self._connection = connect(self.path)
            self._check_same_file()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

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
