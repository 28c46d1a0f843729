"""Our broker in a thread of the tests' process: it starts sooner than a process of its own."""

import asyncio
import gc
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, TextIO

import uvloop

from aclbroker.broker.config import ConfigError, load
from aclbroker.broker.observability.logs import get_logger, log_of_its_own
from aclbroker.broker.server import run
from aclbroker.broker.server.hangup import Hangup
from aclbroker.broker.server.start import Start
from aclbroker.broker.server.start_error import StartError
from tests.support.broker import READY_WITHIN, Broker
from tests.support.process import spawned, wait_for

log = get_logger()


class _NoSignal(Hangup):
    """A thread gets no signals, so none comes while the broker starts."""

    def __init__(self) -> None:
        self.has_come = False


class _Loop(uvloop.Loop):
    """An event loop that keeps the handlers of signals, so that a test can call them."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[[], Any]] = {}

    def add_signal_handler(  # type: ignore[override] # so that mypy needs no TypeVarTuple
        self, sig: int, callback: Callable[..., Any], *args: Any
    ) -> None:
        self.handlers[sig] = partial(callback, *args)


class ThreadBroker(Broker):
    """The same broker as `Broker`, without a process of its own.

    Its configuration, log, store and signals are those of the command. It has no process id, so
    it cannot be killed, and relative paths are those of the tests' process. A broker with worker
    processes, and one whose settings apply to the whole process, needs `Broker`.
    """

    _thread: threading.Thread | None = None
    _status = 0

    def spawn(self) -> None:
        """Start the thread; its log lines from now on are `new_log_text`."""
        spawned.append(self)
        self._loop = _Loop()
        output = self.log.open("a")
        self._log_start = output.tell()
        self._thread = threading.Thread(
            target=self._run, args=(output,), name=f"broker {self.directory.name}", daemon=True
        )
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread has not ended."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, within: float = READY_WITHIN) -> None:
        """Start the broker; the garbage collector of the tests stays as it is."""
        thresholds = gc.get_threshold()
        try:
            super().start(within)
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()

    def kill(self) -> None:
        """Give up: a thread cannot be killed."""
        raise RuntimeError(f"the broker is a thread, which cannot be killed:\n{self.log_text()}")

    def hang_up(self) -> None:
        """Do what SIGHUP does."""
        self._signal(signal.SIGHUP)

    def terminate(self, seconds: float = 15) -> int:
        """Do what SIGTERM does; the exit status, or TimeoutError if it does not end in time."""
        if self._thread is None:
            raise RuntimeError("not started")
        self._signal(signal.SIGTERM)
        self._thread.join(seconds)
        if self._thread.is_alive():
            raise TimeoutError(f"it did not end within {seconds:g} s:\n{self.log_text()}")
        return self._status

    def _signal(self, number: int) -> None:
        if not self.is_alive:
            return
        handler = wait_for("a signal handler", lambda: self._loop.handlers.get(number), 15)
        self._loop.call_soon_threadsafe(handler)

    def _run(self, output: TextIO) -> None:
        # The context of a thread is empty, so the tests' own log stays as it is.
        with output:
            try:
                self._status = self._serve(output)
            except BaseException:  # noqa: BLE001 - a process would print it and end
                traceback.print_exc(file=output)
                self._status = 1

    def _serve(self, stream: TextIO) -> int:
        read = partial(load, str(self._properties_file))
        try:
            config = read()
        except ConfigError as error:
            for line in (*error.warnings, *error.problems):
                stream.write(f"aclbroker: {line}\n")
            return 1
        if config.workers > 1:
            raise RuntimeError("worker processes need a test that is marked broker_process")
        output = log_of_its_own(stream, config.log_level, config.log_format or "json")
        with ExitStack() as running:
            running.enter_context(output.writing())
            for line in config.warnings:
                log.warning(line)
            for line in config.notes:
                log.info(line)
            self._loop.set_exception_handler(_log_exception)
            runner = running.enter_context(asyncio.Runner(loop_factory=lambda: self._loop))
            try:
                runner.run(run._serve(Start(config, output, read, _NoSignal())))
            except StartError as error:
                log.critical("cannot start", reason=str(error))
                return 1
        return 0


def _log_exception(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.error(context["message"], logger="asyncio", exc_info=context.get("exception"))
