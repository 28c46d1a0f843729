"""The file of audit records: those that come together are appended in one write.

While it cannot be written, requests are still answered: the error is logged once, lost lines are
counted, and the file is opened again once a second.
"""

import os
import stat
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog

_RETRY_SECONDS = 1.0

log = structlog.get_logger()


class AuditFile:
    """An append-only file. Raises OSError if it cannot be opened at first."""

    def __init__(self, path: str, retry_seconds: float = _RETRY_SECONDS) -> None:
        self._path = path
        self._retry_seconds = retry_seconds
        self._retry_at = 0.0
        self._lost = 0
        self._descriptor: int | None = None
        self._is_torn = False
        self._use(_open(path))

    def write(self, lines: Sequence[str]) -> None:
        """Append lines, which have no line breaks; those not written whole are counted as lost."""
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
        elif self._lost:
            log.warning("audit file is written again", file=self._path, lost_records=self._lost)
            self._lost = 0

    def reopen(self) -> None:
        """Open the path anew, after a log rotation moved the file away.

        If that fails, an error is logged and the file that is open, if any, stays in use.
        """
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

    def _append(self, descriptor: int, lines: Sequence[str]) -> int:
        """Return how many of the lines were written whole; an error ends the use of the file."""
        mended = int(self._is_torn)
        text = "\n" * mended + "\n".join(lines) + "\n"
        data = text.encode(errors="backslashreplace")
        written, error = _write(descriptor, data)
        if error is None:
            self._is_torn = False
        else:
            self._fail(error)
        return max(0, data.count(b"\n", 0, written) - mended)

    def _use(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_torn = _ends_within_line(descriptor)

    def _retry(self) -> None:
        now = time.monotonic()
        if now >= self._retry_at:
            self._retry_at = now + self._retry_seconds
            self._use(_open(self._path))

    def _fail(self, error: OSError) -> None:
        self.close()
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
