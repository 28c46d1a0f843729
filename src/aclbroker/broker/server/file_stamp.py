"""What shows that a file has changed."""

from __future__ import annotations

import os

FileStamp = tuple[int, ...] | None
"""Time, size and place of a file; None for one that is gone."""


def file_stamp(path: str) -> FileStamp:
    """Return the stamp of a file as it is now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev
