"""Keeps what ZooKeeper has in memory, and tells what changes: one's own changes like others'.

A change is known by the node that tells it. The node of its pattern is read then, so that what is
told is never older than the change; and it waits while the pattern has been changed again since,
so that what is told is not newer, either, and no ALLOW is seen before a DENY that came first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.pieces import emptied, paced
from aclbroker.broker.stores.recent_changes import RecentChanges
from aclbroker.broker.stores.store import (
    Origin,
    StoreError,
    StoreMissing,
    StoreReset,
    StoreUnavailable,
)
from aclbroker.broker.stores.zookeeper import tree
from aclbroker.broker.stores.zookeeper.change_nodes import Change, ChangeNodes, Missed
from aclbroker.broker.stores.zookeeper.connection import Connection, ask
from aclbroker.broker.stores.zookeeper.contents import Contents
from aclbroker.broker.stores.zookeeper.news import (
    News,
    Own,
    Records,
    State,
    newest,
    sorted_out,
)
from aclbroker.broker.stores.zookeeper.outage import Outage
from aclbroker.broker.stores.zookeeper.settings import ZookeeperSettings

log = get_logger()

_RETRY_S: Final = 1.0
_SESSIONS_WAITED: Final = 10
"""After how many times the timeout of sessions without a connection one begins anew."""

_ROUNDS: Final = 5
"""How often it is looked for the change that tells why a node is newer than those that are told."""

_MOST_OWN: Final = 1000
"""How many of one's own changes are known that nobody has told yet; others are read again."""

_COMPARED_AT_ONCE: Final = 500
"""After so many patterns others have their turn."""


class Mirror:
    """What ZooKeeper has, in memory from `start` on; ``recent`` has the last changes.

    It begins a session of its own, and another when that is over; then all is read again. Unless
    it ``makes`` the nodes of a store, `start` raises `StoreMissing` where there are none.
    """

    def __init__(self, settings: ZookeeperSettings, *, makes: bool = True) -> None:
        self._makes = makes
        self._is_missing = False
        self._awake = asyncio.Event()
        self.connection = Connection(settings, self._awake.set)
        self.contents = Contents()
        self.recent = RecentChanges()
        self.is_new = False
        # Kafka does not make those of records.
        self._nodes = ChangeNodes(
            self.connection, self.connection.call_soon(self._awake.set), may_lack=not makes
        )
        self._held: list[Change] = []
        self._is_ahead = False
        self._own: dict[int, Own] = {}
        self._offset = 0
        self._session: int | None = None
        self._loaded = asyncio.Event()
        self._moved = asyncio.Event()
        self._outage = Outage(settings.url)
        self._begun_looks = 0
        self._done_looks = 0
        self._begun = 0.0
        self._reason = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect and read everything; wait for ZooKeeper for as long as that takes."""
        self.connection.open()
        self._task = asyncio.create_task(self._run())
        try:
            await self._loaded.wait()
            if self._is_missing:
                raise StoreMissing(f"{self.connection.settings.url}: there are no nodes of a store")
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the session; whoever follows comes to an end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self.recent.end()
        self._wake()
        await self.connection.close()

    def made(self, zxid: int, own: Own) -> int:
        """Note what a transaction has done, for when it is told; return its position."""
        if len(self._own) >= _MOST_OWN:
            del self._own[next(iter(self._own))]
        self._own[zxid] = own
        return zxid + self._offset

    async def reached(self, position: int) -> None:
        """Wait until all up to a position is in memory, for as long as an answer is waited for.

        Without a connection nobody waits.
        """
        try:
            async with asyncio.timeout(self._patience_s):
                while (
                    self.recent.position < position
                    and self._task is not None
                    and self.connection.is_connected
                ):
                    await self._moved.wait()
        except TimeoutError:
            pass

    @property
    def is_exact(self) -> bool:
        """Whether what is in memory is all of one position, and nothing later."""
        return not self._held and not self._is_ahead

    @property
    def position(self) -> int:
        """Up to where all is in memory."""
        return self.recent.position

    @property
    def silent_s(self) -> float:
        """For how many seconds something has been wrong."""
        return max(0.0, asyncio.get_running_loop().time() - self._outage.since)

    async def refresh(self) -> None:
        """Wait until all that is told at this moment is in memory. Raises `StoreUnavailable`."""
        await self.connection.one(ask("sync", "/"))
        wanted = self._begun_looks + 1
        self._awake.set()
        try:
            async with asyncio.timeout(self._patience_s):
                while self._done_looks < wanted:
                    if self._task is None or not self.connection.is_connected:
                        raise StoreUnavailable("the connection to ZooKeeper was lost")
                    await self._moved.wait()
        except TimeoutError:
            raise StoreUnavailable(
                f"what is in ZooKeeper at {self.connection.settings.url} was not read in time"
            ) from None

    @property
    def _patience_s(self) -> float:
        return self.connection.settings.session_timeout_ms / 1000

    async def everything(self) -> StoreReset:
        """Return all that is in memory."""
        position, unreadable = self.recent.position, frozenset(self.contents.unreadable)
        values = {
            (kind, name): value
            for kind, of_kind in self.contents.records.items()
            for name, value in of_kind.items()
        }
        return StoreReset(position, await self.contents.bindings(), values, unreadable)

    async def _run(self) -> None:
        while True:
            self._awake.clear()
            try:
                self._begun_looks += 1
                await self._look()
                self._done_looks = self._begun_looks
            except StoreError as error:
                self._outage.goes_on(str(error))
                self._wake()
            except Missed:
                self._session = None
                continue
            except Exception:  # whatever it is, ACLs must be kept up to date
                log.exception("ACLs in ZooKeeper cannot be followed")
                self._session = None
            else:
                self._outage.is_over()
                self._wake()
                await self._awake.wait()
                continue
            # Something is wrong: look again in a while, or as soon as the connection changes.
            try:
                async with asyncio.timeout(_RETRY_S):
                    await self._awake.wait()
            except TimeoutError:
                pass

    async def _look(self) -> None:
        """Bring the contents up to date; raises `StoreError` and `Missed`."""
        if self.connection.ended:
            self._reason = self.connection.ended
            await asyncio.sleep(_RETRY_S)
            await self.connection.reopen()
        session = self.connection.session
        if session is None:
            await self._begin_anew_if_late()
            raise StoreUnavailable(self._reason or "there is no connection")
        self._reason = ""
        if session == self._session:
            await self._catch_up()
        else:
            await self._load(session)

    async def _begin_anew_if_late(self) -> None:
        """Give the session up where it has been over for long, to be let in by any ZooKeeper.

        One that was set up anew, or from a backup, lets nobody in who has seen what it has not.
        """
        now = asyncio.get_running_loop().time()
        session_s = self.connection.settings.session_timeout_ms / 1000
        if now > max(self._outage.since, self._begun) + _SESSIONS_WAITED * session_s:
            self._begun = now
            await self.connection.reopen()

    async def _load(self, session: int) -> None:
        """Read everything, and tell that it may all be different."""
        connection = self.connection
        await connection.one(ask("sync", "/"))
        if self._makes:
            is_new = await tree.make_directories(connection)
            self.is_new = is_new and not self._loaded.is_set()
        else:
            self._is_missing = not await tree.is_there(connection)
        seen = connection.seen
        last = await self._nodes.begin()
        contents = Contents()
        contents.unreadable = dict(self.contents.unreadable)
        found = set()
        patterns = await tree.all_patterns(connection)
        async for pattern, acls, _ in tree.read_acls(connection, patterns):
            contents.take(pattern, acls)
            found.add(pattern)
        for pattern in [each for each in contents.unreadable if each not in found]:
            del contents.unreadable[pattern]
        contents.take_records(await tree.all_records(connection))
        if connection.session != session:
            raise StoreUnavailable("the connection was lost")
        old = self.contents
        self.contents, self._held, self._session = contents, [], session
        # Each session is a transaction of its own, so that `seen` is new. The first time there is
        # nobody who has followed, and the last change is what is told after any other restart.
        position = (max(seen, last) if self._loaded.is_set() else last) + self._offset
        if position < self.recent.position:
            log.error(
                "ZooKeeper has lost changes, or is another one", store=connection.settings.url
            )
            self._offset += self.recent.position + 1 - position
            position = self.recent.position + 1
        self.recent.restart(position)
        self._loaded.set()
        self._wake()
        await emptied(old.acls)

    async def _catch_up(self) -> None:
        """Tell what has changed since; raises `StoreError`, and `Missed` if that is not known."""
        done_ms = 0
        for rounds_left in reversed(range(_ROUNDS)):
            changes, complete = await self._nodes.news()
            self._held += changes
            ready = [change for change in self._held if change.zxid <= complete]
            if ready and await self._take(sorted_out(ready, self._own), complete, rounds_left):
                self._held = [change for change in self._held if change.zxid > complete]
                done_ms = max(done_ms, newest(ready))
            if not self._held:
                break
        else:
            self._awake.set()
        if done_ms:
            await self._nodes.purge(done_ms)

    async def _take(self, news: News, complete: int, rounds_left: int) -> bool:
        """Tell what is new; return whether that was done.

        It is not if a node was changed after ``complete``, unless there is no round left: then more
        is told soon.
        """
        connection = self.connection
        read = [each async for each in tree.read_acls(connection, news.patterns)]
        self._is_ahead = await self._is_newer(read, complete)
        if not rounds_left:
            # What is read may be newer than one's own next change, which must not undo it.
            self._own.clear()
        elif self._is_ahead:
            return False
        values = await tree.read_records(connection, news.records)
        for zxid, own in news.own:
            await self._tell_change(zxid, own.acls, own.records, own.origin)
            self._own.pop(zxid, None)
        if news.last:
            for zxid in [zxid for zxid in self._own if zxid <= news.last]:
                del self._own[zxid]
            acls = {pattern: found for pattern, found, _ in read}
            await self._tell_change(news.last, acls, values, None)
        self._wake()
        return True

    async def _is_newer(self, read: Sequence[tree.ReadAcls], complete: int) -> bool:
        """Return whether one of the nodes was changed after ``complete``, as far as can be told.

        A node that is gone does not tell when it went; if nothing was told since, it was before.
        """
        if any(zxid > complete for _, _, zxid in read):
            return True
        if all(zxid or pattern not in self.contents.acls for pattern, _, zxid in read):
            return False
        changes, _ = await self._nodes.news()
        self._held += changes
        return bool(changes)

    async def _tell_change(
        self, zxid: int, acls: State, records: Records, origin: Origin | None
    ) -> None:
        """Take what patterns and records have now, and tell what that changes.

        What takes long is done before anything is taken, so that nobody sees a part of it.
        """
        unreadable = set(self.contents.unreadable)
        added: list[AclBinding] = []
        removed: list[AclBinding] = []
        async for pattern, found in paced(acls.items(), _COMPARED_AT_ONCE):
            new, gone = self.contents.difference(pattern, found)
            added += new
            removed += gone
        for pattern, found in acls.items():
            self.contents.take(pattern, found)
        self.contents.take_records(records)
        position = zxid + self._offset
        if unreadable != set(self.contents.unreadable):
            self.recent.restart(max(position, self.recent.position))
        elif position > self.recent.position:
            self.recent.add(position, added, removed, records, origin)
        await emptied(added)
        await emptied(removed)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
