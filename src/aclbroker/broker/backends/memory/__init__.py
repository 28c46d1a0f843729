"""How a cluster in memory answers the requests that the gate has allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.backends.backend import BackendHandler
from aclbroker.broker.backends.declared import DECLARED_HANDLERS, DECLARED_LISTED
from aclbroker.broker.backends.declared.answers import with_code
from aclbroker.broker.backends.memory import (
    classic_groups,
    configs,
    consumer_groups,
    describe,
    fetch,
    group_admin,
    group_configs,
    group_offsets,
    markers,
    metadata,
    offsets,
    produce,
    quorum,
    quotas,
    topics,
    transactions,
)
from aclbroker.broker.backends.memory.share import acknowledge as share_acknowledge
from aclbroker.broker.backends.memory.share import fetch as share_fetch
from aclbroker.broker.backends.memory.share import groups as share_groups
from aclbroker.broker.backends.memory.share import offsets as share_offsets
from aclbroker.broker.turns import whole
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey

# Kafka says the same where its feature streams.version is 0. Clients give up then; for a
# coordinator that is not available they would wait.
_NO_STREAMS_GROUPS: Final = with_code(
    ErrorCode.UNSUPPORTED_VERSION,
    "There are no streams groups in a cluster in memory; use group.protocol=classic.",
)

_CHANGING: Final[Mapping[int, BackendHandler]] = {
    ApiKey.PRODUCE: produce.produce,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topics.delete_topics,
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    ApiKey.DELETE_RECORDS: offsets.delete_records,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: markers.write_txn_markers,
    ApiKey.HEARTBEAT: classic_groups.heartbeat,
    ApiKey.LEAVE_GROUP: classic_groups.leave_group,
    ApiKey.OFFSET_COMMIT: group_offsets.offset_commit,
    ApiKey.OFFSET_DELETE: group_offsets.offset_delete,
    ApiKey.DELETE_GROUPS: group_admin.delete_groups,
    ApiKey.SHARE_GROUP_HEARTBEAT: share_groups.share_group_heartbeat,
    ApiKey.SHARE_ACKNOWLEDGE: share_acknowledge.share_acknowledge,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: share_offsets.alter_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: share_offsets.delete_share_group_offsets,
    ApiKey.ALTER_CLIENT_QUOTAS: quotas.alter_client_quotas,
}
"""The handlers that change the cluster, maybe in many steps. Each change runs to its end even if
the client disconnects. A handler that waits meanwhile is not among them; it uses `whole` itself.
"""

MEMORY_HANDLERS: Final[Mapping[int, BackendHandler]] = {
    **DECLARED_HANDLERS,
    **{key: whole()(handler) for key, handler in _CHANGING.items()},
    ApiKey.FETCH: fetch.fetch,
    ApiKey.LIST_OFFSETS: offsets.list_offsets,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_groups.consumer_group_heartbeat,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.FIND_COORDINATOR: metadata.find_coordinator,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.LIST_CONFIG_RESOURCES: group_configs.list_config_resources,
    ApiKey.DESCRIBE_LOG_DIRS: describe.describe_log_dirs,
    ApiKey.ALTER_REPLICA_LOG_DIRS: describe.alter_replica_log_dirs,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: quotas.describe_client_quotas,
    ApiKey.DESCRIBE_QUORUM: quorum.describe_quorum,
    ApiKey.UPDATE_FEATURES: quorum.update_features,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: describe.alter_partition_reassignments,
    ApiKey.ELECT_LEADERS: describe.elect_leaders,
    ApiKey.DESCRIBE_PRODUCERS: describe.describe_producers,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe.describe_topic_partitions,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.offset_for_leader_epoch,
    ApiKey.DESCRIBE_CLUSTER: metadata.describe_cluster,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    ApiKey.JOIN_GROUP: classic_groups.join_group,
    ApiKey.SYNC_GROUP: classic_groups.sync_group,
    ApiKey.OFFSET_FETCH: group_offsets.offset_fetch,
    ApiKey.LIST_GROUPS: group_admin.list_groups,
    ApiKey.DESCRIBE_GROUPS: group_admin.describe_groups,
    ApiKey.CONSUMER_GROUP_DESCRIBE: group_admin.consumer_group_describe,
    ApiKey.SHARE_GROUP_DESCRIBE: share_groups.share_group_describe,
    ApiKey.SHARE_FETCH: share_fetch.share_fetch,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: share_offsets.describe_share_group_offsets,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _NO_STREAMS_GROUPS,
    ApiKey.STREAMS_GROUP_DESCRIBE: _NO_STREAMS_GROUPS,
}
"""The handler of each API key."""

MEMORY_LISTED: Final = DECLARED_LISTED
"""The API keys that ApiVersions lists."""
