"""Lines of a log gone through from left to right, all of them at a time.

Lines of one form have the same parts one after the other: fixed texts, texts of which there are
few, and free ones up to a byte that ends them. A `Walk` stands at one place in each line, and each
of its steps takes one part of all lines. A line that does not have the part is left out from there
on. In the others no byte is passed over: what is not compared with a text is handed to the caller.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from aclbroker.pipeline.ingest.memory import Codes, Flags, Lines, Places, Spans
from aclbroker.pipeline.ingest.words import Words


class Walk:
    """Stands ``at`` one place in each line; ``good`` tells in which all steps were possible."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.at: Places = lines.starts
        self.good: Flags = np.ones(len(lines.starts), bool)

    def _go(self, places: Places, good: Flags | None = None) -> None:
        if good is not None:
            self.good &= good
        self.good &= places <= self.lines.ends
        self.at = np.minimum(places, self.lines.ends)

    def skip(self, size: int, where: Flags | None = None) -> Places:
        """Pass so many bytes over. Return where they begin."""
        begin = self.at
        self._go(begin + size if where is None else np.where(where, begin + size, begin))
        return begin

    def text(self, text: bytes, where: Flags | None = None) -> None:
        """Take a fixed text; where a condition is given, in the lines only where it holds."""
        if where is None:
            self._go(self.at + len(text), self.lines.have(self.at, text))
        elif where.any():
            here = self.lines.have(self.at, text)
            self._go(np.where(where, self.at + len(text), self.at), here | ~where)

    def back(self, size: int, where: Flags) -> None:
        """Go so many bytes back in the lines where a condition holds."""
        self.at = np.where(where, np.maximum(self.at - size, self.lines.starts), self.at)

    def words(self, words: Words, where: Flags | None = None) -> Codes:
        """Take one of few texts. Return which, -1 in lines where there is none."""
        wanted = self.good if where is None else self.good & where
        rows = np.flatnonzero(wanted)
        found = np.full(len(self.at), -1, np.int32)
        places = self.at.copy()
        found[rows], places[rows] = words.numbers(self.lines, self.at[rows], self.lines.ends[rows])
        self._go(places, (found >= 0) | ~wanted)
        return found

    def until(self, text: bytes, where: Flags | None = None, tries: int = 1) -> Spans:
        """Take what stands before a text, up to the first place where it may begin.

        If it does not stand there, up to so many such places are tried. That it stands there is
        for the next step to find out.
        """
        begin = self.at
        places = self.lines.first(begin, lambda codes: codes == text[0])
        is_doubtful = np.zeros(len(places), bool)
        for _ in range(tries - 1):
            places = np.minimum(places, self.lines.ends)
            wanted = self.good if where is None else self.good & where
            missing = np.flatnonzero(wanted & ~self.lines.have(places, text))
            if not len(missing):
                break
            is_doubtful[missing] = True
            after = np.minimum(places[missing] + 1, self.lines.ends[missing])
            places[missing] = self.lines.first(after, lambda codes: codes == text[0])
        if where is not None:
            places = np.where(where, places, begin)
        self._go(places)
        return Spans(begin, self.at, is_doubtful)

    def digits(self, where: Flags | None = None) -> Spans:
        """Take digits: one at least, and no zero before others."""
        begin = self.at
        zero = np.uint8(ord("0"))
        places = self.lines.first(begin, lambda codes: codes - zero > _NINE)
        size = places - begin
        is_zero = self.lines.codes[begin] == zero
        is_number = (size > 0) & ((size == 1) | ~is_zero) & (size <= _MOST_DIGITS)
        if where is not None:
            places, is_number = np.where(where, places, begin), is_number | ~where
        self._go(places, is_number)
        return Spans(begin, self.at, np.zeros(len(begin), bool))

    def end(self) -> None:
        """Leave the lines out that do not end here."""
        self.good &= self.at == self.lines.ends


_NINE: Final = np.uint8(9)
_MOST_DIGITS: Final = 18
