"""The handlers of a broker with a cluster in memory; all other keys are answered as without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.handlers import HANDLERS
from aclbroker.broker.handlers.answers import with_code
from aclbroker.broker.handlers.memory import (
    classic_groups,
    configs,
    consumer_groups,
    describe,
    fetch,
    group_admin,
    group_offsets,
    metadata,
    offsets,
    produce,
    topics,
    transactions,
)
from aclbroker.broker.handlers.services import Handler
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey

# Kafka says the same where its features share.version and streams.version are 0. Clients give up
# then; for a coordinator that is not available they would wait.
_NO_SHARE_GROUPS: Final = with_code(
    ErrorCode.UNSUPPORTED_VERSION, "There are no share groups in a cluster in memory."
)
_NO_STREAMS_GROUPS: Final = with_code(
    ErrorCode.UNSUPPORTED_VERSION,
    "There are no streams groups in a cluster in memory; use group.protocol=classic.",
)

MEMORY_HANDLERS: Final[Mapping[int, Handler]] = {
    **HANDLERS,
    ApiKey.PRODUCE: produce.produce,
    ApiKey.FETCH: fetch.fetch,
    ApiKey.LIST_OFFSETS: offsets.list_offsets,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.FIND_COORDINATOR: metadata.find_coordinator,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topics.delete_topics,
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    ApiKey.DESCRIBE_LOG_DIRS: describe.describe_log_dirs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: describe.alter_partition_reassignments,
    ApiKey.ELECT_LEADERS: describe.elect_leaders,
    ApiKey.DESCRIBE_PRODUCERS: describe.describe_producers,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe.describe_topic_partitions,
    ApiKey.DELETE_RECORDS: offsets.delete_records,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.offset_for_leader_epoch,
    ApiKey.DESCRIBE_CLUSTER: metadata.describe_cluster,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: transactions.write_txn_markers,
    ApiKey.JOIN_GROUP: classic_groups.join_group,
    ApiKey.SYNC_GROUP: classic_groups.sync_group,
    ApiKey.HEARTBEAT: classic_groups.heartbeat,
    ApiKey.LEAVE_GROUP: classic_groups.leave_group,
    ApiKey.OFFSET_COMMIT: group_offsets.offset_commit,
    ApiKey.OFFSET_FETCH: group_offsets.offset_fetch,
    ApiKey.OFFSET_DELETE: group_offsets.offset_delete,
    ApiKey.LIST_GROUPS: group_admin.list_groups,
    ApiKey.DESCRIBE_GROUPS: group_admin.describe_groups,
    ApiKey.CONSUMER_GROUP_DESCRIBE: group_admin.consumer_group_describe,
    ApiKey.DELETE_GROUPS: group_admin.delete_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_groups.consumer_group_heartbeat,
    ApiKey.SHARE_GROUP_HEARTBEAT: _NO_SHARE_GROUPS,
    ApiKey.SHARE_GROUP_DESCRIBE: _NO_SHARE_GROUPS,
    ApiKey.SHARE_FETCH: _NO_SHARE_GROUPS,
    ApiKey.SHARE_ACKNOWLEDGE: _NO_SHARE_GROUPS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _NO_SHARE_GROUPS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _NO_SHARE_GROUPS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _NO_SHARE_GROUPS,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _NO_STREAMS_GROUPS,
    ApiKey.STREAMS_GROUP_DESCRIBE: _NO_STREAMS_GROUPS,
}
"""The handler of each API key."""
