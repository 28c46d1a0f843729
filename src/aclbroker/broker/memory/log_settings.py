"""What of a topic's configuration its logs go by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from aclbroker.broker.memory.checks import Rules
from aclbroker.broker.topic_configs import config_number, config_value, list_values

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


def log_settings(configs: Mapping[str, str]) -> LogSettings:
    """Return the log settings of a topic with a valid configuration."""
    policies = list_values(config_value(configs, "cleanup.policy"))
    rules = Rules(
        max_bytes=config_number(configs, "max.message.bytes"),
        is_compacted="compact" in policies,
        log_append_time=config_value(configs, "message.timestamp.type") == "LogAppendTime",
        before_max_ms=config_number(configs, "message.timestamp.before.max.ms"),
        after_max_ms=config_number(configs, "message.timestamp.after.max.ms"),
    )
    return LogSettings(
        rules,
        deletes="delete" in policies,
        compacts="compact" in policies,
        retention_ms=config_number(configs, "retention.ms"),
        retention_bytes=config_number(configs, "retention.bytes"),
        segment_bytes=config_number(configs, "segment.bytes"),
        segment_ms=config_number(configs, "segment.ms"),
        delete_retention_ms=config_number(configs, "delete.retention.ms"),
        min_compaction_lag_ms=config_number(configs, "min.compaction.lag.ms"),
        min_cleanable_dirty_ratio=float(config_value(configs, "min.cleanable.dirty.ratio")),
    )
