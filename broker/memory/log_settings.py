"""What of a topic's configuration its logs go by."""

from __future__ import annotations

from typing import Final, NamedTuple

from aclbroker.broker.memory.checks import Rules

_WEEK_MS: Final = 604_800_000
_DAY_MS: Final = 86_400_000


class LogSettings(NamedTuple):
    """The settings of a log, in bytes and milliseconds; the names are those of the configuration.

    ``deletes`` and ``compacts`` are what ``cleanup.policy`` says.
    """

    rules: Rules = Rules()
    deletes: bool = True
    compacts: bool = False
    retention_ms: int = _WEEK_MS
    retention_bytes: int = -1
    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    min_cleanable_dirty_ratio: float = 0.5
