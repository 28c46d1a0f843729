"""Who uses a store file, and the mark that says how far the file had come there.

Whoever uses a file has two locks, on ``FILE.lock`` and on the file itself: the second for the case
that somebody removes ``FILE.lock``. Brokers share them. Alone is who opens a file that nobody uses,
until it is checked, made or upgraded, and who puts another file in its place; so were brokers up to
version 5 of the schema all the time, and are kept out as they keep others out. Both locks are
flock's, which on Linux have nothing to do with the POSIX locks that SQLite uses; where they would
get in each other's way only the first is taken.

The mark is the number of the last transaction that was stored, in ``FILE.lock``. It is written
after each of them without being synced, which costs next to nothing: it outlives a killed broker,
and after a power cut it may be too small, never too great. It never goes back, though who commits
first may be the last to write it: else those who follow would not notice what came later.

So if it is greater than what the file has, the file, or its write-ahead log, has lost transactions.
And who sees it change knows that another has made a change: to look at it takes a microsecond, and
neither SQLite nor a thread. It is no proof that there was none, since who commits can be killed
before it is written.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from aclbroker.broker.stores.file_systems import network_file_system
from aclbroker.broker.stores.store import StoreError

_MARK_BYTES: Final = 128

_MARKING_S: Final = 0.1
"""How long another process is waited for that writes the mark, which takes it microseconds.

One that was stopped just then is not: the change is stored, and is noticed without a mark, too.
"""

_RETRY_S: Final = 0.001


class Mark(NamedTuple):
    """Up to which transaction a store had been written in this place."""

    cluster_id: str
    transactions: int


@dataclass(slots=True)
class _Held:
    """The locks that this process has of one file, whoever in it uses the file."""

    lock: int
    is_shared: bool
    file: int | None = None
    users: int = 1


# Of a process: to close any descriptor of a file takes SQLite's own locks of it from the whole
# process, so the one that is locked is closed when nobody in the process uses the file any more.
_all_held: Final[dict[Path, _Held]] = {}
_guard: Final = threading.Lock()


class StoreLocks:
    """The locks of one store file, by its path. Methods raise `BlockingIOError` if it is in use.

    ``FILE.lock`` is never opened through a symbolic link: in a directory such as /tmp every user
    can make one that points to a file of this user.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: _Held | None = None
        self._written = b""

    @property
    def are_held(self) -> bool:
        """Whether `take` or `take_alone` has succeeded, and `release` was not called yet."""
        return self._held is not None

    def take(self) -> bool:
        """Lock ``FILE.lock``, a new one if there is none: alone, or else with others.

        Return whether it is alone. Raises `BlockingIOError` if somebody else is.
        """
        with _guard:
            held = _all_held.get(self._path)
            if held is None:
                return self._lock(may_share=True)
            if not held.is_shared:
                raise BlockingIOError
            self._require_file(held)
            held.users += 1
            self._held = held
            return False

    def take_alone(self) -> None:
        """Lock ``FILE.lock``, a new one if there is none, if nobody else uses the file."""
        with _guard:
            if self._path in _all_held:
                raise BlockingIOError
            self._lock(may_share=False)

    def _lock(self, *, may_share: bool) -> bool:
        descriptor = _opened(f"{self._path}.lock", os.O_RDWR | os.O_CREAT)
        is_alone = _locked(descriptor, may_share=may_share)
        self._held = _all_held[self._path] = _Held(descriptor, is_shared=not is_alone)
        return is_alone

    def take_file(self) -> bool:
        """Lock the file itself, which must exist; return whether it is locked for itself alone.

        Its descriptor stays open as long as anybody in the process uses the file: see `_Held`.
        """
        with _guard:
            held = self._existing()
            if held.file is None:
                descriptor = os.open(self._path, os.O_RDWR)
                if sys.platform != "linux":
                    held.file = descriptor
                elif held.is_shared:
                    held.file = _shared(descriptor)
                elif not _locked(descriptor, may_share=True):
                    # Somebody has removed the lock file while others used the store.
                    held.file, held.is_shared = descriptor, True
                    fcntl.flock(held.lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                else:
                    held.file = descriptor
            return not held.is_shared

    def share(self) -> None:
        """Let others use the file as well.

        Raises `BlockingIOError` if somebody has locked it in the moment in between; then nothing of
        what was found before holds any more.
        """
        with _guard:
            held = self._existing()
            for descriptor in (held.lock, held.file):
                if descriptor is not None and (descriptor == held.lock or sys.platform == "linux"):
                    fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            held.is_shared = True
            self._require_file(held)

    def release(self) -> None:
        """Unlock both. No connection to the file may be open any more."""
        with _guard:
            held, self._held = self._held, None
            if held is None:
                return
            held.users -= 1
            if not held.users:
                del _all_held[self._path]
                for descriptor in (held.file, held.lock):
                    if descriptor is not None:
                        os.close(descriptor)

    def read_mark(self) -> Mark | None:
        """Return the mark, None if there is none, or none that can be read."""
        return None if self._held is None else _parsed(self._bytes())

    def write_mark(self, mark: Mark) -> None:
        """Write the mark, unless another process has left a later one.

        That it cannot be written is no error: then it stays smaller.
        """
        held = self._held
        if held is not None:
            with suppress(OSError), _guard, _marking(held):
                found = self.read_mark()
                is_same = found is not None and found.cluster_id == mark.cluster_id
                if found is None or not is_same or found.transactions < mark.transactions:
                    self.replace_mark(mark)

    def replace_mark(self, mark: Mark) -> None:
        """Write the mark, also in place of a later one: for who has the file alone."""
        held = self._held
        if held is not None:
            text = f"{mark.cluster_id} {mark.transactions:020}"
            written = f"{text} {crc32(text.encode()):08x}\n".encode()
            with suppress(OSError):
                os.pwrite(held.lock, written, 0)
                self._written = written

    def others_mark(self) -> bytes:
        """Return the mark as it stands there if not this object has written it; else nothing."""
        found = b"" if self._held is None else self._bytes()
        return b"" if found == self._written else found

    def _require_file(self, held: _Held) -> None:
        """Raise `BlockingIOError` if the locked file is not the one that is at the path."""
        if held.file is not None:
            locked, found = os.fstat(held.file), os.stat(self._path)
            if (locked.st_dev, locked.st_ino) != (found.st_dev, found.st_ino):
                raise BlockingIOError

    def _bytes(self) -> bytes:
        with suppress(OSError):
            return os.pread(self._existing().lock, _MARK_BYTES, 0)
        return b""

    def _existing(self) -> _Held:
        if self._held is None:
            raise OSError(f"no lock of {self._path} is held")
        return self._held


@contextmanager
def keep_out(path: Path) -> Iterator[bool]:
    """Keep brokers from starting with a file, which is not changed; give whether one uses it.

    On Linux that holds without FILE.lock, too. No connection to the file may be open in this
    process before or after: see `_Held`.
    """
    path = Path(os.path.realpath(path))
    if path in _all_held:
        yield True
        return
    names = [f"{path}.lock"]
    if sys.platform == "linux" and network_file_system(path) is None:
        names.append(str(path))
    descriptors: list[int] = []
    try:
        for name in names:
            with suppress(FileNotFoundError):
                descriptors.append(_opened(name, os.O_RDONLY))
        yield not all(map(_is_free, descriptors))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _opened(name: str, flags: int) -> int:
    """Open a file of a store; raises `StoreError` for a symbolic link."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(linked(name)) from None
        raise


def linked(name: str) -> str:
    """Return the message that refuses a symbolic link beside a store."""
    return f"{name} is a symbolic link: the broker would write into another file. Remove the link"


def _is_free(descriptor: int) -> bool:
    """Lock a descriptor, and return True, if nobody has a lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_mark(path: Path) -> Mark | None:
    """Return the mark beside a file, None if there is none, or none that can be read."""
    try:
        return _parsed(Path(f"{path}.lock").read_bytes()[:_MARK_BYTES])
    except OSError:
        return None


def _parsed(found: bytes) -> Mark | None:
    try:
        cluster_id, transactions, checksum = found.decode().split()
        if int(checksum, 16) == crc32(f"{cluster_id} {transactions}".encode()):
            return Mark(cluster_id, int(transactions))
    except ValueError:
        pass
    return None


@contextmanager
def _marking(held: _Held) -> Iterator[None]:
    """Keep other processes from writing the mark; raises `BlockingIOError` if one does for long.

    By a POSIX lock, with which the flocks of the same file have nothing to do on Linux. Elsewhere
    they may, as they may on a network file system, where nobody shares a file.
    """
    if not held.is_shared or sys.platform != "linux":
        yield
        return
    deadline = time.monotonic() + _MARKING_S
    while True:
        try:
            fcntl.lockf(held.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY_S)
    try:
        yield
    finally:
        fcntl.lockf(held.lock, fcntl.LOCK_UN)


def _locked(descriptor: int, *, may_share: bool) -> bool:
    """Lock a descriptor, or close it and raise; return whether nobody else has a lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if may_share:
            _shared(descriptor)
            return False
        os.close(descriptor)
        raise
    except BaseException:
        os.close(descriptor)
        raise
    return True


def _shared(descriptor: int) -> int:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
