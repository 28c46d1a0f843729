"""The text of log files, as workers read it themselves: a piece of a file at a time.

Text that Spark reads costs more on its way to Python than to parse it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aclbroker.pipeline.ingest.memory import BLOCK, REACH, Lines, places_of
from aclbroker.pipeline.ingest.texts import MovedError, Prefix, Text, opened

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

_AT_ONCE: Final = 16 << 20
_LONGEST_LINE: Final = 256 << 20
_BEHIND: Final = REACH + 1
"""How much room there is behind a text: for a line feed, and for the bytes that `Lines` has."""
_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark."""


class LineTooLongError(ValueError):
    """A line has more bytes than fit into memory."""


def read_lines(
    path: str, start: int, end: int | None, prefix: Prefix | None = None
) -> Iterator[Lines]:
    r"""Yield the lines of a local file that begin at byte ``start`` or later, and before ``end``.

    They are without the ``\n`` behind each; the bytes are those of the text, decompressed. With a
    ``prefix`` the file is read that begins so, also if it was renamed within its directory.

    Raises OSError if it cannot be read, MovedError if nothing begins so, or what was read is no
    longer all there at the end, and LineTooLongError.
    """
    try:
        with opened(path, prefix) as text:
            reader = _Reader(text.stream(max(start - 1, 0)), max(start - 1, 0))
            if start:
                # A line that holds the byte before ``start`` belongs to the piece before.
                reader.skip_line()
            yield from _lines(reader, end, is_begin=start == 0)
            if prefix is not None:
                _still_there(text, prefix, reader, end)
    except MovedError:
        raise
    except (OSError, LineTooLongError) as error:
        raise type(error)(f"{path}: {error}") from error


def _still_there(text: Text, prefix: Prefix, reader: _Reader, end: int | None) -> None:
    """Raise MovedError if a file was cut off, or written anew, while it was read."""
    if reader.position < (end or 0) or not text.begins_with(prefix):
        raise MovedError(f"{text.path} was cut off while it was read")


class _Reader:
    """A stream of which a line can be skipped; ``position`` is the byte that comes next."""

    def __init__(self, stream: Any, position: int) -> None:
        self._stream = stream
        self._ahead = b""
        self.position = position

    def read(self, size: int) -> bytes:
        """Return the next bytes, as many at most; none at the end."""
        found: bytes = self._ahead[:size] or self._stream.read(size)
        self._ahead = self._ahead[size:]
        self.position += len(found)
        return found

    def fill(self, place: memoryview) -> int:
        """Put the next bytes somewhere, as many at most as fit; return how many, 0 at the end."""
        size = len(self._ahead[: len(place)])
        if size:
            place[:size] = self._ahead[:size]
            self._ahead = self._ahead[size:]
        else:
            size = self._stream.readinto(place)
        self.position += size
        return size

    def skip_line(self) -> None:
        """Go on behind the next line feed."""
        while data := self.read(BLOCK):
            end = data.find(b"\n") + 1
            if end:
                self._ahead = data[end:] + self._ahead
                self.position -= len(data) - end
                return


def _lines(reader: _Reader, end: int | None, *, is_begin: bool) -> Iterator[Lines]:
    for text, size, ends in _whole_lines(reader, end):
        # As Spark's own reader does.
        has_mark = is_begin and text[:size][: len(_MARK)].tobytes() == _MARK
        first = len(_MARK) if has_mark else 0
        is_begin = False
        if first < size:
            yield _split(text, first, size, ends)


def _whole_lines(reader: _Reader, end: int | None) -> Iterator[tuple[Bytes, int, Places]]:
    """Yield the bytes up to ``end``, or all, and those of the line that it lies in, in parts.

    Each with how many it are, since there is `_BEHIND` more room behind them, and the places behind
    its line feeds.
    """
    rest: Bytes = np.empty(0, np.uint8)
    while end is None or reader.position < end:
        room = _AT_ONCE if end is None else min(_AT_ONCE, end - reader.position)
        text = _with_room(rest, room)
        size, ends = _filled(reader, text, len(rest), len(rest) + room)
        if size == len(rest):
            break
        if len(ends):
            cut = int(ends[-1])
            rest = text[cut:size].copy()
            yield text, cut, ends
        else:
            rest = text[:size]
            _check_length(size)
    if len(rest):
        more = np.frombuffer(_rest_of_line(reader), np.uint8)
        size = len(rest) + len(more)
        _check_length(size)
        text = _with_room(rest, len(more))
        text[len(rest) : size] = more
        is_ended = text[size - 1] == _LINE_FEED
        yield text, size, np.full(int(is_ended), size)


def _filled(reader: _Reader, text: Bytes, start: int, end: int) -> tuple[int, Places]:
    """Read into some bytes of a text, and return up to where, and the places behind line feeds."""
    found: list[Places] = [np.zeros(0, np.int64)]
    place = memoryview(text.data)
    # Line feeds are looked for while what was read is in the processor's cache.
    while start < end and (size := reader.fill(place[start : min(start + BLOCK, end)])):
        are_feeds = text[start : start + size] == _LINE_FEED
        found.append(places_of(are_feeds, _APART) + (start + 1))
        start += size
    return start, np.concatenate(found)


def _with_room(rest: Bytes, room: int) -> Bytes:
    """Return some bytes with so much room behind them, and `_BEHIND` more."""
    text = np.empty(len(rest) + room + _BEHIND, np.uint8)
    text[: len(rest)] = rest
    return text


def _rest_of_line(reader: _Reader) -> bytes:
    found = b""
    while data := reader.read(BLOCK):
        end = data.find(b"\n") + 1
        found = _longer(found, data[:end] if end else data)
        if end:
            break
    return found


def _longer(line: bytes, rest: bytes) -> bytes:
    _check_length(len(line) + len(rest))
    return line + rest


def _check_length(size: int) -> None:
    if size > _LONGEST_LINE:
        raise LineTooLongError(f"a line of the log has more than {_LONGEST_LINE:,} bytes")


def _split(text: Bytes, first: int, size: int, ends: Places) -> Lines:
    """Return the lines of the bytes up to ``size``, behind which there is `_BEHIND` more room.

    ``ends``: the places behind the line feeds; the last line may have none.
    """
    if text[size - 1] != _LINE_FEED:
        text[size] = _LINE_FEED
        size += 1
        ends = np.append(ends, size)
    text[size : size + REACH] = 0
    starts = np.empty_like(ends)
    starts[0], starts[1:] = first, ends[:-1]
    return Lines(text, starts, ends - 1)


_LINE_FEED: Final = ord("\n")
_APART: Final = 64
"""Few lines are shorter."""
