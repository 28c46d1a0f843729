"""Who keeps a store file to itself, and the mark that says how far the file had come there.

Two locks are held: one on ``FILE.lock``, and one on the file itself, for the case that somebody
removes ``FILE.lock``. Both are flock's, which on Linux have nothing to do with the POSIX locks that
SQLite uses; where they would get in each other's way only the first is taken.

The mark is the number of the last transaction that was stored, in ``FILE.lock``. It is written
after each of them without being synced, which costs next to nothing: it outlives a killed broker,
and after a power cut it may be too small, never too great. So if it is greater than what the file
has, the file, or its write-ahead log, has lost transactions.
"""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

_MARK_BYTES = 128


class Mark(NamedTuple):
    """Up to which transaction a store had been written in this place."""

    cluster_id: str
    transactions: int


class StoreLocks:
    """The locks of one store file, by its path. Methods raise `BlockingIOError` if it is in use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: int | None = None
        self._file: int | None = None

    @property
    def are_held(self) -> bool:
        """Whether `take` was called, and `release` not yet."""
        return self._lock is not None

    def take(self) -> None:
        """Lock ``FILE.lock``, a new one if there is none."""
        self._lock = _locked(os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600))

    def take_file(self) -> None:
        """Lock the file itself, which must exist.

        Its descriptor stays open until `release`: to close any descriptor of a file takes SQLite's
        own locks of it from the process.
        """
        descriptor = os.open(self._path, os.O_RDWR)
        if sys.platform == "linux":
            self._file = _locked(descriptor)
        else:
            self._file = descriptor

    def release(self) -> None:
        """Unlock both. No connection to the file may be open any more."""
        for descriptor in (self._file, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._file = self._lock = None

    def read_mark(self) -> Mark | None:
        """Return the mark, None if there is none, or none that can be read."""
        if self._lock is None:
            return None
        return read_mark(self._path)

    def write_mark(self, mark: Mark) -> None:
        """Replace the mark. That it cannot be written is no error: then it stays smaller."""
        if self._lock is not None:
            text = f"{mark.cluster_id} {mark.transactions:020}"
            with suppress(OSError):
                os.pwrite(self._lock, f"{text} {crc32(text.encode()):08x}\n".encode(), 0)


def read_mark(path: Path) -> Mark | None:
    """Return the mark beside a file, None if there is none, or none that can be read."""
    try:
        text = Path(f"{path}.lock").read_bytes()[:_MARK_BYTES].decode()
        cluster_id, transactions, checksum = text.split()
        if int(checksum, 16) == crc32(f"{cluster_id} {transactions}".encode()):
            return Mark(cluster_id, int(transactions))
    except (OSError, ValueError):
        pass
    return None


def _locked(descriptor: int) -> int:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
