"""Measures how long ago a reader knew all of a topic, so that no removal is missed.

Kafka's compaction removes an ACL and, ``delete.retention.ms`` later, the message that removed it.
A reader that was behind for so long never sees the removal, and has to read the topic anew.
"""

from __future__ import annotations

import math
import time
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.broker.stores.boot_clock import boot_s

UNKNOWN_S: Final = 10.0
"""How long a reader may be behind if the retention of removals is unknown."""

_SHARE: Final = 0.75
"""The usable part of the retention: the rest allows for clocks that differ from Kafka's."""

_LEAST_S: Final = 5.0
"""A reader knows the end of its topic about once a second. A shorter limit would have it read the
topic again and again, so a topic that keeps removals for less is not safe to follow."""

_MOST_S: Final = 600.0
"""Kafka closes idle connections after this time. Reading the topic anew is cheap, and right
whatever the retention was meanwhile."""


class Moment(NamedTuple):
    """A moment by two clocks."""

    boot_s: float
    """Seconds since the machine booted, including time in suspend."""

    wall_ms: int
    """Milliseconds since the epoch, by a clock that can be set."""

    @classmethod
    def now(cls) -> Moment:
        """Return this moment."""
        return cls(boot_s(), time.time_ns() // 1_000_000)


@cache
def boot_id() -> str:
    """Return the kernel's id of this boot, "" if it is unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def allowed_s(kept_ms: int | None) -> float:
    """Return for how many seconds a reader may be behind a topic with this retention of removals.

    None is the retention of a topic whose settings are unknown.
    """
    if kept_ms is None:
        return UNKNOWN_S
    return min(max(kept_ms / 1000 * _SHARE, _LEAST_S), _MOST_S)


def snapshot_ms(kept_ms: int) -> float:
    """Return the greatest age of a usable snapshot, in milliseconds."""
    return kept_ms * _SHARE


class Freshness:
    """The last moment up to which all of a topic was known, and how long it keeps removals."""

    def __init__(self) -> None:
        self._kept_ms: int | None = None
        self._set_ms: int | None = None
        self._known = Moment.now()
        self._connection: object = None

    @property
    def kept_ms(self) -> int | None:
        """How long the topic keeps removals; None if that is not known."""
        return self._kept_ms

    def begin(self, moment: Moment, kept_ms: int | None, connection: object) -> None:
        """Note when the topic was read from its beginning, and how long it keeps removals."""
        self._set_ms = kept_ms
        self.note(moment, connection)

    def take_setting(self, kept_ms: int | None) -> None:
        """Take the current retention of removals; until the next `note` the shorter one counts."""
        self._set_ms = kept_ms
        self._kept_ms = min(self._kept_ms, kept_ms, key=allowed_s)

    def note(self, moment: Moment, connection: object) -> None:
        """Note that all messages committed before a moment are known, read over a connection."""
        self._known, self._connection, self._kept_ms = moment, connection, self._set_ms

    def age_s(self, connection: object) -> float:
        """Return the seconds since all committed messages were known, by the clock that shows more.

        The wall clock can be set at any time. So it does not count while the connection is the
        same: Kafka closes the connection of a machine that is paused for long.
        """
        boot_s, wall_s = since(self._known)
        is_same = connection is not None and connection is self._connection
        return boot_s if is_same else max(boot_s, wall_s)

    def is_over(self, connection: object) -> bool:
        """Return whether removals may be missing."""
        return self.age_s(connection) > allowed_s(self._kept_ms)


def load_limit_s(kept_ms: int | None) -> float:
    """Return within how many seconds a topic must be read from its beginning.

    If it takes longer, removals may be missing. The limit is infinite if the retention is unknown,
    or too short for any read.
    """
    share_s = math.inf if kept_ms is None else kept_ms / 1000 * _SHARE
    return share_s if share_s > _LEAST_S else math.inf


def since(moment: Moment) -> tuple[float, float]:
    """Return the seconds since a moment, by each of its clocks."""
    now = Moment.now()
    return now.boot_s - moment.boot_s, (now.wall_ms - moment.wall_ms) / 1000
