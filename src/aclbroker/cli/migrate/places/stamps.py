"""What tells that files have changed, without a look into them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

_CLOCK_NS: Final = 2_000_000_000
"""Two changes that come one after the other so fast may have the same time on some file systems."""

Stamp = tuple[tuple[int, int, int] | None, ...]


def stamp_of(*paths: Path) -> Stamp | None:
    """Return the inode, size and time of each file, None for one that is not there.

    Returns None if one was changed so lately that the next change may not show.
    """
    now = time.time_ns()
    found: list[tuple[int, int, int] | None] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            found.append(None)
            continue
        if abs(now - status.st_mtime_ns) < _CLOCK_NS:
            return None
        found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
