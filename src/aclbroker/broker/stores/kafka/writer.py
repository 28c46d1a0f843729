"""Writes transactions to the topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    AuthenticationFailedError,
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerClosed,
    ProducerFenced,
    RecordTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownError,
    UnknownProducerId,
)
from aiokafka.producer.transaction_manager import TransactionState

from aclbroker.broker.stores.kafka.connection import Place, arguments, to_the_end
from aclbroker.broker.stores.kafka.messages import Message
from aclbroker.broker.stores.store import (
    StoreError,
    StoreFenced,
    StoreReadOnly,
    StoreUnavailable,
)

_TRANSACTION_MS: Final = 15_000
"""After so long Kafka ends a transaction that a broker did not: until then nothing is read that
comes after its first message."""

_WITHIN_S: Final = 20.0
_STOP_S: Final = 2.0
_TURN: Final = 64
"""After so many messages others have their turn."""

_LARGEST: Final = 1 << 20
_BATCH_BYTES: Final = 1 << 16

_REFUSED: Final = (AuthenticationFailedError, MessageSizeTooLargeError, RecordTooLargeError)
"""Errors that a retry would meet again."""

_FORBIDDEN: Final = (
    ClusterAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
"""The errors for a user without the right to write."""

_ANEW: Final = (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping, UnknownProducerId)
"""The errors of a producer whose id was given to another producer; a new producer works."""

_TO_ABORT: Final = (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR)
"""The states of a producer with a transaction that Kafka can be told to undo."""


class Overtaken(StoreError):
    """Another has begun with the same transactional id, and nothing of this one was written."""


class Writer:
    """A transactional producer, made when it is needed, and made anew after a failure.

    ``transactional_id`` must be this broker's alone: who begins with it ends what somebody else
    has not finished with it. One that ``gives_way`` shares it, and raises `Overtaken` then.
    """

    def __init__(self, place: Place, transactional_id: str, *, gives_way: bool = False) -> None:
        self._place = place
        self._id = transactional_id
        self._gives_way = gives_way
        self._producer: Any = None
        self._lock = asyncio.Lock()

    async def begin(self) -> None:
        """Take the transactional id: what others have not finished with it is undone.

        Raises `StoreError`.
        """
        async with self._lock:
            try:
                async with asyncio.timeout(_WITHIN_S):
                    await self._started()
            except (KafkaError, OSError, TimeoutError) as error:
                await self._drop()
                raise self._failure(error) from error

    async def write(self, messages: Callable[[], Iterable[Message]]) -> int:
        """Write messages in one transaction; return the offset behind the last of them.

        The function makes them, perhaps more than once. Raises `StoreUnavailable` if Kafka cannot
        be reached, when the transaction may have been made all the same, and `StoreError` if it
        was refused.
        """
        async with self._lock:
            try:
                async with asyncio.timeout(_WITHIN_S):
                    return await self._written(messages)
            except UnicodeEncodeError as error:
                raise StoreError(
                    f"{self._place}: a text that is no Unicode: {error.reason}"
                ) from None
            except (KafkaError, OSError, TimeoutError) as error:
                raise self._failure(error) from error

    async def _written(self, messages: Callable[[], Iterable[Message]]) -> int:
        try:
            return await self._transaction(messages())
        except _ANEW:
            if self._gives_way:
                raise
            # A tool that has done its work was given the same id, or the id was forgotten after a
            # week. Messages that were written all the same say the same when they come again.
            return await self._transaction(messages())

    async def _transaction(self, messages: Iterable[Message]) -> int:
        try:
            producer = await self._started()
            await producer.begin_transaction()
            # Its answer comes before that of the commit.
            count, sent = await self._sent(producer, messages)
            await producer.commit_transaction()
        except BaseException:
            await self._drop()
            raise
        return int(sent.result().offset) + count

    async def close(self) -> None:
        """Disconnect."""
        async with self._lock:
            await self._drop()

    async def _started(self) -> Any:
        if self._producer is None:
            self._producer = AIOKafkaProducer(
                **arguments(self._place),
                transactional_id=self._id,
                transaction_timeout_ms=_TRANSACTION_MS,
                max_request_size=_LARGEST,
                max_batch_size=_BATCH_BYTES,
            )
            await self._producer.start()
        return self._producer

    async def _sent(
        self, producer: Any, messages: Iterable[Message]
    ) -> tuple[int, asyncio.Future[Any]]:
        """Send messages in batches; return how many the last one has, and its answer to come.

        aiokafka can make batches by itself, with an object for each message that waits for its
        answer. A hundred thousand of these are too many to be done with in one turn.
        """
        batch, sent = producer.create_batch(), None
        for number, each in enumerate(messages, 1):
            if len(each.key) + len(each.value or b"") > _LARGEST:
                raise MessageSizeTooLargeError(f"one message has more than {_LARGEST} bytes")
            if _append(batch, each) is None:
                sent = await self._queued(producer, batch, sent)
                batch = producer.create_batch()
                _append(batch, each)
            if number % _TURN == 0:
                await asyncio.sleep(0)
        sent = await self._queued(producer, batch, sent)
        return int(batch.record_count()), sent

    async def _queued(
        self, producer: Any, batch: Any, before: asyncio.Future[Any] | None
    ) -> asyncio.Future[Any]:
        if before is not None:
            await before
        found: asyncio.Future[Any] = await producer.send_batch(
            batch, self._place.topic, partition=0
        )
        found.add_done_callback(_hear)
        return found

    async def _drop(self) -> None:
        """Forget the producer: what is unfinished is ended by the next one, or by time."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await to_the_end(_stop(producer))

    def _failure(self, error: BaseException) -> StoreError:
        # Who ends a transaction while another is taking its id gets an unexpected error of Kafka
        # 4.3's, or a plain KafkaError of aiokafka's. Who gives way reads all again in any case.
        is_odd = isinstance(error, UnknownError) or type(error) is KafkaError
        if self._gives_way and (is_odd or isinstance(error, _ANEW)):
            return Overtaken(f"{self._place}: others begin at the same time; try again")
        if isinstance(error, ProducerFenced | InvalidProducerEpoch):
            return StoreFenced(
                f"{self._place}: another broker writes with the transactional id {self._id!r}; "
                "brokers that share a topic need different values of node.id"
            )
        reason = str(error) or type(error).__name__
        if isinstance(error, _FORBIDDEN):
            return StoreReadOnly(
                f"{self._place}: the user of this broker may not write ({type(error).__name__}), "
                "so it only follows the topic. Make changes at a broker that may write, or grant "
                f"WRITE on the topic and on the transactional id {self._id!r}"
            )
        if isinstance(error, _REFUSED):
            return StoreError(f"{self._place}: {reason}")
        if isinstance(error, TimeoutError):
            reason = f"no transaction was made within {_WITHIN_S:g} seconds"
        elif isinstance(error, BrokerResponseError):
            reason = f"{type(error).__name__}: {reason}"
        return StoreUnavailable(f"{self._place}: {reason}")


async def _stop(producer: Any) -> None:
    # Batches that were not sent have a future that nobody has.
    for batches in producer._message_accumulator._batches.values():
        for batch in batches:
            _hear(batch._drain_waiter)
    try:
        async with asyncio.timeout(_STOP_S):
            if producer._txn_manager.state in _TO_ABORT:
                await producer.abort_transaction()
            await producer.stop()
    except (KafkaError, OSError, TimeoutError):
        await _tear_down(producer)


async def _tear_down(producer: Any) -> None:
    """End the tasks and the connections of a producer that did not stop in time.

    It waits for what it has sent first. If that is cut short these are left, and connect for ever.
    """
    sender = producer._sender.sender_task
    if sender is not None:
        sender.add_done_callback(_hear)
        sender.cancel()
    # Else what waits in its `stop` until all is sent would do so for ever.
    producer._message_accumulator.fail_all(ProducerClosed())
    try:
        async with asyncio.timeout(_STOP_S):
            await producer.client.close()
    except (KafkaError, OSError, TimeoutError):
        pass


def _hear(future: asyncio.Future[Any]) -> None:
    """Ask for the error that the transaction tells, too: asyncio logs what nobody asks for."""
    if future.done() and not future.cancelled():
        future.exception()


def _append(batch: Any, message: Message) -> Any:
    return batch.append(
        timestamp=None, key=message.key, value=message.value, headers=list(message.headers)
    )
