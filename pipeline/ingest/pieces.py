"""The text of log files, as workers read it themselves: a piece of a file at a time.

Text that Spark reads costs more on its way to Python than to parse it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
"""What a compressed file's name ends in, and what pyarrow calls that."""

_AT_ONCE: Final = 16 << 20
_BLOCK: Final = 1 << 20
_LONGEST_LINE: Final = 256 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class LineTooLongError(ValueError):
    """A line has more bytes than fit into memory."""


def read_lines(path: str, start: int, end: int) -> Iterator[pa.Array]:
    r"""Yield the lines of a local file that begin at byte ``start`` or later, and before ``end``.

    They are arrays of binary, without the ``\n`` behind each line. A compressed file is read as a
    whole. Raises OSError if it cannot be read, and LineTooLongError.
    """
    try:
        yield from _read(path, start, end)
    except (OSError, LineTooLongError) as error:
        raise type(error)(f"{path}: {error}") from error


def _read(path: str, start: int, end: int) -> Iterator[pa.Array]:
    compression = next((how for end, how in COMPRESSIONS.items() if path.endswith(end)), None)
    if compression is not None:
        with pa.input_stream(path, compression=compression) as stream:
            yield from _arrays(stream, None, is_begin=True)
        return
    with open(path, "rb", buffering=0) as file:
        if start:
            # A line that holds the byte before ``start`` belongs to the piece before.
            begin = file.seek(start - 1)
            start = file.seek(begin + len(_rest_of_line(file)))
        yield from _arrays(file, end - start, is_begin=start == 0)


def _arrays(file: IO[bytes], wanted: int | None, *, is_begin: bool) -> Iterator[pa.Array]:
    for text in _whole_lines(file, wanted):
        # As Spark's own reader does.
        begin = len(_BYTE_ORDER_MARK) if is_begin and text.startswith(_BYTE_ORDER_MARK) else 0
        is_begin = False
        if len(text) > begin:
            yield _split(text[begin:])


def _whole_lines(file: IO[bytes], wanted: int | None) -> Iterator[bytes]:
    """Yield the next ``wanted`` bytes, or all, up to the end of the line that they end in."""
    rest = b""
    while wanted is None or wanted > 0:
        data = file.read(_AT_ONCE if wanted is None else min(_AT_ONCE, wanted))
        if not data:
            break
        if wanted is not None:
            wanted -= len(data)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut]
            rest = data[cut:]
        else:
            rest = _longer(rest, data)
    if rest:
        yield _longer(rest, _rest_of_line(file))


def _rest_of_line(file: IO[bytes]) -> bytes:
    found = b""
    while data := file.read(_BLOCK):
        end = data.find(b"\n") + 1
        found = _longer(found, data[:end] if end else data)
        if end:
            break
    return found


def _longer(line: bytes, rest: bytes) -> bytes:
    if len(line) + len(rest) > _LONGEST_LINE:
        raise LineTooLongError(f"a line of the log has more than {_LONGEST_LINE:,} bytes")
    return line + rest


def _split(text: bytes) -> pa.Array:
    """Return the lines of a text."""
    if not text.endswith(b"\n"):
        text += b"\n"
    codes = np.frombuffer(text, np.uint8)
    # Not all at once: the arrays for a part of the text fit into the processor's cache.
    found = [
        np.flatnonzero(codes[first : first + _BLOCK] == _LINE_FEED) + (first + 1)
        for first in range(0, len(codes), _BLOCK)
    ]
    offsets = np.concatenate([np.zeros(1, np.int64), *found]).astype(np.int32)
    buffers: list[Any] = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    ended = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return pc.binary_slice(ended, 0, -1)


_LINE_FEED: Final = ord("\n")
