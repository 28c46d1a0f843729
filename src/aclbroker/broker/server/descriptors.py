"""File descriptors: how many the process may have, and how many of these connections get.

On systems without such a limit (Windows) nothing is raised and nothing is kept back.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final

if sys.platform != "win32":
    import resource

from aclbroker.broker.observability.logs import get_logger

log = get_logger()

_RESERVE: Final = 64
"""Descriptors that no client of a listener gets: for the files of the store, audit files that are
opened anew, key stores that are read again, and the port of the figures.
"""

_OPEN_FILES: Final = ("/proc/self/fd", "/dev/fd")


def raise_limit() -> None:
    """Raise the soft limit of descriptors to the hard one, as far as the system lets."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        # macOS has a limit of its own below an infinite one.
        log.warning("limit of file descriptors not raised", limit=soft, reason=str(error))
    else:
        log.info("limit of file descriptors raised", before=soft, limit=hard)


def room_for_connections() -> int | None:
    """Return how many connections fit beside what is open now and a reserve; None for no limit.

    Of a limit below 256 the reserve is a quarter. There is room for one at least.
    """
    if sys.platform == "win32":
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return None
    return max(1, limit - min(_RESERVE, limit // 4) - _open_now())


def _open_now() -> int:
    for directory in _OPEN_FILES:
        with suppress(OSError):
            return len(os.listdir(directory))
    return _RESERVE
