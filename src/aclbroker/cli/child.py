"""A command that runs beside this process, and the signals that are meant for it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Final

_FORWARDED: Final = (signal.SIGTERM, signal.SIGHUP)
_OF_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT)
_BY_SIGNAL: Final = 128


class Child:
    """Runs a command, inside a ``with`` in which no signal ends this process before its work.

    SIGTERM and SIGHUP go on to the command; SIGINT and SIGQUIT do not, since a terminal sends them
    to the command as well. A signal before the command has begun keeps it from that. What is
    ignored stays ignored, by the command, too: ``nohup`` wants that.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}
        self._came: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Child:
        # A handler, other than SIG_IGN, is not inherited by the command.
        for number in (*_FORWARDED, *_OF_TERMINAL):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._take)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def run(self, words: Sequence[str], environment: Mapping[str, str]) -> int:
        """Return the command's exit status, as a shell does; OSError if it cannot start."""
        if self._came:
            return _BY_SIGNAL + self._came[0]
        process = subprocess.Popen(words, env=environment)  # noqa: S603 # it is the user's
        self._process = process
        for number in self._came:
            self._forward(process, number)
        status = process.wait()
        return status if status >= 0 else _BY_SIGNAL - status

    def _take(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._came.append(number)
        else:
            self._forward(self._process, number)

    @staticmethod
    def _forward(process: subprocess.Popen[bytes], number: int) -> None:
        if number in _FORWARDED:
            process.send_signal(number)
