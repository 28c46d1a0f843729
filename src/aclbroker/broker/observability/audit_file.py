"""The file of audit records: those that come together are appended in one write.

It is rotated here (`audit_rotation`), or by others, who rename it and have it opened anew.

While it cannot be written, requests are still answered: the error is logged once, lost lines are
counted, and the file is opened again once a second.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from aclbroker.broker.observability.audit_rotation import Rotation, delete_oldest, rotated_name
from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.observability.logs import get_logger

_RETRY_SECONDS = 1.0
_PROBLEM_SECONDS = 30.0

log = get_logger()


class AuditFile:
    """An append-only file. Raises OSError if it cannot be opened at first.

    ``clock`` returns seconds since the epoch, for `Rotation`. ``lost_lines`` is how many could not
    be written so far. Other processes that write to the file, and rotate it, have the same
    ``lock``.
    """

    def __init__(
        self,
        path: str,
        rotation: Rotation = Rotation(),  # noqa: B008 - immutable
        retry_seconds: float = _RETRY_SECONDS,
        clock: Callable[[], float] = time.time,
        lock: LineLock | None = None,
    ) -> None:
        self._path = path
        self._rotation = rotation
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._lock = lock
        self._retry_at = 0.0
        self._failed_at = 0.0
        self._rotate_at = 0.0
        self._lost = 0  # since it can be written no longer
        self.lost_lines = 0
        self._descriptor: int | None = None
        self._is_torn = False
        with self._alone():
            self._use(_open(path))

    def write(self, lines: Sequence[str]) -> None:
        """Append lines, which have no line breaks; those not written whole are counted as lost."""
        encoded = [f"{line}\n".encode(errors="backslashreplace") for line in lines]
        with self._alone():
            self._follow_others()
            for part in self._parts(encoded):
                self._write_part(part)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from writing."""
        if self._lock is None:
            yield
            return
        with self._lock as is_torn:
            # Whoever left a torn line may have been another, and so may who has ended it.
            self._is_torn = is_torn and self._ends_within_line()
            yield
            if not self._is_torn:
                self._lock.is_whole()

    def _ends_within_line(self) -> bool:
        return self._descriptor is not None and _ends_within_line(self._descriptor)

    def _follow_others(self) -> None:
        """See what other processes have written, and use the file of now if one has rotated it."""
        if self._lock is None or self._descriptor is None or not self._is_regular:
            return
        if any(self._rotation) and not _is_at(self._path, self._descriptor):
            with suppress(OSError):
                descriptor = _open(self._path)
                self.close()
                self._use(descriptor)
                return
        self._size = os.fstat(self._descriptor).st_size

    def _parts(self, lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """Yield the lines in parts, of which each goes into one file, and rotate before the next.

        A line that is longer than a file may be gets a file of its own.
        """
        if self._rotation.period(self._clock()) != self._period:
            self._rotate()
        most = self._rotation.max_bytes
        part: list[bytes] = []
        size = 0
        for line in lines if most else ():
            if self._size + size + len(line) > most and self._size + size:
                if part:
                    yield part
                part, size = [], 0
                self._rotate()
            part.append(line)
            size += len(line)
        yield part if most else lines

    def _write_part(self, lines: Sequence[bytes]) -> None:
        lost = len(lines)
        try:
            if self._descriptor is None:
                self._retry()
            if self._descriptor is not None:
                lost -= self._append(self._descriptor, lines)
        except OSError as error:
            self._fail(error)
        if self._descriptor is None:
            self._lost += lost
            self.lost_lines += lost
        elif self._lost:
            log.warning("audit file is written again", file=self._path, lost_records=self._lost)
            self._lost = 0

    def problem(self) -> str:
        """Return why records are lost; "" if none are, or none had to be written for a while."""
        # A broker that is said not to be ready may get no requests, and so nothing to write.
        if self._descriptor is not None or time.monotonic() > self._failed_at + _PROBLEM_SECONDS:
            return ""
        return f"audit file {self._path} cannot be written"

    def reopen(self) -> None:
        """Open the path anew, after a log rotation moved the file away.

        If that fails, an error is logged and the file that is open, if any, stays in use.
        """
        with self._alone():
            try:
                descriptor = _open(self._path)
            except OSError as error:
                log.error("audit file cannot be opened", file=self._path, error=error.strerror)
                return
            self.close()
            self._use(descriptor)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            # Nothing is buffered here, so a failing close loses nothing that could be saved.
            with suppress(OSError):
                os.close(descriptor)

    def _append(self, descriptor: int, lines: Sequence[bytes]) -> int:
        """Return how many of the lines were written whole; an error ends the use of the file."""
        mended = int(self._is_torn)
        data = b"\n" * mended + b"".join(lines)
        written, error = _write(descriptor, data)
        self._size += written if self._is_regular else 0
        if error is None:
            self._is_torn = False
        else:
            self._fail(error)
        return max(0, data.count(b"\n", 0, written) - mended)

    def _use(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_torn = _ends_within_line(descriptor)
        status = os.fstat(descriptor)
        # What is no file, such as a pipe, stays empty: it is never rotated.
        self._is_regular = stat.S_ISREG(status.st_mode)
        self._size = status.st_size if self._is_regular else 0
        self._period = self._rotation.period(status.st_mtime if self._size else self._clock())

    def _rotate(self) -> None:
        """Keep the file under another name, and begin a new one; if that fails, go on with it."""
        self._period = self._rotation.period(self._clock())
        descriptor = self._descriptor
        if not self._size or descriptor is None or time.monotonic() < self._rotate_at:
            return
        path = os.path.realpath(self._path)
        try:
            # Others may have renamed it, and be about to have it opened anew.
            if _is_at(path, descriptor):
                os.rename(path, rotated_name(path, self._clock()))
            descriptor = _open(path)
            self.close()
            self._use(descriptor)
            if self._rotation.max_total_bytes:
                room = self._rotation.max_total_bytes - self._rotation.max_bytes
                deleted = delete_oldest(path, room)
                if deleted:
                    log.info("old audit files deleted", file=self._path, deleted=deleted)
        except OSError as error:
            self._rotate_at = time.monotonic() + self._retry_seconds
            log.error("audit file cannot be rotated", file=self._path, error=error.strerror)

    def _retry(self) -> None:
        now = time.monotonic()
        if now >= self._retry_at:
            self._retry_at = now + self._retry_seconds
            self._use(_open(self._path))

    def _fail(self, error: OSError) -> None:
        self.close()
        self._failed_at = time.monotonic()
        if not self._lost:
            self._retry_at = time.monotonic() + self._retry_seconds
            log.error(
                "audit file cannot be written; decisions go on unrecorded until it can",
                file=self._path,
                error=error.strerror,
            )


def _open(path: str) -> int:
    # For reading, too, to see how the file ends.
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)


def _is_at(path: str, descriptor: int) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _ends_within_line(descriptor: int) -> bool:
    """Whether the disk was full, or the machine stopped, in the middle of the last line."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return False
    return os.pread(descriptor, 1, status.st_size - 1) != b"\n"


def _write(descriptor: int, data: bytes) -> tuple[int, OSError | None]:
    """Return the number of bytes written, and the error if that is not all of them."""
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError as error:
        return written, error
    return written, None
