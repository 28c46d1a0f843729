"""When an audit file is full or old, under which name it is kept, and which ones are deleted."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
_STAMPED: Final = re.compile(r"\.[0-9]{8}T[0-9]{6}\.[0-9]{6}Z")


class Rotation(NamedTuple):
    """The settings of rotation; 0 is no limit.

    A file is rotated before it has more than ``max_bytes``, and when a period of ``max_seconds``
    since midnight of 1970 in UTC is over. All files of it have ``max_total_bytes`` at most.
    """

    max_bytes: int = 0
    max_seconds: int = 0
    max_total_bytes: int = 0

    def period(self, seconds: float) -> int:
        """Return the number of the period that a time since the epoch is in."""
        return int(seconds // self.max_seconds) if self.max_seconds else 0


def rotated_name(path: str, now: float) -> str:
    """Return the name under which a file is kept that is rotated now."""
    return f"{path}.{datetime.fromtimestamp(now, UTC):{_STAMP}}"


def delete_oldest(path: str, room: int) -> list[str]:
    """Delete the oldest of the files that were rotated from a path, until the rest fits in a room.

    Returns their names. Raises OSError if one cannot be deleted.
    """
    name = Path(path).name
    rotated = sorted(
        entry
        for entry in os.listdir(Path(path).parent)
        if entry.startswith(name) and _STAMPED.fullmatch(entry, len(name))
    )
    sizes = {entry: Path(path).with_name(entry).stat().st_size for entry in rotated}
    total = sum(sizes.values())
    deleted = []
    for entry in rotated:
        if total <= room:
            break
        Path(path).with_name(entry).unlink()
        total -= sizes[entry]
        deleted.append(entry)
    return deleted
