"""Lines on their way to a descriptor, which a reader may have let fill up: a thread writes them.

The event loop must not wait for whoever reads the log. A non-blocking descriptor would do as well,
but that is a property of what the descriptor refers to, such as the terminal of the process that
started this one, and would change it for all who share it. A file has no reader to wait for. It is
written at once, so that a line is in it before the client that caused it is answered.
"""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from typing import Final

from aclbroker.broker.observability.line_lock import LineLock

MOST_WAITING: Final = 4 * 1024 * 1024
"""How many bytes of lines may wait to be written; more are lost, and counted."""

_RETRY_SECONDS: Final = 1.0


class LogWriter:
    """Writes lines to a descriptor in their order: to a file at once, else from a thread.

    While more than ``most_waiting`` bytes wait, or none can be written, lines are lost. ``notice``
    makes the line, without its end, that tells how many, which is written in their place. Other
    processes that write to the descriptor have the same ``lock``.
    """

    def __init__(
        self,
        descriptor: int,
        notice: Callable[[int], bytes],
        most_waiting: int = MOST_WAITING,
        lock: LineLock | None = None,
    ) -> None:
        self._descriptor = descriptor
        self._notice = notice
        self._most_waiting = most_waiting
        self._lock = lock
        self._changed = threading.Condition()
        # A number stands where so many lines were lost.
        self._waiting: list[bytes | int] = []
        self._size = 0
        self._lost = 0
        self._told = 0
        self._is_torn = False
        self._is_idle = True
        self._is_closing = False
        self._thread: threading.Thread | None = None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            # At exit nobody waits for a daemon, which may be stuck for good.
            self._thread = threading.Thread(target=self._work, name="aclbroker-log", daemon=True)
            self._thread.start()

    @property
    def lost(self) -> int:
        """How many lines were lost so far."""
        return self._lost

    @property
    def is_losing(self) -> bool:
        """Whether lines were lost of which no notice could be written yet."""
        return self._lost > self._told

    def write(self, lines: Iterable[bytes]) -> None:
        """Have finished lines written; those are lost for which there is no room."""
        with self._changed:
            for line in lines:
                # Behind one that is lost all are: one notice stands in the place of all.
                is_behind_loss = self._size and isinstance(self._waiting[-1], int)
                is_full = self._size + len(line) >= self._most_waiting
                if self._thread is not None and (is_behind_loss or is_full):
                    self._lose()
                else:
                    self._waiting.append(line)
                    self._size += len(line) + 1
            if self._thread is None:
                self._write_out(self._all_waiting())
            elif self._is_idle:
                self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Write what waits, for at most so many seconds; what comes later is lost."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)

    def _lose(self) -> None:
        self._lost += 1
        if self._waiting and isinstance(self._waiting[-1], int):
            self._waiting[-1] += 1
        else:
            self._waiting.append(1)

    def _work(self) -> None:
        while taken := self._taken():
            if not self._write_out(taken) and self._is_closing:
                return

    def _taken(self) -> list[bytes | int]:
        """Wait for lines and take all; nothing at the end."""
        with self._changed:
            self._is_idle = True
            while not self._size and not self._is_closing:
                # What could not be written is told of again and again, until that can be.
                if not self._changed.wait(_RETRY_SECONDS if self._waiting else None):
                    break
            self._is_idle = False
            return self._all_waiting()

    def _all_waiting(self) -> list[bytes | int]:
        taken, self._waiting, self._size = self._waiting, [], 0
        return taken

    def _write_out(self, taken: list[bytes | int]) -> bool:
        """Write what was taken; false if not all of it could be, which then counts as lost."""
        written = self._append(
            [self._notice(each) if isinstance(each, int) else each for each in taken]
        )
        unwritten = taken[written:]
        with self._changed:
            self._told += sum(each for each in taken[:written] if isinstance(each, int))
            if unwritten:
                self._lost += sum(isinstance(each, bytes) for each in unwritten)
                gap = sum(each if isinstance(each, int) else 1 for each in unwritten)
                self._waiting.insert(0, gap)
        return not unwritten

    def _append(self, lines: Sequence[bytes]) -> int:
        """Write lines; return how many of them were written whole."""
        if self._lock is None:
            return self._append_alone(lines)
        with self._lock as is_torn:
            self._is_torn = is_torn
            whole = self._append_alone(lines)
            if not self._is_torn:
                self._lock.is_whole()
            return whole

    def _append_alone(self, lines: Sequence[bytes]) -> int:
        begun = b"\n" if self._is_torn else b""
        data = memoryview(begun + b"".join(line + b"\n" for line in lines))
        written = 0
        try:
            while written < len(data):
                written += self._write(data[written:])
        except OSError:
            ends = accumulate((len(line) + 1 for line in lines), initial=len(begun))
            whole = sum(end <= written for end in islice(ends, 1, None))
            self._is_torn = written > 0 and data[written - 1] != ord("\n")
            return whole
        self._is_torn = False
        return len(lines)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            # Somebody else made it non-blocking.
            select.select([], [self._descriptor], [])
            return 0
