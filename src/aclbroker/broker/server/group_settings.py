"""How groups of a cluster in memory behave, by the configuration."""

from __future__ import annotations

from typing import Final

from aclbroker.broker.config import Config
from aclbroker.broker.memory.groups import GroupSettings

_MINUTE_MS: Final = 60_000


def group_settings(config: Config) -> GroupSettings:
    """Return the settings of groups."""
    return GroupSettings(
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        consumer_max_size=config.group_consumer_max_size,
        consumer_assignors=config.group_consumer_assignors,
        consumer_migration_policy=config.group_consumer_migration_policy,
        consumer_regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        share_session_timeout_ms=config.group_share_session_timeout_ms,
        share_heartbeat_interval_ms=config.group_share_heartbeat_interval_ms,
        share_record_lock_ms=config.group_share_record_lock_duration_ms,
        share_delivery_count_limit=config.group_share_delivery_count_limit,
        share_max_record_locks=config.group_share_partition_max_record_locks,
        share_max_size=config.group_share_max_size,
        share_max_sessions=config.group_share_max_share_sessions,
        offsets_retention_ms=config.offsets_retention_minutes * _MINUTE_MS,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        max_bytes=config.memory_groups_max_bytes,
    )
