"""Default signal handlers for the programs that tests start, even if the tests ignore signals.

A shell gives its background jobs an ignored SIGINT, and nohup an ignored SIGHUP. A program inherits
ignored signals, so it would ignore those that a test sends. It does not inherit handlers: exec
replaces these with the defaults.
"""

from __future__ import annotations

import signal
from typing import Any, Final

_SENT_BY_TESTS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""SIGPIPE is missing here, because Python ignores it, and `subprocess` restores its default."""


def handle_ignored_signals() -> None:
    """Replace each ignored signal by a handler that does nothing, so that programs get defaults."""
    for number in _SENT_BY_TESTS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _do_nothing)


def _do_nothing(*_told: Any) -> None:
    """Ignore a signal."""
