"""The text of log files, as workers read it themselves: a piece of a file at a time.

Text that Spark reads costs more on its way to Python than to parse it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.pipeline.ingest.memory import REACH
from aclbroker.pipeline.ingest.texts import MovedError, Prefix, Text, opened

_AT_ONCE: Final = 8 << 20
_BLOCK: Final = 1 << 20
_LONGEST_LINE: Final = 256 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class LineTooLongError(ValueError):
    """A line has more bytes than fit into memory."""


def read_lines(
    path: str, start: int, end: int | None, prefix: Prefix | None = None
) -> Iterator[pa.Array]:
    r"""Yield the lines of a local file that begin at byte ``start`` or later, and before ``end``.

    They are arrays of binary, without the ``\n`` behind each line; the bytes are those of the text,
    decompressed. With a ``prefix`` the file is read that begins so, also if it was renamed within
    its directory.

    Raises OSError if it cannot be read, MovedError if nothing begins so, or what was read is no
    longer all there at the end, and LineTooLongError.
    """
    try:
        with opened(path, prefix) as text:
            reader = _Reader(text.stream(max(start - 1, 0)), max(start - 1, 0))
            if start:
                # A line that holds the byte before ``start`` belongs to the piece before.
                reader.skip_line()
            yield from _arrays(reader, end, is_begin=start == 0)
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

    def skip_line(self) -> None:
        """Go on behind the next line feed."""
        while data := self.read(_BLOCK):
            end = data.find(b"\n") + 1
            if end:
                self._ahead = data[end:] + self._ahead
                self.position -= len(data) - end
                return


def _arrays(reader: _Reader, end: int | None, *, is_begin: bool) -> Iterator[pa.Array]:
    for parts in _whole_lines(reader, end):
        # As Spark's own reader does.
        if is_begin:
            parts = [b"".join(parts).removeprefix(_BYTE_ORDER_MARK)]
            is_begin = False
        if any(map(len, parts)):
            yield _split(parts)


def _whole_lines(reader: _Reader, end: int | None) -> Iterator[list[Any]]:
    """Yield the bytes up to ``end``, or all, and those of the line that it lies in, in parts."""
    rest = b""
    while end is None or reader.position < end:
        data = reader.read(_AT_ONCE if end is None else min(_AT_ONCE, end - reader.position))
        if not data:
            break
        cut = data.rfind(b"\n") + 1
        if cut:
            yield [rest, memoryview(data)[:cut]]
            rest = data[cut:]
        else:
            rest = _longer(rest, data)
    if rest:
        yield [_longer(rest, _rest_of_line(reader))]


def _rest_of_line(reader: _Reader) -> bytes:
    found = b""
    while data := reader.read(_BLOCK):
        end = data.find(b"\n") + 1
        found = _longer(found, data[:end] if end else data)
        if end:
            break
    return found


def _longer(line: bytes, rest: bytes) -> bytes:
    if len(line) + len(rest) > _LONGEST_LINE:
        raise LineTooLongError(f"a line of the log has more than {_LONGEST_LINE:,} bytes")
    return line + rest


def _split(parts: list[Any]) -> pa.Array:
    """Return the lines of a text that is given in parts, with the bytes behind that `Lines` has."""
    line_feed = b"" if parts[-1][-1:] == b"\n" else b"\n"
    text = b"".join([*parts, line_feed, bytes(REACH + 1)])
    codes = np.frombuffer(text, np.uint8)[: -REACH - 1]
    # Not all at once: the arrays for a part of the text fit into the processor's cache.
    found = [
        np.flatnonzero(codes[first : first + _BLOCK] == _LINE_FEED) + (first + 1)
        for first in range(0, len(codes), _BLOCK)
    ]
    offsets = np.concatenate([np.zeros(1, np.int64), *found, [len(text)]]).astype(np.int32)
    buffers: list[Any] = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    ended = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return pc.binary_slice(ended, 0, -1)[:-1]


_LINE_FEED: Final = ord("\n")
