"""The settings of groups: names, defaults and meanings are Kafka's, unless it is said otherwise."""

from __future__ import annotations

from typing import Final, NamedTuple

DAY_MS: Final = 24 * 60 * 60 * 1000


class GroupSettings(NamedTuple):
    """How groups behave; times are in milliseconds.

    Each is the setting of the configuration that is called like it: ``group.max.size`` is
    `max_size`, ``group.consumer.max.size`` is `consumer_max_size`. Other than Kafka's are the
    defaults of `initial_rebalance_delay_ms` (Kafka: 3,000, and 0 in the server.properties that it
    comes with) and of the two sizes (Kafka: no limit).
    """

    initial_rebalance_delay_ms: int = 0
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 1_000
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 1_000
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: str = "bidirectional"
    consumer_regex_refresh_interval_ms: int = 600_000
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5_000
    share_record_lock_ms: int = 30_000
    """``group.share.record.lock.duration.ms``."""
    share_delivery_count_limit: int = 5
    share_max_record_locks: int = 2_000
    """``group.share.partition.max.record.locks``."""
    share_max_size: int = 200
    share_max_sessions: int = 2_000
    """``group.share.max.share.sessions``."""
    offsets_retention_ms: int = 7 * DAY_MS
    offsets_retention_check_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4_096
    max_bytes: int = 64 << 20
    """How many bytes of groups, members, offsets and transactions are kept, about. A setting of our
    own.
    """
