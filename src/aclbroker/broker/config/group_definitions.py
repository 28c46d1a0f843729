"""The settings of groups in a cluster in memory.

Names, meanings and defaults are those of Kafka 4.3.0 (GroupCoordinatorConfig), but for what a
description says. Limits between settings of Kafka (`group.consumer.min.session.timeout.ms` and
their kin) are left out: they bound what can be set for single groups, which share groups alone have
here, within Kafka's own limits and what is set for all.
"""

from typing import Final

from aclbroker.broker.config.definition import Definition
from aclbroker.broker.config.values import LONG_MAX, ValueType, choice, integer

_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
_ASSIGNOR_NAMES: Final = {
    "uniform": "uniform",
    "range": "range",
    f"{_PACKAGE}UniformAssignor": "uniform",
    f"{_PACKAGE}RangeAssignor": "range",
}


def _assignors(text: str) -> tuple[str, ...]:
    names = [each.strip() for each in text.split(",") if each.strip()]
    for name in names:
        if name not in _ASSIGNOR_NAMES:
            raise ValueError(f"{name!r} is no assignor that there is here")
    if not names:
        raise ValueError("no assignor")
    return tuple(dict.fromkeys(_ASSIGNOR_NAMES[name] for name in names))


_ASSIGNORS: Final = ValueType("uniform, range, or both, the default first", _assignors)

# fmt: off
GROUPS: Final = (
    Definition(
        "group.initial.rebalance.delay.ms", "group_initial_rebalance_delay_ms", integer(0), "0",
        "How long the first members of a group of the classic protocol wait for others. Kafka's "
        "own default is 3000, and the server.properties that it comes with says 0.",
    ),
    Definition(
        "group.min.session.timeout.ms", "group_min_session_timeout_ms", integer(0), "6000",
        "The shortest session time-out that a member of the classic protocol may ask for.",
    ),
    Definition(
        "group.max.session.timeout.ms", "group_max_session_timeout_ms", integer(0), "1800000",
        "The longest session time-out that a member of the classic protocol may ask for.",
    ),
    Definition(
        "group.max.size", "group_max_size", integer(1), "1000",
        "How many members a group of the classic protocol may have. Kafka's default is no limit.",
    ),
    Definition(
        "group.consumer.session.timeout.ms", "group_consumer_session_timeout_ms", integer(1),
        "45000", "After how long without a heartbeat a member of a consumer group is out.",
    ),
    Definition(
        "group.consumer.heartbeat.interval.ms", "group_consumer_heartbeat_interval_ms", integer(1),
        "5000", "How often members of consumer groups are told to send heartbeats. A group "
        "rebalances as they do: with less, tests take less time.",
    ),
    Definition(
        "group.consumer.max.size", "group_consumer_max_size", integer(1), "1000",
        "How many members a consumer group may have. Kafka's default is no limit.",
    ),
    Definition(
        "group.consumer.assignors", "group_consumer_assignors",
        _ASSIGNORS, "uniform,range",
        "The assignors that members of consumer groups may name; the first is the default.",
    ),
    Definition(
        "group.consumer.migration.policy", "group_consumer_migration_policy",
        choice("bidirectional", "upgrade", "downgrade", "disabled"), "bidirectional",
        "Which groups with members may change from one protocol to the other.",
    ),
    Definition(
        "group.consumer.regex.refresh.interval.ms", "group_consumer_regex_refresh_interval_ms",
        integer(10_000), "600000", "After which time regular expressions of members are matched "
        "again if no topic was created: rights may have changed.",
    ),
    Definition(
        "group.share.session.timeout.ms", "group_share_session_timeout_ms", integer(1), "45000",
        "After how long without a heartbeat a member of a share group is out. Where a single group "
        "may have another value of this and the next four, it is within Kafka's limits (here "
        "45000 to 60000) or as far beyond them as this.",
    ),
    Definition(
        "group.share.heartbeat.interval.ms", "group_share_heartbeat_interval_ms", integer(1),
        "5000", "How often members of share groups are told to send heartbeats.",
    ),
    Definition(
        "group.share.record.lock.duration.ms", "group_share_record_lock_duration_ms", integer(1),
        "30000", "For how long a record is a member's before it is delivered again.",
    ),
    Definition(
        "group.share.delivery.count.limit", "group_share_delivery_count_limit", integer(1, 100),
        "5", "How often a record is delivered before a share group gives it up.",
    ),
    Definition(
        "group.share.partition.max.record.locks", "group_share_partition_max_record_locks",
        integer(1, 100_000), "2000", "How many records of a partition are in flight in a share "
        "group.",
    ),
    Definition(
        "group.share.max.size", "group_share_max_size", integer(1, 1000), "200",
        "How many members a share group may have.",
    ),
    Definition(
        "group.share.max.share.sessions", "group_share_max_share_sessions", integer(1, 100_000),
        "2000", "How many share sessions there are, at all nodes together.",
    ),
    Definition(
        "offsets.retention.minutes", "offsets_retention_minutes", integer(1), "10080",
        "After which time offsets are forgotten that no group uses.",
    ),
    Definition(
        "offsets.retention.check.interval.ms", "offsets_retention_check_interval_ms",
        integer(1, LONG_MAX), "600000", "How often such offsets are looked for.",
    ),
    Definition(
        "offset.metadata.max.bytes", "offset_metadata_max_bytes", integer(0), "4096",
        "How long the text may be that is committed with an offset.",
    ),
    Definition(
        "aclbroker.memory.groups.max.bytes", "memory_groups_max_bytes", integer(1 << 16, LONG_MAX),
        str(64 << 20), "How many bytes groups, members, offsets and transactions may take, about. "
        "Beyond that members get GROUP_MAX_SIZE_REACHED, commits INVALID_COMMIT_OFFSET_SIZE, and "
        "transactional producers COORDINATOR_NOT_AVAILABLE.",
    ),
)
# fmt: on
