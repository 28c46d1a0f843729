"""A bar on a terminal that says how far a long work is."""

from __future__ import annotations

import sys
from typing import Final

_WIDTH: Final = 40


class Progress:
    """The bar of a work of so many parts, on standard error; nothing where that is no terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._is_shown = sys.stderr.isatty() and total > 0

    def add(self, count: int) -> None:
        """Tell that some more are done."""
        self._done += count
        if self._is_shown:
            part = self._done * _WIDTH // self._total
            bar = "#" * part + "-" * (_WIDTH - part)
            sys.stderr.write(f"\r[{bar}] {self._done:,} of {self._total:,}")
            sys.stderr.flush()

    def end(self) -> None:
        """Remove the bar, so that something else can be told."""
        if self._is_shown and self._done:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
