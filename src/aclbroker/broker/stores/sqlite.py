"""The store in one SQLite file, used from a thread of its own: the event loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from os import PathLike
from typing import Final, ParamSpec, TypeVar

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.database import HISTORY, Database
from aclbroker.broker.stores.feed import Feed
from aclbroker.broker.stores.news import News
from aclbroker.broker.stores.store import (
    Origin,
    Plan,
    StoreChange,
    StoreError,
    StoreReset,
    StoreStatus,
)

log = get_logger()

_POLL_S: Final = 0.02
"""How often it is looked whether another process has left its mark after a change.

To look takes a microsecond. To ask SQLite (PRAGMA data_version) would take the thread, and a tenth
of a millisecond each time.
"""

_TICK_S: Final = 1.0
"""How often the file itself is looked at, for a change of which no mark was left, and whether it is
still in its place; and whether it is quiet. If it was for so long, all changes are brought into the
one file. A change after that takes about twice as long as one that follows on another."""

_PATIENT_TICKS: Final = 3
"""How many quiet ticks another process has to do that, if the last change was made there."""

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """Keeps bindings and records in the file at ``path``: see `Database` for how."""

    is_shared = True

    def __init__(self, path: str | PathLike[str], history_changes: int = HISTORY) -> None:
        self._database = Database(path, history_changes, self._tell)
        self._feed = Feed()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._poller: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._mark = b""
        self._seen = self._own = 0
        self._quiet = 0
        self._heard = 0.0
        self._is_in_place = True
        self._compacts = True

    async def open(self) -> None:
        """Open the file, a new one if there is none, which other processes may use as well."""
        self._loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="aclbroker-sqlite")
        try:
            await self._run(self._database.open)
        except StoreError:
            await self.close()
            raise
        self._feed.restart(self._database.stored.last_change)
        self._heard = asyncio.get_running_loop().time()
        self._tick_later()
        self._poll_later()

    async def status(self) -> StoreStatus:
        """Return the absolute path, whether `open` made the file, and the number of records."""
        database = self._database
        records = database.stored.records
        return StoreStatus(
            str(database.path), is_durable=True, is_new=database.is_new, records=records
        )

    async def cluster_id(self) -> str:
        """Return the id that was made with the file."""
        return await self._run(self._database.cluster_id)

    async def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all bindings in lists of some thousands, of which the next one is read ahead."""
        chunks = self._database.load()
        ahead = self._begun(next, chunks, None)
        try:
            while chunk := await ahead:
                ahead = self._begun(next, chunks, None)
                yield chunk
        finally:
            if self._thread is not None:
                await self._run(chunks.close)

    @property
    def told(self) -> int:
        """Up to which position all is on its way to those who follow."""
        return self._feed.position

    async def position(self) -> int:
        """Return the greatest id that a change had, whoever made it."""
        await self._run(self._database.look)
        self._heard = asyncio.get_running_loop().time()
        return self._feed.position

    @property
    def silent_s(self) -> float:
        """For how many seconds it is not known what others have changed."""
        return asyncio.get_running_loop().time() - self._heard

    def unread(self, _position: int) -> None:
        """Return that it is not known how much others have written that was not read."""

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove bindings in one transaction, which is on disk when this returns."""
        return self._made(await self._run(self._database.apply, added, removed, origin))

    async def transact(self, position: int, plan: Plan, origin: Origin) -> int:
        """Do what a plan says in one transaction, which is on disk when this returns."""
        return self._made(await self._run(self._database.transact, position, plan, origin))

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return the changes that this or any other process has made."""
        return self._feed.follow(
            position, lambda after: self._run(self._database.read_after, after)
        )

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        return await self._run(self._database.load_records, kind)

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Put and remove records in one transaction, which is on disk when this returns."""
        return self._made(await self._run(self._database.apply_records, kind, put, removed, origin))

    async def apply_records_since(
        self,
        position: int,
        kind: str,
        put: Mapping[str, str],
        removed: Collection[str],
        origin: Origin,
    ) -> int:
        """Put and remove records as `apply_records` does, if none of them was changed since."""
        change = self._database.apply_records
        return self._made(await self._run(change, kind, put, removed, origin, position))

    async def claim(
        self, kind: str, values: Mapping[str, str], origin: Origin
    ) -> Mapping[str, str]:
        """Put those records that are not there; return what all of them have then."""
        position, kept = await self._run(self._database.claim, kind, values, origin)
        self._made(position)
        return kept

    def _tell(self, news: Sequence[News]) -> None:
        """Tell who follows what is new, from the thread.

        Who has made a change, or looked, may not wait for it any more; nobody else would tell it.
        The feed has it before who does wait goes on.
        """
        if self._loop is not None:
            # A loop that is closed already has nobody who follows.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._feed.add, news)

    def _made(self, position: int) -> int:
        """Note that the last change is one of this process, and clear up if that is due."""
        self._own = self._database.stored.transactions
        if self._database.is_littered and self._thread is not None:
            self._thread.submit(self._compact)
        return position

    def _compact(self) -> None:
        # Other calls come in between, and one of them may have closed the file.
        if not self._database.is_littered:
            return
        try:
            self._database.compact()
        except StoreError as error:
            # Nobody waits for this, and nothing is lost if it fails; the next change tries again.
            if self._compacts:
                log.warning("ACL store not compacted", reason=str(error))
            self._compacts = False
        else:
            self._compacts = True
            if self._database.is_littered and self._thread is not None:
                self._thread.submit(self._compact)

    def _poll_later(self) -> None:
        self._poller = asyncio.get_running_loop().call_later(_POLL_S, self._poll)

    def _poll(self) -> None:
        if self._feed.is_followed:
            mark = self._database.others_mark()
            if mark and mark != self._mark and self._look_soon():
                self._mark = mark
        self._poll_later()

    def _look_soon(self) -> bool:
        """Begin to look at what others have changed; return whether it is begun now."""
        is_busy = self._looking is not None and not self._looking.done()
        if is_busy or self._feed.is_behind:
            return False
        self._looking = asyncio.create_task(self._look())
        return True

    async def _look(self) -> None:
        try:
            await self.position()
        except StoreError as error:
            if self._is_in_place:
                log.error("ACL store cannot be followed", reason=str(error))
            self._is_in_place = False
        else:
            self._is_in_place = True

    def _tick_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        transactions = self._database.stored.transactions
        self._quiet = self._quiet + 1 if transactions == self._seen else 0
        patience = 1 if transactions == self._own else _PATIENT_TICKS
        is_quiet = self._quiet >= patience and not self._database.is_settled
        if is_quiet and self._thread is not None:
            self._thread.submit(self._settle)
        self._seen = transactions
        self._look_soon()
        self._tick_later()

    def _settle(self) -> None:
        # Other calls come in between, and one of them may have closed the file.
        if not self._database.is_settled:
            # Nothing is lost if it fails: it is tried again, and a change tells what is wrong.
            with suppress(StoreError):
                self._database.settle()

    async def close(self) -> None:
        """Bring all changes into the one file, close and unlock it, and end the thread."""
        for timer in (self._timer, self._poller):
            if timer is not None:
                timer.cancel()
        self._timer = self._poller = None
        if self._looking is not None:
            await asyncio.wait([self._looking])
            self._looking = None
        self._feed.end()
        if self._thread is not None:
            await self._run(self._database.close)
            self._thread.shutdown()
            self._thread = None

    async def _run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._begun(function, *args, **kwargs)

    def _begun(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Begin a call in the thread, after those that were begun before."""
        if self._thread is None:
            raise StoreError(f"the ACL store {self._database.path} is not open")
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._thread, lambda: function(*args, **kwargs))
