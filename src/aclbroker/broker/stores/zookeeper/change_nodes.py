"""The directories in which changes are told: what is new in them, and what may be removed.

ZooKeeper numbers their nodes without a gap, and a directory's version tells the next number. So it
is known if a change was told and is gone already; then all has to be read again.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kazoo.exceptions import NoNodeError

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import StoreError, StoreUnavailable
from aclbroker.broker.stores.zookeeper.connection import Connection, ask
from aclbroker.broker.stores.zookeeper.layout import (
    CHANGE_PREFIX,
    EXTENDED_CHANGES,
    LITERAL_CHANGES,
)
from aclbroker.broker.stores.zookeeper.records import RECORD_CHANGE_PREFIX, RECORD_CHANGES

log = get_logger()

DIRECTORIES: Final = (LITERAL_CHANGES, EXTENDED_CHANGES, RECORD_CHANGES)
_PREFIXES: Final = {
    LITERAL_CHANGES: CHANGE_PREFIX,
    EXTENDED_CHANGES: CHANGE_PREFIX,
    RECORD_CHANGES: RECORD_CHANGE_PREFIX,
}

KEPT_MS: Final = 15 * 60 * 1000
"""How long a change is told, in milliseconds, as in Kafka's `ZkNodeChangeNotificationListener`."""

_MANY: Final = 30_000
"""With some ten thousand more their list is larger than Kafka's brokers read (jute.maxbuffer)."""

_PURGED_AT_ONCE: Final = 200
_FEW: Final = 2_000
_PURGE_S: Final = 1.0
"""How long nobody looks for old changes after few were found among many."""

_BEYOND: Final = 10**10 - 1
"""As large as a number can be with the ten digits that all have."""


class Missed(Exception):
    """A change cannot be read any more, or the directories are not those of before."""


class Change(NamedTuple):
    """A node that tells a change. ``time_ms`` is when it was made, by the clock of ZooKeeper."""

    zxid: int
    directory: str
    data: bytes
    time_ms: int


class ChangeNodes:
    """What is new in the directories since the last time; ``changed`` is called when there is more.

    It may be called from any thread. Where some ``may_lack`` nothing is told in these.
    """

    def __init__(
        self, connection: Connection, changed: Callable[..., None], *, may_lack: bool = False
    ) -> None:
        self._may_lack = may_lack
        self._connection = connection
        self._changed = changed
        self._next: dict[str, int] = {}
        # The zxid that made each directory: a new directory of the same name counts anew.
        self._made: dict[str, int] = {}
        self._names: dict[str, list[str]] = {}
        self._warned: set[str] = set()
        self._purged: dict[str, float] = {}
        self._left_to_others: set[str] = set()

    async def begin(self) -> int:
        """Take all that is told now as known; return the zxid of the last of it.

        Raises `Missed`, and `StoreError`.
        """
        self._left_to_others.clear()
        self._made.clear()
        listings = await self._listed()
        for (_, next_number, _), directory in zip(listings, DIRECTORIES, strict=True):
            self._next[directory] = next_number
        return max(zxid for _, _, zxid in listings)

    async def news(self) -> tuple[list[Change], int]:
        """Return the changes since, in no order, and a zxid up to which these are all.

        Raises `Missed`, and `StoreError`.
        """
        seen = self._connection.seen
        listings = await self._listed()
        paths: list[tuple[str, str]] = []
        for (names, next_number, _), directory in zip(listings, DIRECTORIES, strict=True):
            known = self._next[directory]
            new = _between(names, directory, known, next_number)
            if len(new) != next_number - known:
                raise Missed
            paths += [(directory, name) for name in new]
        found = await self._read(paths)
        for (_, next_number, _), directory in zip(listings, DIRECTORIES, strict=True):
            self._next[directory] = next_number
        # Of the other directories more may have been listed than of the first, never less.
        return found, max(seen, listings[0][2])

    async def _listed(self) -> list[tuple[list[str], int, int]]:
        """Return the names in each directory, the next number, and its last zxid."""
        whole = [self._connection.path(directory) for directory in DIRECTORIES]
        answers = await self._connection.all(
            [ask("get_children", path, watch=self._changed, include_data=True) for path in whole]
        )
        listed: list[tuple[list[str], int, int]] = []
        for directory, answer in zip(DIRECTORIES, answers, strict=True):
            if self._may_lack and isinstance(answer, NoNodeError):
                listed.append(([], 0, 0))
                continue
            if isinstance(answer, Exception):
                raise Missed from answer
            names, stat = answer
            if self._made.setdefault(directory, stat.czxid) != stat.czxid:
                raise Missed
            self._names[directory] = names
            # The servers count what was made, and show that and what was removed as the version.
            listed.append((names, (stat.cversion + stat.numChildren) // 2, stat.pzxid))
            self._warn_of_many(directory, len(names))
        return listed

    async def _read(self, paths: Sequence[tuple[str, str]]) -> list[Change]:
        whole = [self._connection.path(f"{directory}/{name}") for directory, name in paths]
        answers = await self._connection.all([ask("get", path) for path in whole])
        changes = []
        for (directory, _), answer in zip(paths, answers, strict=True):
            if isinstance(answer, Exception):
                raise Missed from answer
            data, stat = answer
            changes.append(Change(stat.czxid, directory, data or b"", stat.ctime))
        return changes

    async def purge(self, now_ms: int) -> None:
        """Remove what is told longer than Kafka keeps it; the time is that of ZooKeeper's clock.

        Whoever may not, or is not the first, leaves it to others.
        """
        for directory in DIRECTORIES:
            if directory in self._left_to_others:
                continue
            try:
                await self._purge(directory, now_ms)
            except StoreUnavailable:
                raise
            except StoreError:  # it is not allowed, and changes are known all the same
                self._left_to_others.add(directory)

    async def _purge(self, directory: str, now_ms: int) -> None:
        listed = self._names.get(directory, [])
        # To find the oldest of many takes long.
        now = asyncio.get_running_loop().time()
        if len(listed) > _FEW and now < self._purged.get(directory, 0.0) + _PURGE_S:
            return
        names = _between(listed, directory, 0, _BEYOND)
        # If more are old, they follow with the next change.
        oldest = heapq.nsmallest(_PURGED_AT_ONCE, names)
        old = await self._old(directory, oldest, now_ms - KEPT_MS)
        await self._connection.all([ask("delete", path) for path in old])
        if len(old) < _PURGED_AT_ONCE:
            self._purged[directory] = now

    async def _old(self, directory: str, names: Sequence[str], before_ms: int) -> list[str]:
        paths = [self._connection.path(f"{directory}/{name}") for name in names]
        # Mostly the oldest is not old enough.
        first = await self._stats(paths[:1])
        if not first or (first[0] is not None and first[0].ctime >= before_ms):
            return []
        stats = await self._stats(paths)
        return [
            path
            for path, stat in zip(paths, stats, strict=True)
            if stat is None or stat.ctime < before_ms
        ]

    async def _stats(self, paths: Sequence[str]) -> list[Any]:
        answers = await self._connection.all([ask("exists", path) for path in paths])
        return [None if isinstance(each, NoNodeError) else each for each in answers]

    def _warn_of_many(self, directory: str, count: int) -> None:
        if count < _MANY:
            self._warned.discard(directory)
        elif directory not in self._warned:
            self._warned.add(directory)
            log.warning(
                "brokers of Kafka may not be able to read so many changes of ACLs: change fewer "
                "in 15 minutes, or give them a larger jute.maxbuffer",
                path=directory,
                count=count,
            )


def _between(names: Sequence[str], directory: str, begin: int, end: int) -> list[str]:
    """Return those names whose numbers are from ``begin`` on and below ``end``.

    All have ten digits. Others' names, which have no place there, are left out.
    """
    prefix = _PREFIXES[directory]
    first, last = f"{prefix}{begin:010}", f"{prefix}{end:010}"
    return [name for name in names if first <= name < last]
