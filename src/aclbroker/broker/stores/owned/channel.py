"""Messages between two processes of one broker, over a Unix socket that nobody else can reach.

A message has a value, and items: there may be a million of these, so they travel in parts, between
which both sides do other work. A frame is its length in four bytes, and a list in JSON, which keeps
any text as it is, lone surrogates included.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import (
    StoreConflict,
    StoreError,
    StoreFenced,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

log = get_logger()

_PART, _REQUEST, _REPLY, _FAILURE, _NOTICE = range(5)
_LENGTH_BYTES: Final = 4
_ITEMS: Final = 500
_CHARACTERS: Final = 131_072
"""How much is made JSON, or read, in one go: a millisecond's work."""

_ERRORS: Final = {
    "unavailable": StoreUnavailable,
    "conflict": StoreConflict,
    "full": StoreFull,
    "fenced": StoreFenced,
    "read-only": StoreReadOnly,
    "store": StoreError,
}
"""The errors by their word in a message; the last one stands for all others."""

_FAILED: Final = "another process of this broker failed to answer; its log says why"
_GONE: Final = "the process of this broker that owns the store is gone"

_to_json = json.JSONEncoder(separators=(",", ":")).encode


class Message(NamedTuple):
    """What is asked, answered or told: a small value, and any number of items."""

    value: Any = None
    items: Sequence[Any] = ()


Handler = Callable[[Message], Awaitable[Message | None] | None]
"""Takes a message. What it returns, awaited if need be, is the answer to a request."""


class Channel:
    """One end of a connected Unix socket; `run` reads from it until the other end is gone.

    ``handlers`` take messages by their names, notices in the order in which they come. A handler's
    `StoreError` is raised where its request is waited for.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.handlers = dict(handlers)
        self.is_closed = False
        self._numbers = 0
        self._parts: dict[int, list[Any]] = {}
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def open(self, connected: socket.socket) -> None:
        """Take the socket, which `close` closes."""
        self._reader, self._writer = await asyncio.open_connection(sock=connected)

    async def run(self) -> None:
        """Take messages until the other end is gone; whoever waits for answers gets none then."""
        try:
            while True:
                await self._take(await self._frame())
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End it; do nothing if it has ended.

        What was asked for goes on, and has no answer: a change may be half way to those who follow.
        """
        if self.is_closed:
            return
        self.is_closed = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(StoreUnavailable(_GONE))
        if self._writer is not None:
            self._writer.close()

    async def finish(self) -> None:
        """End it when all that was sent is on its way."""
        self.close()
        if self._writer is not None:
            with suppress(ConnectionError):
                await self._writer.wait_closed()

    async def ask(self, name: str, value: Any = None, items: Iterable[Any] = ()) -> Message:
        """Return the answer to a request. Raises `StoreError`."""
        number = self._next()
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self.is_closed:
                raise StoreUnavailable(_GONE)
            await self._send(items, [_REQUEST, number, name, value])
            return await answer
        finally:
            del self._waiting[number]

    def tell(self, name: str, value: Any = None) -> None:
        """Send a notice, which nobody answers."""
        self._write([_NOTICE, self._next(), name, value])

    async def tell_all(self, name: str, value: Any, items: Iterable[Any]) -> None:
        """Send a notice with items; return when most of it is on its way."""
        await self._send(items, [_NOTICE, self._next(), name, value])

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    async def _send(self, items: Iterable[Any], head: list[Any]) -> None:
        for part in _parts(items):
            self._write([_PART, head[1], part])
            await self._drained()
        self._write(head)
        await self._drained()

    async def _drained(self) -> None:
        await asyncio.sleep(0)
        if self._writer is not None and not self.is_closed:
            try:
                await self._writer.drain()
            except ConnectionError:
                self.close()

    def _write(self, frame: list[Any]) -> None:
        if self._writer is None or self.is_closed:
            return
        data = _to_json(frame).encode("ascii")
        self._writer.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)

    async def _frame(self) -> list[Any]:
        if self._reader is None:
            raise RuntimeError("the channel is not open")
        length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES), "big")
        frame: list[Any] = json.loads(await self._reader.readexactly(length))
        return frame

    async def _take(self, frame: list[Any]) -> None:
        kind, number, *rest = frame
        if kind == _PART:
            self._parts.setdefault(number, []).extend(rest[0])
            # What is there already is read without a pause.
            await asyncio.sleep(0)
            return
        items = self._parts.pop(number, ())
        if kind == _REPLY:
            self._answered(rest[0], Message(rest[1], items))
        elif kind == _FAILURE:
            error = _ERRORS.get(rest[1], StoreError)(rest[2])
            self._answered(rest[0], error)
        elif kind == _NOTICE:
            self.handlers[rest[0]](Message(rest[1], items))
        else:
            self._begin(number, self.handlers[rest[0]](Message(rest[1], items)))

    def _answered(self, number: int, answer: Message | Exception) -> None:
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():
            return
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def _begin(self, number: int, work: Awaitable[Message | None] | None) -> None:
        task = asyncio.create_task(self._work(number, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, number: int, work: Awaitable[Message | None] | None) -> None:
        try:
            answer = (None if work is None else await work) or Message()
            await self._send(answer.items, [_REPLY, self._next(), number, answer.value])
        except StoreError as error:
            word = next(word for word, kind in _ERRORS.items() if isinstance(error, kind))
            self._write([_FAILURE, self._next(), number, word, str(error)])
        except Exception:
            log.exception("request of another process of this broker failed")
            self._write([_FAILURE, self._next(), number, "store", _FAILED])


def _parts(items: Iterable[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    characters = 0
    for item in items:
        part.append(item)
        characters += sum(len(each) for each in item if type(each) is str)
        if len(part) == _ITEMS or characters >= _CHARACTERS:
            yield part
            part, characters = [], 0
    if part:
        yield part
