"""How a cluster without data answers the requests that the gate has allowed.

No change is confirmed that the broker then loses. One that needs a coordinator is refused with
COORDINATOR_NOT_AVAILABLE, one whose result would have to be stored with the code that is true of it
(there is no such topic, topics cannot be deleted), and with POLICY_VIOLATION where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.backends.backend import BackendHandler, KeyVersions
from aclbroker.broker.backends.declared import (
    cluster,
    configs,
    groups,
    partitions,
    telemetry,
    topics,
)
from aclbroker.broker.backends.declared.answers import by_topic, empty, with_code, with_codes
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey

_NO_COORDINATOR: Final = with_code(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_NO_GROUP: Final = with_code(ErrorCode.GROUP_ID_NOT_FOUND)
_NOT_KEPT: Final = with_code(ErrorCode.POLICY_VIOLATION)
_NO_TOPIC: Final = with_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_NOT_A_BROKERS_PEER: Final = with_code(ErrorCode.UNSUPPORTED_VERSION)


def _deleted(backend: DeclaredBackend, group_id: str) -> ErrorCode:
    if group_id in backend.catalog.groups:
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.GROUP_ID_NOT_FOUND


DECLARED_HANDLERS: Final[Mapping[int, BackendHandler]] = {
    ApiKey.PRODUCE: partitions.produce,
    ApiKey.FETCH: partitions.fetch,
    ApiKey.LIST_OFFSETS: partitions.list_offsets,
    ApiKey.METADATA: cluster.metadata,
    ApiKey.LEADER_AND_ISR: _NOT_A_BROKERS_PEER,
    ApiKey.STOP_REPLICA: _NOT_A_BROKERS_PEER,
    ApiKey.UPDATE_METADATA: _NOT_A_BROKERS_PEER,
    ApiKey.CONTROLLED_SHUTDOWN: _NOT_A_BROKERS_PEER,
    ApiKey.OFFSET_COMMIT: by_topic(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ApiKey.OFFSET_FETCH: groups.offset_fetch,
    ApiKey.FIND_COORDINATOR: cluster.find_coordinator,
    ApiKey.JOIN_GROUP: _NO_COORDINATOR,
    ApiKey.HEARTBEAT: _NO_COORDINATOR,
    ApiKey.LEAVE_GROUP: _NO_COORDINATOR,
    ApiKey.SYNC_GROUP: _NO_COORDINATOR,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.CREATE_TOPICS: topics.create_topics,
    ApiKey.DELETE_TOPICS: topics.delete_topics,
    ApiKey.DELETE_RECORDS: topics.delete_records,
    ApiKey.INIT_PRODUCER_ID: partitions.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: partitions.offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: partitions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: _NO_COORDINATOR,
    ApiKey.END_TXN: _NO_COORDINATOR,
    ApiKey.WRITE_TXN_MARKERS: _NO_TOPIC,
    ApiKey.TXN_OFFSET_COMMIT: by_topic(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: with_codes(configs.not_altered),
    ApiKey.ALTER_REPLICA_LOG_DIRS: _NO_TOPIC,
    ApiKey.DESCRIBE_LOG_DIRS: cluster.describe_log_dirs,
    ApiKey.CREATE_PARTITIONS: topics.create_partitions,
    ApiKey.DELETE_GROUPS: with_codes(_deleted),
    ApiKey.ELECT_LEADERS: by_topic(ErrorCode.ELECTION_NOT_NEEDED, "topic"),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: with_codes(configs.not_altered),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: by_topic(ErrorCode.POLICY_VIOLATION),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: empty,
    ApiKey.OFFSET_DELETE: groups.offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: empty,
    ApiKey.ALTER_CLIENT_QUOTAS: _NOT_KEPT,
    ApiKey.DESCRIBE_QUORUM: _NOT_A_BROKERS_PEER,
    ApiKey.UPDATE_FEATURES: _NOT_KEPT,
    ApiKey.DESCRIBE_CLUSTER: cluster.describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: by_topic(ErrorCode.NONE),
    ApiKey.UNREGISTER_BROKER: with_code(ErrorCode.BROKER_ID_NOT_REGISTERED),
    ApiKey.DESCRIBE_TRANSACTIONS: with_code(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ApiKey.LIST_TRANSACTIONS: empty,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _NO_COORDINATOR,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _NO_GROUP,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: telemetry.get_subscriptions,
    ApiKey.PUSH_TELEMETRY: telemetry.push,
    ApiKey.LIST_CONFIG_RESOURCES: configs.list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: cluster.describe_topic_partitions,
    ApiKey.SHARE_GROUP_HEARTBEAT: _NO_COORDINATOR,
    ApiKey.SHARE_GROUP_DESCRIBE: _NO_GROUP,
    ApiKey.SHARE_FETCH: groups.share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: _NO_COORDINATOR,
    ApiKey.ADD_RAFT_VOTER: _NOT_KEPT,
    ApiKey.REMOVE_RAFT_VOTER: _NOT_KEPT,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _NO_TOPIC,
    ApiKey.READ_SHARE_GROUP_STATE: _NO_TOPIC,
    ApiKey.WRITE_SHARE_GROUP_STATE: _NO_TOPIC,
    ApiKey.DELETE_SHARE_GROUP_STATE: _NO_TOPIC,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _NO_TOPIC,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _NO_COORDINATOR,
    ApiKey.STREAMS_GROUP_DESCRIBE: _NO_GROUP,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: groups.share_group_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: groups.alter_share_group_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: groups.delete_share_group_offsets,
}
"""The handler of each API key."""

UNLISTED: Final = frozenset(
    (
        # Only brokers before Kafka 4 send these.
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        # Kafka lists these only with a telemetry receiver, and answers them without one, too.
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    )
)
"""The API keys that are answered and that ApiVersions does not list."""

DECLARED_LISTED: Final = tuple(
    KeyVersions(key, APIS[key].versions[0], APIS[key].versions[-1])
    for key in DECLARED_HANDLERS
    if key not in UNLISTED
)
"""The API keys that ApiVersions lists, which with those answered here are Kafka 4.3's."""
