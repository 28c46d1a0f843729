"""Lets several processes write to one descriptor, a line at a time."""

from __future__ import annotations

import mmap
import tempfile
from types import TracebackType
from typing import Final

_WHOLE: Final = 0
_TORN: Final = 1


class LineLock:
    """Who holds it is the only process that writes; one that ends does not hold it any more.

    It is made before the processes that share it are forked. Unlike a lock in memory it is given
    back by the system when its holder is killed; ``is_torn`` then tells that its line may be torn.
    """

    def __init__(self) -> None:
        # Locks of this kind belong to a process, so a descriptor that all have inherited will do.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 # it is open as long as this lives
        self._state = mmap.mmap(-1, 1)

    def __enter__(self) -> bool:
        """Wait until nobody else writes; return whether the last line may lack its end."""
        import fcntl

        fcntl.lockf(self._file, fcntl.LOCK_EX)
        is_torn, self._state[0] = self._state[0] == _TORN, _TORN
        return is_torn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let others write."""
        import fcntl

        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def is_whole(self) -> None:
        """Note, while it is held, that what was written ends with a line's end."""
        self._state[0] = _WHOLE
