"""What SQLite leaves unread in the write-ahead log (WAL) of a file, without saying so.

SQLite takes a WAL up to the last transaction whose frames all have their checksums. What comes
behind a damaged frame is passed over, as if it had never been committed; a WAL whose header is
damaged is passed over as a whole. The formats are those of https://sqlite.org/walformat.html.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_MAGIC: Final = {0x377F0682: "<", 0x377F0683: ">"}
_MX_FRAME: Final = 16
"""Where the WAL index has the number of the last frame that SQLite reads, as a native integer."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What is behind the transactions that SQLite takes from a WAL."""

    is_empty: bool
    """There is no WAL, or nothing in it."""

    frames: int = 0
    """Frames of this WAL, and not of an earlier use of its file; 1 if the header is damaged."""

    commits: int = 0
    """Those among them that end a transaction."""


def is_empty(path: Path) -> bool:
    """Return whether a file has no WAL, or none with anything in it."""
    log = Path(f"{path}-wal")
    return not log.exists() or not log.stat().st_size


@contextmanager
def index(path: Path) -> Iterator[int]:
    """Open the WAL index of a file, ``-shm``, and close it again when the caller is done.

    To close it takes SQLite's locks from the process, as POSIX has it. So the caller must close its
    connection to the file before it leaves the block.
    """
    descriptor = os.open(f"{path}-shm", os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def frames_read(descriptor: int) -> int:
    """Return how many frames SQLite reads, in the transaction that a connection has begun."""
    return int(struct.unpack("=I", os.pread(descriptor, 4, _MX_FRAME))[0])


def unread(path: Path, frames_read: int) -> Unread:
    """Return what the WAL of a file has behind the frames that SQLite reads."""
    if is_empty(path):
        return Unread(is_empty=True)
    descriptor = os.open(f"{path}-wal", os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        header = os.pread(descriptor, _HEADER, 0)
        if not _is_valid(header):
            return Unread(is_empty=False, frames=1)
        page_size, salts = int.from_bytes(header[8:12]), header[16:24]
        return _behind(descriptor, size, page_size, salts, frames_read)
    finally:
        os.close(descriptor)


def _behind(descriptor: int, size: int, page_size: int, salts: bytes, first: int) -> Unread:
    frames = commits = 0
    step = _FRAME_HEADER + page_size
    for offset in range(_HEADER + first * step, size, step):
        header = os.pread(descriptor, _FRAME_HEADER, offset)
        found = header[8:16]
        # An earlier use of the file had another number in the first half, and in the second one
        # that is random. Where only one of them differs, that one is damaged.
        if found[:4] == salts[:4] or found[4:] == salts[4:]:
            frames += 1
            commits += header[4:8] != bytes(4)
    return Unread(is_empty=False, frames=frames, commits=commits)


def _is_valid(header: bytes) -> bool:
    if len(header) < _HEADER:
        return False
    order = _MAGIC.get(int.from_bytes(header[:4]))
    if order is None:
        return False
    first = second = 0
    words = struct.unpack(f"{order}6I", header[:24])
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second) == header[24:32]
