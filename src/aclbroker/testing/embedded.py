"""A broker in a thread of its own, within another program."""

from __future__ import annotations

import asyncio
import contextvars
import io
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, TypeVar

from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.config import load
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.memory import MemoryCluster
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.login_log import AUTHENTICATIONS, FAILED_LOGIN
from aclbroker.broker.observability.logs import log_of_its_own
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.fault_control import fault_control
from aclbroker.broker.server.loading import Loaded, load_parts
from aclbroker.broker.server.parts import start_parts
from aclbroker.broker.server.server import Server

T = TypeVar("T")

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 30.0
_LINES_KEPT: Final = 2_000
_REASONS_KEPT: Final = 100


class _Lines(io.StringIO):
    """Keeps the last lines of a log, which has no file here."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: deque[str] = deque(maxlen=_LINES_KEPT)

    def write(self, text: str, /) -> int:
        """Keep a line."""
        self.kept.append(text)
        return len(text)


class _LoginLines(LimitedLog):
    """Counts the reasons why logins failed, those included that the log leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: Counter[str] = Counter()

    def write(self, write: Callable[..., Any], event: str, peer: str, /, **values: Any) -> None:
        """Write a line, unless there are too many like it."""
        if event == FAILED_LOGIN:
            reason = str(values.get("reason"))
            is_known = reason in self.reasons or len(self.reasons) < _REASONS_KEPT
            self.reasons[reason if is_known else "other reasons"] += 1
        super().write(write, event, peer, **values)


class EmbeddedBroker:
    """A broker with a configuration, from `start` to `stop`; each is done once.

    ``audit_class`` is told of each decision, and ``rights_class`` asks for them. Its log is kept in
    memory; the logging, the signals and the garbage collector of the process stay as they are.
    ``faults`` may be added at any time, in the broker's thread.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        audit_class: type[Audit] = Audit,
        rights_class: type[RequestRights] = RequestRights,
    ) -> None:
        self._properties = dict(properties)
        self._audit_class = audit_class
        self._rights_class = rights_class
        self._lines = _Lines()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._context = contextvars.Context()
        self._ends = False
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._loaded: Loaded | None = None
        self._server: Server | None = None
        self._listeners: dict[str, str] = {}
        self._login_lines = _LoginLines()
        self._metrics = Metrics()
        self.faults = Faults()
        self.faults_url: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._thread is not None

    def start(self) -> None:
        """Start, and return when clients are let in; raises what the broker failed with.

        RuntimeError if it was started before.
        """
        if self._ends or self.is_running:
            raise RuntimeError("the broker was started before; make another one")
        self._thread = threading.Thread(target=self._run, name="aclbroker", daemon=True)
        self._thread.start()
        try:
            if not self._started.wait(_START_SECONDS):
                raise TimeoutError(f"the broker did not start within {_START_SECONDS:g} seconds")
        except BaseException:
            # Whoever waited no longer does, so that nobody would stop it.
            self._end()
            raise
        if self._failure is not None:
            self._end().join()
            raise self._failure

    def stop(self) -> None:
        """End, and return when it has ended; a second time does nothing."""
        if not self.is_running:
            return
        thread = self._end()
        thread.join(_STOP_SECONDS)
        if thread.is_alive():
            raise TimeoutError(f"the broker did not stop within {_STOP_SECONDS:g} seconds")

    def log(self) -> str:
        """Return the last lines of the broker's log."""
        return "".join(self._lines.kept)

    def logins(self) -> int:
        """Return how many logins succeeded so far."""
        figures = self._metrics.figures().values
        return round(
            sum(
                count
                for (name, labels), count in figures.items()
                if name == AUTHENTICATIONS and labels[-1] == "succeeded"
            )
        )

    def failed_logins(self) -> Mapping[str, int]:
        """Return how many logins failed so far, by the reason."""
        return self._login_lines.reasons.copy()

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Return what a function returns in the broker's thread; raises what it raises."""

        async def called() -> T:
            return function(*args)

        return self.await_(called())

    def await_(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns in the broker's thread; raises what it raises."""
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            coroutine.close()
            raise RuntimeError("the broker is not running")
        # What it logs is the broker's, too: a context says where that goes.
        run = self._context.copy().run
        return run(asyncio.run_coroutine_threadsafe, coroutine, self._loop).result(_STOP_SECONDS)

    @property
    def listeners(self) -> Mapping[str, str]:
        """The addresses of each listener."""
        if not self._listeners:
            raise RuntimeError("the broker is not running")
        return self._listeners

    @property
    def authorizer(self) -> StandardAuthorizer:
        """The authorizer, which the broker's thread alone may use."""
        found = self._running.authorizer
        if not isinstance(found, StandardAuthorizer):
            raise TypeError("the broker has another authorizer than the built-in one")
        return found

    @property
    def cluster(self) -> MemoryCluster:
        """The cluster in memory, which the broker's thread alone may use."""
        found = self._running.cluster
        if found is None:
            raise TypeError("the broker keeps no data")
        return found

    @property
    def server(self) -> Server:
        """What serves clients, which the broker's thread alone may use."""
        if self._server is None:
            raise RuntimeError("the broker is not running")
        return self._server

    @property
    def _running(self) -> Loaded:
        if self._loaded is None:
            raise RuntimeError("the broker is not running")
        return self._loaded

    def _end(self) -> threading.Thread:
        """Have the thread end, and return it."""
        thread, self._thread = self._thread, None
        if thread is None:
            raise RuntimeError("the broker is not running")
        self._ends = True
        if self._loop is not None and self._stopping is not None and thread.is_alive():
            # A loop that has ended meanwhile refuses that.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopping.set)
        return thread

    def _run(self) -> None:
        # A thread begins with an empty context, so this concerns nobody else.
        try:
            try:
                import uvloop
            except ImportError:
                asyncio.run(self._serve())
            else:
                uvloop.run(self._serve())
        except BaseException as error:  # noqa: BLE001 # raised again by whoever started it
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        output = log_of_its_own(self._lines)
        config = load(overrides=self._properties)
        self._context = contextvars.copy_context()
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        if self._ends:
            self._stopping.set()
        metrics, lines = self._metrics, self._login_lines
        async with AsyncExitStack() as running:
            running.callback(lines.close)
            control = running.enter_context(fault_control(config, self.faults))
            self.faults_url = None if control is None else control.url
            self._loaded = await load_parts(config, lines, running)
            audit, self._server, self._listeners = await start_parts(
                config,
                output,
                self._loaded,
                metrics,
                lines,
                audit_class=self._audit_class,
                rights_class=self._rights_class,
                faults=self.faults,
            )
            audit.start()
            self._started.set()
            await self._stopping.wait()
            await self._loaded.clusters.end_waiting()
            await self._server.stop()
            audit.close()
