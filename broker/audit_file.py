"""The file that audit records are appended to, one write for each line.

Decisions go on while it cannot be written: an error is logged once, the lines that are lost are
counted, and opening it is tried again once a second.
"""

import os
import stat
import time
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

    def write(self, line: str) -> None:
        """Append the line, or count it as lost."""
        try:
            if self._descriptor is None:
                self._retry()
            if self._descriptor is not None:
                text = "\n" * self._is_torn + line + "\n"
                _write_all(self._descriptor, text.encode(errors="backslashreplace"))
                self._is_torn = False
        except OSError as error:
            self._fail(error)
        if self._descriptor is None:
            self._lost += 1
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
    # Read too, to see how the file ends.
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)


def _ends_within_line(descriptor: int) -> bool:
    """Whether the disk was full, or the machine stopped, in the middle of the last line."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return False
    return os.pread(descriptor, 1, status.st_size - 1) != b"\n"


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
