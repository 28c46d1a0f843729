"""The workers of a broker, as the owner of the store sees them: each is begun, and begun again."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.start_error import StartError
from aclbroker.broker.stores.owned.channel import Channel, Handler, Message
from aclbroker.broker.stores.waking import Wakeup

log = get_logger()

_PAUSE_S: Final = 1.0
"""How long to wait before a worker is begun again that did not live for `_LONG_S`."""

_LONG_S: Final = 10.0
_KILLED_S: Final = 60.0


Begin = Callable[[int, Sequence[socket.socket]], None]
"""Begins a process of a number, which gets two sockets."""


class Worker:
    """One process. ``why`` is the reason for which it was ended, or could not begin."""

    def __init__(self, number: int, handlers: Mapping[str, Handler]) -> None:
        self.number = number
        self.channel = Channel(handlers)
        self.pid: int | None = None
        self.loaded: Mapping[str, Any] | None = None
        self.listeners: Mapping[str, str] = {}
        self.is_ready = False
        self.why = ""
        self.gone = asyncio.Event()
        self.began = monotonic()
        self._sending = asyncio.Lock()
        self._hands: socket.socket | None = None

    async def begin(self, begin: Begin) -> None:
        """Have the process forked."""
        ours, theirs = socket.socketpair()
        self._hands, hands = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._hands.setblocking(False)
        begin(self.number, (theirs, hands))
        await self.channel.open(ours)

    async def run(self) -> None:
        """Wait until the process is gone. One whose messages cannot be taken is killed."""
        try:
            await self.channel.run()
        except Exception:
            # Its socket is closed in the loop's next turn, so it is there.
            self._kill()
            raise
        finally:
            self.is_ready = False
            self.gone.set()
            # Who has not handed a connection on yet watches the socket until it sees that.
            async with self._sending:
                if self._hands is not None:
                    self._hands.close()

    async def hand(self, peer: socket.socket, told: bytes) -> None:
        """Hand a connection on; raises `OSError` if the process is gone."""
        async with self._sending:
            while True:
                if self._hands is None or self.gone.is_set():
                    raise ConnectionResetError
                try:
                    socket.send_fds(self._hands, [told], [peer.fileno()])
                except (BlockingIOError, InterruptedError):
                    await _writable(self._hands, self.gone)
                else:
                    return

    async def end(self, why: str) -> None:
        """Kill the process, and return when it is gone."""
        if self.gone.is_set():
            return
        self.why = self.why or why
        self.is_ready = False
        # As long as its socket is open the process is there, and its id is nobody else's.
        if self.pid is not None and not self.channel.is_closed:
            self._kill()
        else:
            self.channel.close()
        await self.gone.wait()

    def _kill(self) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


async def _writable(hands: socket.socket, gone: asyncio.Event) -> None:
    """Wait until a socket takes more, or its process is gone."""
    loop = asyncio.get_running_loop()
    is_writable = asyncio.Event()
    loop.add_writer(hands, is_writable.set)
    waiting = [asyncio.create_task(each.wait()) for each in (is_writable, gone)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
        loop.remove_writer(hands)


class Team:
    """So many workers, each of which is replaced when it ends, until `stop`.

    ``welcome`` gives what a worker is told once it has loaded all; ``joins`` adds what else takes
    its messages, and ``leaves`` is told when it is gone.
    """

    def __init__(
        self,
        count: int,
        begin: Begin,
        welcome: Callable[[], Awaitable[Any]],
        joins: Callable[[Worker], None],
        leaves: Callable[[Worker], None],
    ) -> None:
        self.count = count
        self.workers: dict[int, Worker] = {}
        self._begin = begin
        self._welcome = welcome
        self._joins = joins
        self._leaves = leaves
        self._failure: str | None = None
        self._has_started = False
        self._is_stopping = False
        self._tasks: list[asyncio.Task[None]] = []
        self.changed = Wakeup()
        """Wakes who waits for what depends on workers and their connections."""

    @property
    def ready(self) -> list[Worker]:
        """The workers that serve."""
        return [each for each in self.workers.values() if each.is_ready]

    async def load(self, *, first_alone: bool) -> Mapping[str, Any]:
        """Begin all; return what the first tells when all have loaded. Raises `StartError`.

        With ``first_alone`` the others begin when the first has loaded: what a new store gets at
        its start must be made once.
        """
        self._keep_later(0)
        if first_alone:
            await self.until(self._have_loaded)
        for number in range(1, self.count):
            self._keep_later(number)
        await self.until(lambda: len(self.workers) == self.count and self._have_loaded())
        return self.workers[0].loaded or {}

    async def serve(self) -> Mapping[str, str]:
        """Wait until all serve; return the addresses of listeners. Raises `StartError`."""
        await self.until(lambda: len(self.ready) == self.count)
        self._has_started = True
        return self.workers[0].listeners

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something that depends on workers; raises `StartError` if one cannot begin."""
        while not is_so():
            if self._failure is not None:
                raise StartError(self._failure)
            await self.changed.wait()

    def tell(self, name: str, value: Any = None) -> None:
        """Tell all workers something."""
        for worker in self.workers.values():
            worker.channel.tell(name, value)

    async def stop(self, seconds: float) -> None:
        """Have all workers end what they do, for so many seconds at most."""
        self._is_stopping = True
        self.changed.wake()
        self.tell("stop")
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=seconds)
        if late:
            log.error("workers killed: they did not end in time", count=len(late))
            await asyncio.gather(*(each.end("") for each in list(self.workers.values())))
            await asyncio.wait(late, timeout=_KILLED_S)

    def _have_loaded(self) -> bool:
        return all(each.loaded is not None for each in self.workers.values())

    def _keep_later(self, number: int) -> None:
        self._tasks.append(asyncio.create_task(self._keep(number)))
        # The worker is there before anybody asks for it.
        self.workers[number] = Worker(number, {})

    async def _keep(self, number: int) -> None:
        """Have a worker of a number, as long as the broker runs."""
        while self._goes_on():
            worker = await self._lived(number)
            why = worker.why or "it ended"
            if not self._has_started:
                self._failure = self._failure or worker.why or f"worker {number} ended at its start"
                self.changed.wake()
                return
            if self._goes_on():
                log.error("worker ended; another takes its place", ended=number, reason=why)
                if monotonic() - worker.began < _LONG_S:
                    await asyncio.sleep(_PAUSE_S)

    async def _lived(self, number: int) -> Worker:
        """Begin a worker, and return it when it has ended."""
        worker = self.workers[number] = Worker(number, {})
        worker.channel.handlers.update(self._handlers(worker))
        self._joins(worker)
        try:
            await worker.begin(self._begin)
            if not self._goes_on():
                worker.channel.tell("stop")
            await worker.run()
        except OSError as error:
            worker.why = f"it cannot be begun: {error.strerror or error}"
        except Exception:
            # Another must take its place, whatever is wrong with this one.
            log.exception("worker failed", failed=number)
            worker.why = worker.why or "its messages cannot be taken"
        finally:
            worker.gone.set()
            self._leaves(worker)
        return worker

    def _goes_on(self) -> bool:
        return not self._is_stopping

    def _handlers(self, worker: Worker) -> dict[str, Handler]:
        def hello(told: Message) -> None:
            worker.pid = told.value

        async def loaded(told: Message) -> Message:
            worker.loaded = told.value
            self.changed.wake()
            return Message(await self._welcome())

        def ready(told: Message) -> None:
            worker.listeners = told.value
            worker.is_ready = True
            self.changed.wake()

        def failed(told: Message) -> None:
            worker.why = told.value

        async def begun(_asked: Message) -> Message:
            return Message(self._has_started)

        return {
            "hello": hello,
            "begun": begun,
            "loaded": loaded,
            "ready": ready,
            "failed": failed,
        }
