"""Reads the topic: transactions in their order, as they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import ConnectionGroup
from aiokafka.errors import KafkaError

from aclbroker.broker.stores.kafka.connection import Place, arguments, to_the_end
from aclbroker.broker.stores.kafka.messages import (
    Assembly,
    Message,
    NewerFormat,
    Setting,
    UnreadableMessage,
    Whole,
    read,
)
from aclbroker.broker.stores.kafka.topic_id import topic_id, topic_settings
from aclbroker.broker.stores.store import StoreError, StoreUnavailable

_AT_ONCE: Final = 128
"""So many messages are read in a few milliseconds, in which the event loop does nothing else."""

_FREED_AT_ONCE: Final = 2048

_FETCHED_BYTES: Final = 1 << 19
_WAIT_MS: Final = 250
_SHOWN: Final = 200
_PATIENCE_S: Final = 30.0
_STARTED_WITHIN_S: Final = 1.0
"""How long the start of a consumer may go on after it was cancelled."""


class Reader:
    """A consumer of the whole topic, without a group.

    It reads what is ``committed``, or also what is not yet, or never will be.
    """

    def __init__(self, place: Place, *, committed: bool = True) -> None:
        self._place = place
        self._isolation = "read_committed" if committed else "read_uncommitted"
        self._partition = TopicPartition(place.topic, 0)
        self._consumer: Any = None
        self._assembly = Assembly()
        self.begin = 0
        """The first offset that the topic has."""

        self._position = 0
        self._unfinished: tuple[frozenset[str], int] | None = None
        self._unreadable: dict[bytes, str] = {}
        self._ended = ""
        # By the clock of the loop, which nobody sets; the stamp is aiokafka's, by the machine's.
        self._heard = self._now()
        self._is_taking = False
        self._stamp: int | None = None

    async def open(self) -> None:
        """Connect, to read from the beginning. Raises `StoreError`."""
        self._consumer = AIOKafkaConsumer(
            **arguments(self._place),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level=self._isolation,
            max_partition_fetch_bytes=_FETCHED_BYTES,
        )
        try:
            await _started(self._consumer)
            self._consumer.assign([self._partition])
            [self.begin] = (await self._consumer.beginning_offsets([self._partition])).values()
            self.seek(self.begin)
        except BaseException as error:
            await self.close()
            if isinstance(error, KafkaError | OSError):
                raise self._unreachable(error) from error
            raise

    async def close(self) -> None:
        """Disconnect."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await to_the_end(_stop(consumer))

    def seek(self, offset: int) -> None:
        """Read from an offset on, at which no transaction was unfinished."""
        self._position = offset
        self._consumer.seek(self._partition, offset)

    @property
    def is_between(self) -> bool:
        """Whether of no transaction a part was read."""
        return not self._assembly.unfinished

    async def end(self) -> int:
        """Return the offset up to which all transactions have ended. Raises `StoreError`."""
        if self._consumer is None:
            raise StoreUnavailable(f"{self._place}: the store is not open")
        try:
            found = await self._consumer.end_offsets([self._partition])
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error
        return int(found[self._partition])

    async def written(self) -> int:
        """Return the offset behind all that is written, by transactions that are open, too.

        Raises `StoreUnavailable`.
        """
        consumer = AIOKafkaConsumer(
            **arguments(self._place), group_id=None, isolation_level="read_uncommitted"
        )
        try:
            await _started(consumer)
            found = await consumer.end_offsets([self._partition])
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error
        finally:
            await to_the_end(_stop(consumer))
        return int(found[self._partition])

    async def topic_id(self) -> str:
        """Return the id that Kafka gives the topic of that name now, "" if it gives none.

        Raises `StoreUnavailable`, also if there is no such topic now.
        """
        client = self._consumer._client
        try:
            return await topic_id(client, self._node(client), self._place.topic)
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error

    async def settings(self) -> Mapping[str, str | None] | None:
        """Return the topic's current settings, None without the right to read them.

        Raises `StoreUnavailable`.
        """
        client = self._consumer._client
        try:
            return await topic_settings(client, self._node(client), self._place.topic)
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error

    async def first(self) -> int:
        """Return the first offset that the topic has now. Raises `StoreUnavailable`."""
        try:
            [found] = (await self._consumer.beginning_offsets([self._partition])).values()
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error
        return int(found)

    @property
    def connection(self) -> object:
        """The current connection to the topic's leader, to compare; None without one."""
        if self._consumer is None:
            return None
        client = self._consumer._client
        found = client._conns.get((self._leader(client), ConnectionGroup.DEFAULT))
        return found if found is not None and found.connected() else None

    def _leader(self, client: Any) -> int | None:
        found: int | None = client.cluster.leader_for_partition(self._partition)
        return found

    def _node(self, client: Any) -> int | None:
        # All nodes know ids and settings. After a metadata request while the topic was missing,
        # aiokafka knows no leader until the next fetch.
        leader = self._leader(client)
        found: int | None = client.get_random_node() if leader in (None, -1) else leader
        return found

    def end_with(self, reason: str) -> None:
        """Let who reads get a `StoreError`, and nothing more of the topic."""
        self._ended = reason

    @property
    def silent_s(self) -> float:
        """For how many seconds the cluster has not answered."""
        # Nobody asks for more while much that has come is taken.
        return 0.0 if self._is_taking else self._now() - self._heard

    @property
    def unreadable(self) -> Mapping[bytes, str]:
        """What is wrong with messages that cannot be read, and were not removed, by their keys."""
        return self._unreadable

    @property
    def last(self) -> int:
        """Up to which offset there were messages when Kafka last answered, finished or not."""
        highwater = None if self._consumer is None else self._consumer.highwater(self._partition)
        return max(self._position, highwater or 0)

    async def messages(self) -> AsyncIterator[Any]:
        """Yield each message up to the end that there is now, as it is. Raises `StoreError`."""
        end = await self.end()
        while self._position < end:
            records, position = await self._fetched()
            if not records and self.silent_s > _PATIENCE_S:
                raise StoreUnavailable(f"{self._place} did not answer within {_PATIENCE_S:g} s")
            for each in records:
                if each.offset < end:
                    yield each
            self._position = position
        self._position = end

    async def everything(self, *, refuses: bool = True) -> AsyncIterator[Whole]:
        """Yield what is committed now, from where it is to be read. Raises `StoreError`.

        If it ``refuses`` what is ``unreadable`` that is an error as well, in the end. Each must be
        used up before the next is asked for, and so of `follow`.
        """
        end = await self.end()
        while self._position < end or self._unfinished is not None:
            async for each in self._poll():
                yield each
        if refuses:
            self.refuse()
        yield Whole(self._position, [], {})

    async def follow(self) -> AsyncIterator[Whole]:
        """Yield what comes next, for ever; one without settings tells of a new position.

        Raises `StoreError`.
        """
        reached = -1
        while True:
            async for each in self._poll(refuses=True):
                reached = each.position
                yield each
            if self._position > reached:
                reached = self._position
                yield Whole(reached, [], {})

    async def _poll(self, *, refuses: bool = False) -> AsyncIterator[Whole]:
        """Yield transactions that are whole now; note up to where the topic was read.

        If it ``refuses`` what is ``unreadable``, nothing behind that is read.
        """
        records, position = await self._fetched()
        if self._ended:
            raise StoreError(self._ended)
        try:
            self._is_taking = True
            async for whole in self._wholes(records, position, refuses=refuses):
                yield whole
        finally:
            self._is_taking = False
            if records:
                self._heard = self._now()
        self._assembly.free(_FREED_AT_ONCE)
        # Others have their turn between two polls, however much there is to be read.
        await asyncio.sleep(0)

    async def _fetched(self) -> tuple[Sequence[Any], int]:
        """Return some messages that came, and up to where the topic was read with them."""
        partition = self._partition
        try:
            found = await self._consumer.getmany(
                partition, timeout_ms=_WAIT_MS, max_records=_AT_ONCE
            )
            position = int(await self._consumer.position(partition))
            self._require_fetching()
            self._note_contact()
        except (KafkaError, OSError) as error:
            raise self._unreachable(error) from error
        return found.get(partition, ()), position

    async def _wholes(
        self, records: Sequence[Any], position: int, *, refuses: bool
    ) -> AsyncIterator[Whole]:
        """Yield the transactions that are whole with some messages, up to a position."""
        for each in records:
            setting = self.setting_of(each)
            whole = None if setting is None else self._assembly.take(each.offset, setting)
            if refuses:
                self.refuse()
            if whole is not None:
                yield whole
        self._position = position
        whole = await self._left_by_compaction(position)
        if whole is not None:
            yield whole

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _require_fetching(self) -> None:
        """Raise `StoreUnavailable` if aiokafka's task that fetches has ended.

        It ends with what it does not expect, and then nothing comes for ever, without an error.
        """
        if self._consumer._fetcher.error_future.done():
            raise StoreUnavailable(f"{self._place}: aiokafka fetches no more; its log says why")

    def _note_contact(self) -> None:
        stamp = self._consumer.last_poll_timestamp(self._partition)
        if stamp != self._stamp:
            self._stamp, self._heard = stamp, self._now()

    async def _left_by_compaction(self, position: int) -> Whole | None:
        """Return what is left of transactions whose other messages cannot come any more.

        They were committed when their first message was read, so that the others were there then,
        up to the high watermark, though another transaction that was open may have hidden them.
        """
        whole = None
        if self._unfinished is not None and not self._assembly.has_any(self._unfinished[0]):
            # Most are only cut in two by what is read at once.
            self._unfinished = None
        if self._unfinished is not None and position >= self._unfinished[1]:
            whole = await self._assembly.rest(self._unfinished[0], position)
            self._unfinished = None
        if self._unfinished is None and (ids := self._assembly.unfinished):
            self._unfinished = ids, self._consumer.highwater(self._partition) or position
        return whole

    def setting_of(self, record: Any) -> Setting | None:
        """Return what a message says, None if it cannot be read, which is noted.

        Raises `StoreError` for one of a newer version.
        """
        key = record.key or b""
        if record.value is None:
            self._unreadable.pop(key, None)
        try:
            setting = _read(Message(key, record.value, tuple(record.headers)))
        except NewerFormat as error:
            raise StoreError(f"{self._place}: it has {error}") from None
        except UnreadableMessage as error:
            if record.value is not None:
                self._unreadable[key] = f"offset {record.offset} cannot be read: {error}"
            return None
        self._unreadable.pop(key, None)
        return setting

    def refuse(self) -> None:
        """Raise `StoreError` if something is ``unreadable``: it may stand for a denial."""
        for key, reason in self._unreadable.items():
            raise self._refused(key, reason)

    def _refused(self, key: bytes, reason: str) -> StoreError:
        return StoreError(
            f"{self._place}: the message at {reason}. It may stand for a denial, so the topic is "
            f"not used until a message without a value has removed its key, {key[:_SHOWN]!r}"
        )

    def _unreachable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"{self._place}: {str(error) or type(error).__name__}")


async def _started(consumer: Any) -> None:
    """Start a consumer; a cancellation waits for a moment until it is started.

    aiokafka does not close the connection over which it asks for the brokers if that question is
    cancelled.
    """
    task = asyncio.create_task(consumer.start())
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_STARTED_WITHIN_S)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
    task.result()


async def _stop(consumer: Any) -> None:
    try:
        await consumer.stop()
    except (asyncio.CancelledError, KafkaError):
        # Of a task that it has cancelled while that waited to try again, or that had failed. Its
        # connections would come next.
        await consumer._client.close()


def _read(message: Message) -> Setting:
    """Return what a message says. Raises `UnreadableMessage`, and `NewerFormat`."""
    try:
        return read(message)
    except UnreadableMessage:
        if message.value is not None or not message.headers:
            raise
        # Kafka removes the key all the same, whatever the headers are.
        return read(message._replace(headers=()))
