"""What answers show: for each API key, which topics, groups and transactions, and to whom.

It completes `broker.gate.table` for answers that hold more than the session may see: those of a
cluster behind a gateway, which were asked for with the gateway's rights. An entry that was not
asked for is left out. Where a request asks for everything, the right that is declared here decides.
`broker.gate.showing` applies the declarations, and tests/gate/test_every_field.py makes sure that
no field of an answer is forgotten.

Each right here is also a need of the key's row in `broker.gate.table`, which says which broader
right replaces it and whether a denial is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.conditions import TOPIC_CONFIG
from aclbroker.broker.gate.disclosure import (
    Line,
    Tokens,
    Whoever,
    all_or_refused,
    along,
    blanked,
    echoed,
    listed,
    nodes,
    operations,
    refused,
    sensitive,
)
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey

DESCRIBE: Final = AclOperation.DESCRIBE
DESCRIBE_CONFIGS: Final = AclOperation.DESCRIBE_CONFIGS
READ: Final = AclOperation.READ

CLUSTER: Final = ResourceType.CLUSTER
GROUP: Final = ResourceType.GROUP
TOPIC: Final = ResourceType.TOPIC
TXN_ID: Final = ResourceType.TRANSACTIONAL_ID
USER: Final = ResourceType.USER

NODES: Final = nodes("node_endpoints.node_id|host|port")
GROUP_OPERATIONS: Final = operations(
    GROUP, "groups.authorized_operations", "group_id", "include_authorized_operations"
)
SHARE_STATE: Final = echoed(TOPIC, "results.topic_id", "topics.topic_id")
CONFIGS: Final = "resource_type+resource_name"


def empty(request: Any, array: str, _version: int) -> bool:
    """where all are asked for"""
    return not getattr(request, array)


def null_or_version_0(request: Any, array: str, version: int) -> bool:
    """where all are asked for"""
    asked = getattr(request, array)
    return asked is None or (version == 0 and not asked)


def in_session(request: Any, _array: str, _version: int) -> bool:
    """in a request that continues a session"""
    return bool(request.session_epoch > 0)


def in_share_session(request: Any, _array: str, _version: int) -> bool:
    """in a request that continues a session"""
    return bool(request.share_session_epoch > 0)


def is_created(_request: Any) -> Callable[[Any], bool]:
    """of a created topic"""
    return lambda entry: not entry.error_code


def is_asked_by_id(request: Any) -> Callable[[Any], bool]:
    """of a topic that was given by its id"""
    asked = {topic.topic_id for topic in request.topics if topic.name is None}
    return lambda entry: entry.topic_id in asked


def has_topics_config(entry: Any) -> bool:
    """of a topic's configuration"""
    return bool(entry.resource_type == TOPIC_CONFIG)


# fmt: off
_LINES: Final[dict[int, tuple[Line, ...]]] = {
    ApiKey.PRODUCE: (
        echoed(TOPIC, "responses.name|topic_id", "topic_data.name|topic_id"), NODES),
    # A request that continues a session (KIP-227) may name no topic. Each time Kafka checks READ
    # on all topics of the session and refuses those on which it has been revoked
    # (KafkaApis.handleFetchRequest). A topic that is left out would look as if it had no new data.
    ApiKey.FETCH: (
        echoed(TOPIC, "responses.topic|topic_id", "topics.topic|topic_id",
               all_to=READ, all_when=in_session,
               refusal=refused("partitions", "partition_index", high_watermark=-1, records=b"")),
        NODES),
    ApiKey.LIST_OFFSETS: (echoed(TOPIC, "topics.name"),),
    ApiKey.METADATA: (
        echoed(TOPIC, "topics.name|topic_id", all_to=DESCRIBE, all_when=null_or_version_0),
        operations(TOPIC, "topics.topic_authorized_operations", "name",
                   "include_topic_authorized_operations"),
        operations(CLUSTER, "cluster_authorized_operations", "",
                   "include_cluster_authorized_operations"),
        nodes("brokers.node_id|host|port")),
    # Brokers send these to each other, and need CLUSTER_ACTION.
    ApiKey.LEADER_AND_ISR: (along("partition_errors.topic_name", "topics.topic_id"),),
    ApiKey.STOP_REPLICA: (along("partition_errors.topic_name"),),
    ApiKey.CONTROLLED_SHUTDOWN: (along("remaining_partitions.topic_name"),),
    ApiKey.OFFSET_COMMIT: (echoed(TOPIC, "topics.name|topic_id"),),
    # From version 10 on the answer has only the ids of topics.
    ApiKey.OFFSET_FETCH: (
        echoed(TOPIC, "topics.name", all_to=DESCRIBE),
        echoed(GROUP, "groups.group_id",
               inside=echoed(TOPIC, "topics.name|topic_id", all_to=DESCRIBE))),
    ApiKey.FIND_COORDINATOR: (
        echoed(None, "coordinators.key", "coordinator_keys[]"),
        nodes("node_id|host|port", "coordinators.node_id|host|port")),
    # What the members of a group tell each other: their subscriptions go to the leader, and the
    # leader's assignment goes to each member.
    ApiKey.JOIN_GROUP: (along("members.metadata"),),
    ApiKey.SYNC_GROUP: (along("assignment"),),
    # Subscriptions and assignments of a classic group are bytes in a format of the clients' choice.
    # They may contain topics, which DESCRIBE on the group shows, as in Kafka
    # (KafkaApis.handleDescribeGroupsRequest).
    ApiKey.DESCRIBE_GROUPS: (
        echoed(GROUP, "groups.group_id", "groups[]"),
        along("groups.members.member_metadata|member_assignment"),
        GROUP_OPERATIONS),
    ApiKey.LIST_GROUPS: (listed(GROUP, "groups.group_id", DESCRIBE),),
    ApiKey.CREATE_TOPICS: (
        echoed(TOPIC, "topics.name|topic_id", "topics.name"),
        blanked(TOPIC, "topics.name", DESCRIBE_CONFIGS, is_created, num_partitions=-1,
                replication_factor=-1, configs=None,
                topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        sensitive("topics.configs", "value")),
    # Kafka tells the name of a topic deleted by its id even to a session that may not describe it.
    ApiKey.DELETE_TOPICS: (
        echoed(TOPIC, "responses.name|topic_id", "topic_names[] topics.name|topic_id"),
        blanked(TOPIC, "responses.name|topic_id", DESCRIBE, is_asked_by_id, name=None)),
    ApiKey.DELETE_RECORDS: (echoed(TOPIC, "topics.name"),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (echoed(TOPIC, "topics.topic"),),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        echoed(TOPIC, "results_by_topic_v3_and_below.name", "v3_and_below_topics.name"),
        echoed(TXN_ID, "results_by_transaction.transactional_id", "transactions.transactional_id",
               inside=echoed(TOPIC, "topic_results.name", "topics.name"))),
    ApiKey.WRITE_TXN_MARKERS: (echoed(TOPIC, "markers.topics.name"),),
    ApiKey.TXN_OFFSET_COMMIT: (echoed(TOPIC, "topics.name"),),
    # DESCRIBE and ALTER on the Cluster show all ACLs, whatever their resources.
    ApiKey.DESCRIBE_ACLS: (along("resources.resource_name", "resources.acls.principal|host"),),
    ApiKey.DELETE_ACLS: (along("filter_results.matching_acls.resource_name|principal|host"),),
    ApiKey.DESCRIBE_CONFIGS: (
        echoed(None, f"results.{CONFIGS}", f"resources.{CONFIGS}"),
        sensitive("results.configs", "value", "synonyms.value")),
    ApiKey.ALTER_CONFIGS: (echoed(None, f"responses.{CONFIGS}", f"resources.{CONFIGS}"),),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (echoed(TOPIC, "results.topic_name", "dirs.topics.name"),),
    # DESCRIBE on the Cluster shows all topics here (KafkaApis.handleDescribeLogDirsRequest), as do
    # the rights on the Cluster that ELECT_LEADERS and LIST_PARTITION_REASSIGNMENTS need.
    ApiKey.DESCRIBE_LOG_DIRS: (
        echoed(TOPIC, "results.topics.name", "topics.topic", all_to=Whoever.ASKS),
        along("results.log_dir")),
    ApiKey.SASL_AUTHENTICATE: (along("auth_bytes"),),
    ApiKey.CREATE_PARTITIONS: (echoed(TOPIC, "results.name", "topics.name"),),
    ApiKey.CREATE_DELEGATION_TOKEN: (
        along("principal_type|principal_name", "token_id|hmac",
              "token_requester_principal_type|token_requester_principal_name"),),
    # As KafkaApis.handleDescribeTokensRequest and DelegationTokenManager.filterToken.
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (Tokens("tokens"),),
    ApiKey.DELETE_GROUPS: (echoed(GROUP, "results.group_id", "groups_names[]"),),
    ApiKey.ELECT_LEADERS: (
        echoed(TOPIC, "replica_election_results.topic", "topic_partitions.topic",
               all_to=Whoever.ASKS),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        echoed(None, f"responses.{CONFIGS}", f"resources.{CONFIGS}"),),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (echoed(TOPIC, "responses.name", "topics.name"),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        echoed(TOPIC, "topics.name", all_to=Whoever.ASKS),),
    ApiKey.OFFSET_DELETE: (echoed(TOPIC, "topics.name"),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (along("entries.entity.entity_name"),),
    ApiKey.ALTER_CLIENT_QUOTAS: (along("entries.entity.entity_name"),),
    # The answer has mechanisms and iterations, but neither salts nor keys.
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        echoed(USER, "results.user", "users.name", all_to=Whoever.ASKS, all_when=empty),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        echoed(USER, "results.user", "deletions.name upsertions.name"),),
    ApiKey.DESCRIBE_QUORUM: (
        echoed(TOPIC, "topics.topic_name"), nodes("nodes.node_id", "nodes.listeners.host|port")),
    ApiKey.DESCRIBE_CLUSTER: (
        operations(CLUSTER, "cluster_authorized_operations", "",
                   "include_cluster_authorized_operations"),
        nodes("brokers.broker_id|host|port")),
    ApiKey.DESCRIBE_PRODUCERS: (echoed(TOPIC, "topics.name"),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        echoed(TXN_ID, "transaction_states.transactional_id", "transactional_ids[]"),
        listed(TOPIC, "transaction_states.topics.topic", DESCRIBE)),
    ApiKey.LIST_TRANSACTIONS: (
        listed(TXN_ID, "transaction_states.transactional_id", DESCRIBE),),
    # Kafka resolves a regular expression with the rights of the principal that sends the request
    # (TopicRegexResolver), which is the gateway's if there is one in between.
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (
        listed(TOPIC, "assignment.topic_partitions.topic_id", DESCRIBE),),
    # Kafka checks only assigned topics (KafkaApis.handleConsumerGroupDescribe) and shows the names
    # of all others that members subscribe to. Here these are left out without DESCRIBE.
    ApiKey.CONSUMER_GROUP_DESCRIBE: (
        echoed(GROUP, "groups.group_id", "group_ids[]"),
        all_or_refused("groups", "group_id", DESCRIBE,
              "members.assignment.topic_partitions.topic_name|topic_id",
              "members.target_assignment.topic_partitions.topic_name|topic_id"),
        listed(TOPIC, "groups.members.subscribed_topic_names[]", DESCRIBE),
        GROUP_OPERATIONS),
    # DESCRIBE_CONFIGS on the Cluster lists all resources, topics and groups included
    # (KafkaApis.handleListConfigResources).
    ApiKey.LIST_CONFIG_RESOURCES: (
        along("config_resources.resource_name", topics=has_topics_config),),
    # If the cursor's topic is hidden, so is the cursor, and the list ends. A gateway must then ask
    # for the topics behind it itself.
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        echoed(TOPIC, "topics.name|topic_id", "topics.name", all_to=DESCRIBE, all_when=empty),
        echoed(TOPIC, "next_cursor.topic_name", "topics.name", all_to=DESCRIBE, all_when=empty),
        operations(TOPIC, "topics.topic_authorized_operations", "name")),
    ApiKey.SHARE_GROUP_HEARTBEAT: (
        listed(TOPIC, "assignment.topic_partitions.topic_id", DESCRIBE),),
    ApiKey.SHARE_GROUP_DESCRIBE: (
        echoed(GROUP, "groups.group_id", "group_ids[]"),
        all_or_refused("groups", "group_id", DESCRIBE,
              "members.assignment.topic_partitions.topic_name|topic_id"),
        listed(TOPIC, "groups.members.subscribed_topic_names[]", DESCRIBE),
        GROUP_OPERATIONS),
    # Like FETCH (KafkaApis.handleFetchFromShareFetchRequest).
    ApiKey.SHARE_FETCH: (
        echoed(TOPIC, "responses.topic_id", "topics.topic_id", all_to=READ,
               all_when=in_share_session, refusal=refused("partitions", "partition_index")),
        NODES),
    ApiKey.SHARE_ACKNOWLEDGE: (echoed(TOPIC, "responses.topic_id", "topics.topic_id"), NODES),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (SHARE_STATE,),
    ApiKey.READ_SHARE_GROUP_STATE: (SHARE_STATE,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (SHARE_STATE,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (SHARE_STATE,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (SHARE_STATE,),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (
        listed(TOPIC, "partitions_by_user_endpoint.active_partitions.topic", DESCRIBE),
        listed(TOPIC, "partitions_by_user_endpoint.standby_partitions.topic", DESCRIBE)),
    ApiKey.STREAMS_GROUP_DESCRIBE: (
        echoed(GROUP, "groups.group_id", "group_ids[]"),
        all_or_refused("groups", "group_id", DESCRIBE,
              "topology.subtopologies.source_topics[]",
              "topology.subtopologies.repartition_sink_topics[]",
              "topology.subtopologies.repartition_source_topics.name",
              "topology.subtopologies.state_changelog_topics.name"),
        along("groups.topology.subtopologies.repartition_source_topics.topic_configs.key|value",
              "groups.topology.subtopologies.state_changelog_topics.topic_configs.key|value"),
        GROUP_OPERATIONS),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (
        echoed(GROUP, "groups.group_id",
               inside=echoed(TOPIC, "topics.topic_name|topic_id", "topics.topic_name",
                             all_to=DESCRIBE)),),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (
        echoed(TOPIC, "responses.topic_name|topic_id", "topics.topic_name"),),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (
        echoed(TOPIC, "responses.topic_name|topic_id", "topics.topic_name"),),
}
# fmt: on

_NOTHING: Final = (
    ApiKey.UPDATE_METADATA,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.API_VERSIONS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.CREATE_ACLS,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
)
"""Keys whose answers tell only whether the request succeeded."""

SHOWN: Final[Mapping[int, tuple[Line, ...]]] = {**_LINES, **dict.fromkeys(_NOTHING, ())}
"""The declarations about the answers of each API key."""


def describe(key: int) -> list[str]:
    """Return sentences for docs/gate.md on what the answers of a key show."""
    return list(dict.fromkeys(words for line in SHOWN[key] for words in line.words()))
