"""`KafkaStore`: ACLs and records in one compacted topic, which the brokers of a fleet share.

What is written is there for this broker when its own reader has read it, as for all others.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.kafka.agreement import agreed
from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.contents import TURN, Contents
from aclbroker.broker.stores.kafka.freshness import Moment
from aclbroker.broker.stores.kafka.health import TopicDamaged, TopicHealth
from aclbroker.broker.stores.kafka.loading import load_topic
from aclbroker.broker.stores.kafka.messages import Message, Whole, messages_of
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.snapshots import Snapshots
from aclbroker.broker.stores.kafka.topic import Topic, prepare
from aclbroker.broker.stores.kafka.writer import Writer
from aclbroker.broker.stores.pieces import emptied, paced
from aclbroker.broker.stores.recent_changes import RecentChanges, records_changed
from aclbroker.broker.stores.store import (
    Origin,
    StoreChange,
    StoreError,
    StoreReset,
    StoreStatus,
    StoreUnavailable,
)
from aclbroker.broker.stores.threads import in_daemon_thread

log = get_logger()

_CHUNK: Final = 4096
_RETRY_S: Final = 2.0
_DAMAGED_RETRY_S: Final = 15.0
_WATCH_S: Final = 1.0
_LOOK_S: Final = 5.0
_PATIENCE_S: Final = 20.0
_SILENT_S: Final = 5.0
_ID_BYTES: Final = 8


class KafkaStore:
    """Keeps bindings and records in the topic of a `Place`.

    ``transactional_id`` must differ between the brokers that share it. The contents of the topic
    are kept in memory, too, and are read anew from its beginning after an error. The directory
    ``snapshots`` has files that shorten a start. With ``accepts_loss`` a topic is opened although
    messages at its beginning were deleted.
    """

    is_shared = True

    def __init__(
        self,
        place: Place,
        transactional_id: str,
        snapshots: Path | None = None,
        *,
        makes: bool = True,
        accepts_loss: bool = False,
    ) -> None:
        self._place = place
        self._makes = makes
        self._writer = Writer(place, transactional_id)
        self._reader: Reader | None = None
        self._failing_since = math.inf
        self._recent = RecentChanges()
        # Up to where the topic was read, which ends with marks of transactions that change nothing.
        self._offset = 0
        self._moved = asyncio.Event()
        # Held while a transaction is taken, in pieces: nobody may be told a part of it.
        self._changing = asyncio.Lock()
        self._contents = Contents()
        self._snapshots = Snapshots(snapshots)
        self._topic: Topic | None = None
        self._health = TopicHealth(place, accepts_loss=accepts_loss)
        self._is_new = False
        self._problem = ""
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Read the topic; make it if there is none and it is to be made. Raises `StoreError`."""
        if self._tasks:
            return
        asked = partial(prepare, self._place, makes=self._makes)
        self._topic = self._health.topic = await in_daemon_thread("aclbroker-topic", asked)
        await self._load(await self._snapshots.found(self._topic))
        self._is_new = not self._contents.has_format
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._watch())]

    async def status(self) -> StoreStatus:
        """Return the URL, and whether nobody had written to the topic when it was opened."""
        return StoreStatus(
            str(self._place),
            is_durable=True,
            is_new=self._is_new,
            records=len(self._contents.records),
        )

    async def cluster_id(self) -> str:
        """Return the id that all make of the topic and of the cluster in which it is."""
        if self._topic is None:
            raise StoreUnavailable(f"{self._place}: the store is not open")
        return self._topic.id

    @property
    def silent_s(self) -> float:
        """For how many seconds nothing was read: no answer came, or one that cannot be read."""
        reader = self._reader
        if reader is None:
            return 0.0
        silent = max(reader.silent_s, asyncio.get_running_loop().time() - self._failing_since)
        return max(silent, self._health.age_s(reader)) if self._health.is_behind(reader) else silent

    @property
    def is_outdated(self) -> bool:
        """Whether revokes may be missing, so that the topic is being read anew."""
        reader = self._reader
        return reader is not None and self._health.is_outdated(reader)

    def unread(self, position: int) -> int | None:
        """Return how many offsets Kafka told of that are not read, or were not followed yet."""
        reader = self._reader
        if reader is None:
            return None
        done = self._offset if position >= self._recent.position else position
        return max(0, reader.last - done)

    async def load(self) -> AsyncIterator[list[AclBinding]]:
        """Return all bindings that were read, in lists of a few thousand."""
        async with self._changing:
            bindings = list(self._contents.bindings)
        for begin in range(0, len(bindings), _CHUNK):
            yield bindings[begin : begin + _CHUNK]

    async def position(self) -> int:
        """Read all that is committed now, and return the offset up to which that was."""
        self._require_reachable()
        end = 0
        try:
            async with asyncio.timeout(_PATIENCE_S):
                if self._reader is not None:
                    end = await self._reader.end()
                await self._has_read(end)
        except TimeoutError:
            raise self._late(end) from None
        # The process may have been stopped meanwhile.
        self._require_reachable()
        return self._recent.position

    def _require_reachable(self) -> None:
        """Raise `StoreUnavailable` where it is known that nobody would be served.

        Who waits keeps all changes waiting that come later, each of which would wait as long.
        """
        reader = self._reader
        problem = self._problem or self._health.problem
        if problem or not self._tasks or reader is None:
            raise StoreUnavailable(problem or f"{self._place}: the store is not open")
        self._health.require_fresh(reader)
        if reader.silent_s > _SILENT_S:
            raise StoreUnavailable(
                f"{self._place}: no answer for {reader.silent_s:.0f} seconds; it is out of reach"
            )
        if self._health.is_behind(reader):
            raise StoreUnavailable(f"{self._place}: it is not read to its end yet; try again")

    async def _has_read(self, offset: int) -> None:
        while self._offset < offset:
            if self._problem:
                raise StoreUnavailable(self._problem)
            await self._moved.wait()

    async def _has_read_in_time(self, offset: int) -> None:
        """Wait until all is read up to an offset. Raises `StoreUnavailable`."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._has_read(offset)
        except TimeoutError:
            raise self._late(offset) from None

    def _late(self, offset: int) -> StoreUnavailable:
        upto = f"up to offset {offset}" if offset else "at the end of the topic"
        return StoreUnavailable(f"{self._place}: what is there {upto} was not read in time")

    def _move(self, offset: int) -> None:
        self._offset = offset
        self._wake()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    async def apply(
        self, added: Collection[AclBinding], removed: Collection[AclBinding], origin: Origin
    ) -> int:
        """Add and remove bindings in one transaction; return the offset behind it."""
        return await self._change(added, removed, {}, origin)

    def follow(self, position: int) -> AsyncIterator[StoreChange | StoreReset]:
        """Return the changes that were read, also those of others."""
        return self._recent.follow(position, self._everything)

    async def load_records(self, kind: str) -> dict[str, str]:
        """Return the records of a kind that were read."""
        return {
            name: value
            for (of_kind, name), value in self._contents.records.items()
            if of_kind == kind
        }

    async def apply_records(
        self, kind: str, put: Mapping[str, str], removed: Collection[str], origin: Origin
    ) -> int:
        """Put and remove records in one transaction; return the offset behind it."""
        return await self._change((), (), records_changed(kind, put, removed), origin)

    async def claim(
        self, kind: str, values: Mapping[str, str], origin: Origin
    ) -> Mapping[str, str]:
        """Put those records that are not there; return the values of all."""

        async def read() -> Mapping[str, str]:
            if self._reader is None:
                raise StoreUnavailable(f"{self._place}: the store is not open")
            # Not only what is committed: that is behind what any other broker has open.
            await self._has_read_in_time(await self._reader.written())
            return await self.load_records(kind)

        def messages(missing: Mapping[str, str]) -> Callable[[], Iterable[Message]]:
            return self._messages((), (), records_changed(kind, missing, ()), origin)

        found, position = await agreed(self._place, values, read, messages)
        await self._has_read_in_time(position)
        return found

    async def close(self) -> None:
        """Disconnect, and end what is followed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._recent.end()
        await self._snapshots.close()
        await self._writer.close()
        if self._reader is not None:
            await self._reader.close()

    async def _change(
        self,
        added: Collection[AclBinding],
        removed: Collection[AclBinding],
        records: Mapping[tuple[str, str], str | None],
        origin: Origin,
    ) -> int:
        # What others have changed a moment ago may not be known here yet, so that something is
        # written once too often rather than not at all, and left out only when nothing is missing.
        self._require_reachable()
        if not await self._contents.differ(added, removed, records):
            position = await self.position()
            if not await self._contents.differ(added, removed, records):
                return position
        position = await self._writer.write(self._messages(added, removed, records, origin))
        await self._has_read_in_time(position)
        return position

    def _messages(
        self,
        added: Collection[AclBinding],
        removed: Collection[AclBinding],
        records: Mapping[tuple[str, str], str | None],
        origin: Origin,
    ) -> Callable[[], Iterable[Message]]:
        """Return what makes the messages of one transaction."""
        return partial(
            messages_of,
            *(added, removed, records, origin, secrets.token_hex(_ID_BYTES)),
            with_format=not self._contents.has_format,
        )

    async def _load(self, snapshot: Contents | None = None) -> None:
        """Read the topic in place of all that was known of it, from where a snapshot ends."""
        known = self._recent.position
        found = await load_topic(self._place, self._health, self._snapshots, snapshot, known)
        # First of all the new one is known, to be closed with the store if this is cancelled.
        read_before, self._reader = self._reader, found.reader
        position = found.contents.position
        if position <= known:
            # Followers get the whole contents if anything differs. The position alone does not
            # show that, because compaction may have left only markers behind the known position.
            is_same = await found.contents.is_same_as(self._contents)
            position = known if is_same else max(known + 1, found.contents.offset)
        old, self._contents = self._contents, found.contents
        self._recent.restart(position)
        self._health.begin(found.moment, found.kept_ms, found.reader.connection)
        self._move(found.contents.offset)
        if read_before is not None:
            await read_before.close()
        await emptied(old.bindings)

    async def _read(self) -> None:
        """Take committed transactions for ever; read the topic anew after an error."""
        while True:
            pause_s = _RETRY_S if self._problem else 0.0
            try:
                if self._problem or self._reader is None:
                    await self._load()
                    self._tell("")
                    continue
                async for whole in self._reader.follow():
                    self._health.require_fresh(self._reader)
                    await self._take(whole)
            except StoreError as error:
                pause_s = _DAMAGED_RETRY_S if isinstance(error, TopicDamaged) else pause_s
                self._tell(str(error))
            except Exception:  # a bug must not end what keeps decisions up to date
                if not self._problem:
                    log.exception("topic for ACLs not read")
                self._failing_since = min(self._failing_since, asyncio.get_running_loop().time())
                self._problem = f"{self._place}: it cannot be read; the broker's log says why"
                self._wake()
            await asyncio.sleep(pause_s)

    async def _take(self, whole: Whole) -> None:
        """Make what a transaction says known to those who follow."""
        if len(whole):
            async with self._changing:
                await self._tell_of(whole)
        self._move(max(whole.position, self._offset))

    async def _tell_of(self, whole: Whole) -> None:
        added: list[AclBinding] = []
        removed: list[AclBinding] = []
        records: dict[tuple[str, str], str | None] = {}
        # Of very many, those who follow are told that all may be different.
        contents = self._contents
        is_told = len(whole) <= self._recent.room
        origin = None
        async for setting in paced(whole.settings, TURN):
            origin = origin or setting.origin
            binding = setting.binding
            if not is_told:
                pass
            elif binding is not None and setting.is_removed == (binding in self._contents.bindings):
                (removed if setting.is_removed else added).append(binding)
            elif setting.record is not None:
                records[setting.record] = setting.value
            contents.put(setting)
        if is_told:
            self._recent.add(whole.position, added, removed, records, origin)
        else:
            self._recent.restart(whole.position)

    async def _watch(self) -> None:
        """Check the topic, and log when the cluster stops answering, and when it answers again."""
        is_silent = False
        while True:
            await asyncio.sleep(_WATCH_S)
            silent = self._reader is not None and self._reader.silent_s > _SILENT_S
            if not self._problem and silent != is_silent:
                is_silent = silent
                if is_silent:
                    log.warning("topic for ACLs out of reach", store=str(self._place))
                else:
                    log.info("topic for ACLs within reach again", store=str(self._place))
            looks_well = not self._problem and await self._looks_well(is_silent=silent)
            if looks_well and self._snapshots.is_due(self._offset):
                await self._snapshot()

    async def _looks_well(self, *, is_silent: bool) -> bool:
        """Return whether nothing is wrong with the topic; have it read anew if it must be."""
        reader = self._reader
        if reader is None:
            return False
        if self._health.is_outdated(reader):
            reader.end_with(self._health.why_outdated(reader))
            return False
        if is_silent:
            return False
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._health.look(reader, self._contents, self._has_read)
        except (StoreUnavailable, TimeoutError):
            return False
        except StoreError as error:
            reader.end_with(str(error))
            return False
        self._snapshots.keep(self._health.kept_ms)
        return not self._health.problem

    async def _snapshot(self) -> None:
        """Begin to write a snapshot of what the topic says at this moment."""
        moment = Moment.now()
        try:
            await self.position()
        except StoreUnavailable:
            return
        async with self._changing:
            # A later call writes it if only a part of a transaction was read.
            reader = self._reader
            if reader is not None and reader.is_between and not self._health.is_outdated(reader):
                self._contents.offset, self._contents.position = (
                    self._offset,
                    self._recent.position,
                )
                self._snapshots.write(self._contents, moment)

    def _tell(self, problem: str) -> None:
        """Log what keeps the topic from being read, once, and when it is read again."""
        if problem and not self._problem:
            self._failing_since = asyncio.get_running_loop().time()
            log.error("topic for ACLs not read", reason=problem)
        elif not problem:
            self._failing_since = math.inf
            log.info("topic for ACLs read again", store=str(self._place))
        self._problem = problem
        self._wake()

    async def _everything(self) -> StoreReset:
        async with self._changing:
            found = self._contents
            return StoreReset(self._recent.position, list(found.bindings), dict(found.records))
