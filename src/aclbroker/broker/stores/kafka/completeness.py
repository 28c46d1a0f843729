"""From which position on a topic still tells all that it once said.

Compaction removes a message when a later one has the same key. So a message that is missing does
no harm to what is known of a position at which the later one is visible. Up to where Kafka has
compacted it tells nobody, but it shows:

- Each offset is that of a message, or of the mark that ends a transaction. Where more are missing
  than transactions have marks, messages may have been removed; where none are, none was.
- Of a key one message alone is left where it was compacted. So behind the second message of any
  key nothing was.
- Whatever removes something was there once, and what it removes came before it.

What can also be the reason for a gap (a transaction that ended before its first message, a mark
that was written twice) is taken for a removal: then less is known than could be.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple


class Written:
    """The offsets of the messages of a topic, also of those that were never committed."""

    def __init__(self, begin: int) -> None:
        self.begin = begin
        """The first offset that the topic has."""

        self.end = begin
        """The offset behind all that was there."""

        self.offsets = array("q")
        self.last: dict[str, int] = {}
        """The offset of the last message of each transaction."""

        self.sizes: Counter[str] = Counter()
        """How many messages each transaction has left."""

        self._begins = bytearray()

    def add(self, offset: int, transaction: str | None) -> None:
        """Take the next message, with the id of its transaction, None without one."""
        self.offsets.append(offset)
        self._begins.append(transaction is not None and transaction not in self.last)
        if transaction is not None:
            self.last[transaction] = offset
            self.sizes[transaction] += 1
        self.end = offset + 1

    def up_to(self, end: int) -> array[int]:
        """Return the offsets before one."""
        return array("q", (each for each in self.offsets if each < end))

    def last_gap(self, end: int) -> int | None:
        """Return the last offset before an end at which a message may be missing, None if none.

        Each transaction has one mark, which comes somewhere behind its first message.
        """
        gap, marks, expected = None, 0, self.begin
        unsure: int | None = None
        for offset, begins in zip(self.offsets, self._begins, strict=True):
            if offset >= end:
                break
            gap, unsure, marks = _passed(offset - expected, offset - 1, marks, (gap, unsure))
            marks += begins
            expected = offset + 1
        gap, unsure, marks = _passed(end - expected, end - 1, marks, (gap, unsure))
        # Marks that are still to come do not tell what is missing instead.
        return gap if not marks or unsure is None else unsure


def _passed(
    hidden: int, last: int, marks: int, found: tuple[int | None, int | None]
) -> tuple[int | None, int | None, int]:
    """Take some offsets without messages, up to the last of them; ``marks`` are still to come.

    Return the last gap, the last offset that is a mark or one, and the marks that are left.
    """
    gap, unsure = found
    if not hidden:
        return gap, unsure, marks
    if hidden > marks:
        return last, None, 0
    return gap, (last if hidden < marks else None), marks - hidden


class Said(NamedTuple):
    """What of a committed message tells about completeness."""

    offset: int
    position: int
    """From which on it is visible: behind the last message of its transaction."""

    key: bytes
    is_removal: bool
    is_of_part: bool
    """Whether other messages of its transaction are missing."""


def horizon(said: Collection[Said], written: Written, end: int) -> int:
    """Return the position from which on, up to an end, all is known; 0 if it always is.

    ``said`` are the committed messages before the end, in the order of their offsets.
    """
    gap = written.last_gap(end)
    if gap is None:
        return 0
    keys: set[bytes] = set()
    second, orphan, last = None, 0, gap
    for each in said:
        last = max(last, each.offset)
        if each.key not in keys:
            keys.add(each.key)
            # What it removed is gone.
            orphan = each.offset if each.is_removal else orphan
        elif second is None:
            second = each.offset
    found = last if second is None else min(last, max(second, gap, orphan))
    # What replaces something else is visible only when its transaction is, of which it may be
    # one of those that are missing.
    replacing = (each for each in said if each.offset <= found or each.is_of_part)
    return max([found + 1, *(each.position for each in replacing)])
