"""The store in one SQLite file, used from a thread of its own: the event loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from os import PathLike
from typing import Final, ParamSpec, TypeVar

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.database import Database
from aclbroker.broker.stores.store import StoreError, StoreStatus

log = get_logger()

_TICK_S: Final = 1.0
"""How often the store looks whether it is quiet; if it was for so long, it brings all changes into
the one file. A change after that takes about twice as long as one that follows on another."""

_TICKS_IN_PLACE: Final = 10
"""After how many ticks the store looks whether its file is still there."""

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """Keeps bindings and records in the file at ``path``: see `Database` for how."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._database = Database(path)
        self._thread: ThreadPoolExecutor | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ticks = 0
        self._seen = 0
        self._is_in_place = True
        self._compacts = True

    async def open(self) -> None:
        """Lock and open the file, a new one if there is none; a second broker gets `StoreError`."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="aclbroker-sqlite")
        try:
            await self._run(self._database.open)
        except StoreError:
            await self.close()
            raise
        self._tick_later()

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
        """Return all bindings in lists of a few thousand."""
        chunks = self._database.load()
        try:
            while chunk := await self._run(lambda: next(chunks, None)):
                yield chunk
        finally:
            if self._thread is not None:
                await self._run(chunks.close)

    async def apply(self, added: Collection[AclBinding], removed: Collection[AclBinding]) -> None:
        """Add and remove bindings in one transaction, which is on disk when this returns."""
        await self._run(self._database.apply, added, removed)
        self._compact_later()

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the values of all records of a kind, by name."""
        return await self._run(self._database.load_records, kind)

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str]
    ) -> None:
        """Put and remove records in one transaction, which is on disk when this returns."""
        await self._run(self._database.apply_records, kind, put, removed)

    def _compact_later(self) -> None:
        if self._database.is_littered and self._thread is not None:
            self._thread.submit(self._compact)

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
            self._compact_later()

    def _tick_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        if self._thread is None:
            return
        transactions = self._database.stored.transactions
        if transactions == self._seen and not self._database.is_settled:
            self._thread.submit(self._settle)
        self._seen = transactions
        self._ticks += 1
        if self._ticks % _TICKS_IN_PLACE == 0:
            self._thread.submit(self._check_in_place)
        self._tick_later()

    def _settle(self) -> None:
        # Other calls come in between, and one of them may have closed the file.
        if not self._database.is_settled:
            # Nothing is lost if it fails: it is tried again, and a change tells what is wrong.
            with suppress(StoreError):
                self._database.settle()

    def _check_in_place(self) -> None:
        try:
            self._database.check_in_place()
        except StoreError as error:
            if self._is_in_place:
                log.error("ACL store not in its place", reason=str(error))
            self._is_in_place = False
        else:
            self._is_in_place = True

    async def close(self) -> None:
        """Bring all changes into the one file, close and unlock it, and end the thread."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._thread is not None:
            await self._run(self._database.close)
            self._thread.shutdown()
            self._thread = None

    async def _run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._thread is None:
            raise StoreError(f"the ACL store {self._database.path} is not open")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: function(*args, **kwargs))
