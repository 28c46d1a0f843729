"""Tells on standard error what is being done, and how long it took."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from aclbroker.terminal import printable

if TYPE_CHECKING:
    from pyspark import SparkContext

_REFRESHED_EVERY: Final = 0.5  # seconds
_CLEAR_LINE: Final = "\r\x1b[K"


class Progress:
    """Writes a line for each step when it is done; on a terminal also while it runs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._is_read = True
        self._context: SparkContext | None = None

    def watch(self, context: SparkContext) -> None:
        """Count from now on the tasks of Spark in the line of a running step."""
        self._context = context

    def note(self, text: str) -> None:
        """Write a line; nobody need read it."""
        self._write(f"{printable(text)}\n")

    def _write(self, text: str) -> None:
        if self._is_read:
            try:
                self._stream.write(text)
                self._stream.flush()
            except BrokenPipeError:
                # What was asked for is written to files all the same.
                self._is_read = False

    @contextmanager
    def step(self, name: str) -> Iterator[TimedStep]:
        """Time what is done inside; a step that fails leaves no line."""
        step = TimedStep(name)
        done = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(step, done), daemon=True)
        if self._is_terminal:
            ticker.start()
        try:
            yield step
        finally:
            done.set()
            if self._is_terminal:
                ticker.join()
                self._write(_CLEAR_LINE)
        self.note(f"{step.name}: {step.told()}")

    def _tick(self, step: TimedStep, done: threading.Event) -> None:
        while not done.wait(_REFRESHED_EVERY):
            line = f"{step.name}: {step.seconds:.0f} s{self._tasks()}"
            self._write(f"{_CLEAR_LINE}{printable(line)}")

    def _tasks(self) -> str:
        if self._context is None:
            return ""
        tracker = self._context.statusTracker()
        stages: list[Any] = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
        total = sum(stage.numTasks for stage in stages if stage)
        ended = sum(stage.numCompletedTasks for stage in stages if stage)
        return f", {ended:,} of {total:,} tasks" if total else ""


class TimedStep:
    """A step that runs. ``lines`` is how many lines of the log it has read, if it reads any.

    ``name`` may be made more precise until it ends.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: int | None = None
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self._began

    def told(self) -> str:
        """Return what to say of it at its end."""
        seconds = self.seconds
        if self.lines is None:
            return f"{seconds:.1f} s"
        rate = self.lines / max(seconds, 0.001)
        return f"{seconds:.1f} s, {self.lines:,} lines, {rate:,.0f} lines/s"
