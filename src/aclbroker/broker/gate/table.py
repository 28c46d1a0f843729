"""The gate: which operation on which resource each API key needs.

It reads like the table "Protocol (API key) | Operation | Resource" of Kafka's documentation, in the
order of the keys, with the method of Kafka 4.3 that each rule comes from. The error code follows
from the resource: 29 topic, 30 group, 31 cluster, 53 transactional id. Where Kafka 4.3 and its
documentation differ, the table has both rules, each under its profile. A key without a row is
refused.

Without the right, ``whole`` refuses the request, ``each`` refuses an entry of the array that the
answer repeats (`answers`), and ``keep`` leaves an entry out of the answer. The row's own function
or the handler asks for a need that has a ``name``; the engine asks for all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate import conditions as c
from aclbroker.broker.gate import fetching, offsets, tokens, topics, transactions
from aclbroker.broker.gate.engine import require_enforceable
from aclbroker.broker.gate.need import (
    Profile,
    Repeats,
    Row,
    anywhere,
    each,
    each_by,
    exempt,
    keep,
    on_cluster,
    row,
    since,
    until,
    whole,
    whole_by,
)
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey

ALTER: Final = AclOperation.ALTER
ALTER_CONFIGS: Final = AclOperation.ALTER_CONFIGS
CLUSTER_ACTION: Final = AclOperation.CLUSTER_ACTION
CREATE: Final = AclOperation.CREATE
CREATE_TOKENS: Final = AclOperation.CREATE_TOKENS
DELETE: Final = AclOperation.DELETE
DESCRIBE: Final = AclOperation.DESCRIBE
DESCRIBE_CONFIGS: Final = AclOperation.DESCRIBE_CONFIGS
DESCRIBE_TOKENS: Final = AclOperation.DESCRIBE_TOKENS
IDEMPOTENT_WRITE: Final = AclOperation.IDEMPOTENT_WRITE
READ: Final = AclOperation.READ
TWO_PHASE_COMMIT: Final = AclOperation.TWO_PHASE_COMMIT
WRITE: Final = AclOperation.WRITE

CLUSTER: Final = ResourceType.CLUSTER
GROUP: Final = ResourceType.GROUP
TOKEN: Final = ResourceType.DELEGATION_TOKEN
TOPIC: Final = ResourceType.TOPIC
TXN_ID: Final = ResourceType.TRANSACTIONAL_ID
USER: Final = ResourceType.USER

KAFKA: Final = Profile.KAFKA
DOCUMENTED: Final = Profile.DOCUMENTED

# fmt: off
_ROWS: Final = (
    # What counts is a transactional batch, not the field transactional_id. A request with such a
    # batch and without an id is refused.
    row(ApiKey.PRODUCE, "handleProduceRequest",
        whole(WRITE, TXN_ID, "transactional_id", when=c.has_transactional_records),
        whole(IDEMPOTENT_WRITE, CLUSTER, when=c.has_idempotent_records, profile=DOCUMENTED),
        each(WRITE, TOPIC, "name", versions=until(12), counted="partition_data"),
        each_by(WRITE, c.topic_by_id, TOPIC, versions=since(13), counted="partition_data"),
        resolves=("topic_data.topic_id",)),
    # A follower without CLUSTER_ACTION gets the code of topics (29), in each partition.
    row(ApiKey.FETCH, "handleFetchRequest",
        whole(CLUSTER_ACTION, CLUSTER, when=c.is_follower,
              code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        each(READ, TOPIC, "topic", when=c.is_consumer, versions=until(12), counted="partitions"),
        each_by(READ, c.topic_by_id, TOPIC, when=c.is_consumer, versions=since(13),
                counted="partitions"),
        each(READ, TOPIC, "topic", name="session", when=c.is_consumer),
        own=fetching.check_fetch, resolves=("topics.topic_id",), early=c.unknown_fetch_session,
        note="READ is asked for again after each wait, and for all topics of a fetch session."),
    row(ApiKey.LIST_OFFSETS, "handleListOffsetRequest", each(DESCRIBE, TOPIC, "name")),
    # CREATE is asked only for missing topics. That a topic exists never grants anything.
    row(ApiKey.METADATA, "handleTopicMetadataRequest",
        each(DESCRIBE, TOPIC, "name", name="describe"),
        each(CREATE, TOPIC, "name", name="create", unless=on_cluster(CREATE), versions=until(3)),
        each(CREATE, TOPIC, "name", name="create", unless=on_cluster(CREATE), versions=since(4),
             when=topics.creates_missing),
        keep(DESCRIBE, TOPIC, "topics.name", name="show"),
        keep(DESCRIBE, CLUSTER, "cluster_authorized_operations", name="show cluster",
             log_if_denied=True, versions=range(8, 11)),
        own=topics.check_metadata, resolves=("topics.topic_id", "topics.name"),
        operations_of=(TOPIC, CLUSTER),
        note="A topic that may not be described is answered alike whether it exists or not."),
    row(ApiKey.LEADER_AND_ISR, "handleLeaderAndIsrRequest (3.9)", whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.STOP_REPLICA, "handleStopReplicaRequest (3.9)", whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.UPDATE_METADATA, "handleUpdateMetadataRequest (3.9)",
        whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.CONTROLLED_SHUTDOWN, "handleControlledShutdownRequest (3.9)",
        whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.OFFSET_COMMIT, "handleOffsetCommitRequest",
        whole(READ, GROUP, "group_id"),
        each(READ, TOPIC, "name", versions=until(9)),
        each_by(READ, c.topic_by_id, TOPIC, versions=since(10)),
        resolves=("topics.topic_id",)),
    row(ApiKey.OFFSET_FETCH, "handleOffsetFetchRequest",
        each(DESCRIBE, GROUP, "group_id", name="group"),
        each(DESCRIBE, TOPIC, "name", name="topic", versions=until(9)),
        each_by(DESCRIBE, c.topic_by_id, TOPIC, name="topic", versions=since(10)),
        keep(DESCRIBE, TOPIC, "topics.name", name="show", versions=since(2), log_if_denied=True),
        own=offsets.check_offset_fetch, resolves=("groups.topics.topic_id",)),
    row(ApiKey.FIND_COORDINATOR, "handleFindCoordinatorRequest",
        whole(CLUSTER_ACTION, CLUSTER, versions=since(6), when=c.finds_share_coordinator),
        whole_by(DESCRIBE, c.coordinator_keys, GROUP, TXN_ID, versions=until(3)),
        each_by(DESCRIBE, c.coordinator_key, GROUP, TXN_ID, versions=range(4, 6)),
        each_by(DESCRIBE, c.coordinator_key, GROUP, TXN_ID, versions=since(6),
                when=c.finds_other_coordinator)),
    row(ApiKey.JOIN_GROUP, "handleJoinGroupRequest", whole(READ, GROUP, "group_id")),
    row(ApiKey.HEARTBEAT, "handleHeartbeatRequest", whole(READ, GROUP, "group_id")),
    row(ApiKey.LEAVE_GROUP, "handleLeaveGroupRequest", whole(READ, GROUP, "group_id")),
    # The leader of a classic group assigns partitions in bytes that only clients read. In a group
    # with members of the newer protocol the broker assigns them, and writes the same form.
    row(ApiKey.SYNC_GROUP, "handleSyncGroupRequest", whole(READ, GROUP, "group_id"),
        keep(DESCRIBE, TOPIC, "assignment", name="show"),
        early=c.sync_without_protocol,
        note="Topics are left out of an assignment that the broker makes, not the group's leader."),
    row(ApiKey.DESCRIBE_GROUPS, "handleDescribeGroupsRequest", each(DESCRIBE, GROUP),
        operations_of=(GROUP,)),
    exempt(ApiKey.LIST_GROUPS, "handleListGroupsRequest",
           "Never refused: without rights the list is empty.",
           keep(DESCRIBE, GROUP, "groups.group_id", name="show", unless=on_cluster(DESCRIBE)),
           hides=True),
    exempt(ApiKey.SASL_HANDSHAKE, "handleSaslHandshakeRequest", "Part of authentication."),
    exempt(ApiKey.API_VERSIONS, "handleApiVersionsRequest", "Asked before authentication."),
    row(ApiKey.CREATE_TOPICS, "ControllerApis.handleCreateTopics",
        each_by(CREATE, c.creatable_topic, TOPIC, unless=on_cluster(CREATE)),
        keep(DESCRIBE_CONFIGS, TOPIC, "topics.configs", name="show configs"),
        repeats=Repeats.REFUSED_ONCE),
    # By name, DESCRIBE is checked first and then whether the topic exists. By id, DELETE is enough.
    row(ApiKey.DELETE_TOPICS, "ControllerApis.handleDeleteTopics",
        each_by(DESCRIBE, c.topic_to_delete, TOPIC, name="describe", unless=on_cluster(DELETE),
                profile=KAFKA),
        each_by(DELETE, c.topic_to_delete, TOPIC, name="delete", unless=on_cluster(DELETE),
                profile=KAFKA),
        each_by(DELETE, c.topic_to_delete, TOPIC, name="delete", profile=DOCUMENTED),
        keep(DESCRIBE, TOPIC, "responses.name", name="show name", profile=DOCUMENTED,
             versions=since(6)),
        own=topics.check_delete_topics, repeats=Repeats.REFUSED_ONCE,
        resolves=("topics.topic_id", "topics.name", "topic_names"),
        note="A topic given by its id is named only to who may describe it."),
    row(ApiKey.DELETE_RECORDS, "handleDeleteRecordsRequest", each(DELETE, TOPIC, "name")),
    row(ApiKey.INIT_PRODUCER_ID, "handleInitProducerIdRequest",
        whole(WRITE, TXN_ID, "transactional_id", when=c.is_transactional),
        whole(TWO_PHASE_COMMIT, TXN_ID, "transactional_id", versions=since(6),
              when=c.wants_two_phase_commit),
        whole(IDEMPOTENT_WRITE, CLUSTER, when=c.is_idempotent, unless=anywhere(WRITE, TOPIC),
              profile=KAFKA, log_if_denied=False),
        whole(IDEMPOTENT_WRITE, CLUSTER, when=c.is_idempotent, profile=DOCUMENTED)),
    row(ApiKey.OFFSET_FOR_LEADER_EPOCH, "handleOffsetForLeaderEpochRequest",
        each(DESCRIBE, TOPIC, "topic", unless=on_cluster(CLUSTER_ACTION))),
    row(ApiKey.ADD_PARTITIONS_TO_TXN, "handleAddPartitionsToTxnRequest",
        whole(CLUSTER_ACTION, CLUSTER, versions=since(4)),
        whole(WRITE, TXN_ID, "v3_and_below_transactional_id", versions=until(3)),
        each_by(WRITE, c.transaction_topic, TOPIC, versions=until(3), counted="partitions",
                others=ErrorCode.OPERATION_NOT_ATTEMPTED),
        own=transactions.check_add_partitions, resolves=("v3_and_below_topics.name",)),
    row(ApiKey.ADD_OFFSETS_TO_TXN, "handleAddOffsetsToTxnRequest",
        whole(WRITE, TXN_ID, "transactional_id"),
        whole(READ, GROUP, "group_id")),
    row(ApiKey.END_TXN, "handleEndTxnRequest", whole(WRITE, TXN_ID, "transactional_id")),
    row(ApiKey.WRITE_TXN_MARKERS, "handleWriteTxnMarkersRequest",
        whole(CLUSTER_ACTION, CLUSTER, unless=on_cluster(ALTER), profile=KAFKA),
        whole(CLUSTER_ACTION, CLUSTER, profile=DOCUMENTED)),
    row(ApiKey.TXN_OFFSET_COMMIT, "handleTxnOffsetCommitRequest",
        whole(WRITE, TXN_ID, "transactional_id"),
        whole(READ, GROUP, "group_id"),
        each(READ, TOPIC, "name")),
    row(ApiKey.DESCRIBE_ACLS, "AclApis.handleDescribeAcls", whole(DESCRIBE, CLUSTER)),
    row(ApiKey.CREATE_ACLS, "AclApis.handleCreateAcls", whole(ALTER, CLUSTER)),
    row(ApiKey.DELETE_ACLS, "AclApis.handleDeleteAcls", whole(ALTER, CLUSTER)),
    # A group's configuration needs the right on the group; rights on the cluster do not replace it.
    row(ApiKey.DESCRIBE_CONFIGS, "ConfigHelper.handleDescribeConfigsRequest",
        each_by(DESCRIBE_CONFIGS, c.config_resource, CLUSTER, TOPIC, GROUP),
        early=c.unknown_config_type),
    row(ApiKey.ALTER_CONFIGS, "ControllerApis.handleLegacyAlterConfigs",
        each_by(ALTER_CONFIGS, c.replaced_config, CLUSTER, TOPIC, GROUP),
        repeats=Repeats.REFUSED),
    row(ApiKey.ALTER_REPLICA_LOG_DIRS, "handleAlterReplicaLogDirsRequest", whole(ALTER, CLUSTER)),
    row(ApiKey.DESCRIBE_LOG_DIRS, "handleDescribeLogDirsRequest", whole(DESCRIBE, CLUSTER),
        note="Before version 3 the refusal is an empty list without a code."),
    exempt(ApiKey.SASL_AUTHENTICATE, "handleSaslAuthenticateRequest", "Part of authentication."),
    row(ApiKey.CREATE_PARTITIONS, "ControllerApis.handleCreatePartitions",
        each(ALTER, TOPIC, "name"), repeats=Repeats.REFUSED_ONCE),
    row(ApiKey.CREATE_DELEGATION_TOKEN, "handleCreateTokenRequest",
        whole(CREATE_TOKENS, USER, names=tokens.owner, name="create", versions=since(3)),
        own=tokens.check_create,
        note="For another owner than oneself; not over PLAINTEXT, nor with a token."),
    exempt(ApiKey.RENEW_DELEGATION_TOKEN, "handleRenewTokenRequest",
           "The owner and the renewers may; not over PLAINTEXT, nor with a token."),
    exempt(ApiKey.EXPIRE_DELEGATION_TOKEN, "handleExpireTokenRequest",
           "The owner and the renewers may; not over PLAINTEXT, nor with a token."),
    exempt(ApiKey.DESCRIBE_DELEGATION_TOKEN, "handleDescribeTokensRequest",
           "Own tokens are shown; not over PLAINTEXT, nor to who came with a token.",
           keep(DESCRIBE, TOKEN, "tokens.token_id", name="show token", log_if_denied=True),
           keep(DESCRIBE_TOKENS, USER, "tokens.principal_name", name="show owner",
                log_if_denied=True)),
    row(ApiKey.DELETE_GROUPS, "handleDeleteGroupsRequest", each(DELETE, GROUP),
        repeats=Repeats.MERGED),
    row(ApiKey.ELECT_LEADERS, "ControllerApis.handleElectLeaders",
        whole(ALTER, CLUSTER, profile=KAFKA),
        whole(CLUSTER_ACTION, CLUSTER, profile=DOCUMENTED)),
    row(ApiKey.INCREMENTAL_ALTER_CONFIGS, "ControllerApis.handleIncrementalAlterConfigs",
        each_by(ALTER_CONFIGS, c.altered_config, CLUSTER, TOPIC, GROUP),
        repeats=Repeats.REFUSED),
    row(ApiKey.ALTER_PARTITION_REASSIGNMENTS, "ControllerApis.handleAlterPartitionReassignments",
        whole(ALTER, CLUSTER)),
    row(ApiKey.LIST_PARTITION_REASSIGNMENTS, "ControllerApis.handleListPartitionReassignments",
        whole(DESCRIBE, CLUSTER)),
    row(ApiKey.OFFSET_DELETE, "handleOffsetDeleteRequest",
        whole(DELETE, GROUP, "group_id"),
        each(READ, TOPIC, "name")),
    row(ApiKey.DESCRIBE_CLIENT_QUOTAS, "handleDescribeClientQuotasRequest",
        whole(DESCRIBE_CONFIGS, CLUSTER)),
    row(ApiKey.ALTER_CLIENT_QUOTAS, "ControllerApis.handleAlterClientQuotas",
        whole(ALTER_CONFIGS, CLUSTER)),
    row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "handleDescribeUserScramCredentialsRequest",
        whole(DESCRIBE, CLUSTER)),
    row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "ControllerApis.handleAlterUserScramCredentials",
        whole(ALTER, CLUSTER)),
    row(ApiKey.DESCRIBE_QUORUM, "ControllerApis.handleDescribeQuorum", whole(DESCRIBE, CLUSTER)),
    row(ApiKey.UPDATE_FEATURES, "ControllerApis.handleUpdateFeatures", whole(ALTER, CLUSTER)),
    exempt(ApiKey.DESCRIBE_CLUSTER, "handleDescribeCluster", "Every client needs it.",
           keep(DESCRIBE, CLUSTER, "cluster_authorized_operations", name="show cluster",
                log_if_denied=True),
           operations_of=(CLUSTER,)),
    row(ApiKey.DESCRIBE_PRODUCERS, "handleDescribeProducersRequest",
        each_by(READ, c.valid_topic, TOPIC)),
    row(ApiKey.UNREGISTER_BROKER, "ControllerApis.handleUnregisterBroker", whole(ALTER, CLUSTER)),
    row(ApiKey.DESCRIBE_TRANSACTIONS, "handleDescribeTransactionsRequest",
        each(DESCRIBE, TXN_ID),
        keep(DESCRIBE, TOPIC, "transaction_states.topics.topic", name="show",
             log_if_denied=True),
        hides=True),
    exempt(ApiKey.LIST_TRANSACTIONS, "handleListTransactionsRequest",
           "Never refused: without rights the list is empty.",
           keep(DESCRIBE, TXN_ID, "transaction_states.transactional_id", name="show",
                log_if_denied=True),
           hides=True),
    row(ApiKey.CONSUMER_GROUP_HEARTBEAT, "handleConsumerGroupHeartbeat",
        whole(READ, GROUP, "group_id"),
        whole(DESCRIBE, TOPIC, names=c.subscribed_topics),
        keep(DESCRIBE, TOPIC, "assignment.topic_partitions.topic_id", name="show"),
        note="A regular expression matches the topics that its member may describe."),
    row(ApiKey.CONSUMER_GROUP_DESCRIBE, "handleConsumerGroupDescribe", each(DESCRIBE, GROUP),
        keep(DESCRIBE, TOPIC, "groups.members", name="show", log_if_denied=True),
        hides=True, operations_of=(GROUP,),
        note="A group with a topic that may not be described is refused with 29."),
    # Kafka advertises these two only with a telemetry receiver, but answers them without one, too.
    exempt(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "handleGetTelemetrySubscriptionsRequest",
           "Any client may ask."),
    exempt(ApiKey.PUSH_TELEMETRY, "handlePushTelemetryRequest", "Any client may push."),
    row(ApiKey.LIST_CONFIG_RESOURCES, "handleListConfigResources",
        whole(DESCRIBE_CONFIGS, CLUSTER)),
    row(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitionsRequestHandler",
        each(DESCRIBE, TOPIC, "name", name="describe"),
        keep(DESCRIBE, TOPIC, "topics.name", name="show", log_if_denied=True),
        own=topics.check_describe_topic_partitions, operations_of=(TOPIC,)),
    row(ApiKey.SHARE_GROUP_HEARTBEAT, "handleShareGroupHeartbeat",
        whole(READ, GROUP, "group_id"),
        whole(DESCRIBE, TOPIC, names=c.subscribed_topics),
        keep(DESCRIBE, TOPIC, "assignment.topic_partitions.topic_id", name="show"),
        between=c.invalid_member),
    row(ApiKey.SHARE_GROUP_DESCRIBE, "handleShareGroupDescribe", each(DESCRIBE, GROUP),
        keep(DESCRIBE, TOPIC, "groups.members", name="show", log_if_denied=True),
        hides=True, operations_of=(GROUP,),
        note="A group with a topic that may not be described is refused with 29."),
    row(ApiKey.SHARE_FETCH, "handleShareFetchRequest",
        whole(READ, GROUP, "group_id"),
        each_by(READ, c.topic_by_id, TOPIC, counted="partitions"),
        whole(READ, GROUP, "group_id", name="member"),
        each_by(READ, c.topic_by_id, TOPIC, name="session"),
        own=fetching.check_shared,
        early=c.share_without_group, between=c.invalid_member, resolves=("topics.topic_id",),
        note="READ is asked for again after each wait, and for all topics of a share session."),
    row(ApiKey.SHARE_ACKNOWLEDGE, "handleShareAcknowledgeRequest",
        whole(READ, GROUP, "group_id"),
        each_by(READ, c.topic_by_id, TOPIC),
        own=fetching.check_shared, early=c.share_without_group, between=c.invalid_member,
        resolves=("topics.topic_id",)),
    row(ApiKey.ADD_RAFT_VOTER, "ControllerApis.handleAddRaftVoter", whole(ALTER, CLUSTER)),
    row(ApiKey.REMOVE_RAFT_VOTER, "ControllerApis.handleRemoveRaftVoter", whole(ALTER, CLUSTER)),
    row(ApiKey.INITIALIZE_SHARE_GROUP_STATE, "handleInitializeShareGroupStateRequest",
        whole(CLUSTER_ACTION, CLUSTER), resolves=("topics.topic_id",)),
    row(ApiKey.READ_SHARE_GROUP_STATE, "handleReadShareGroupStateRequest",
        whole(CLUSTER_ACTION, CLUSTER), resolves=("topics.topic_id",)),
    row(ApiKey.WRITE_SHARE_GROUP_STATE, "handleWriteShareGroupStateRequest",
        whole(CLUSTER_ACTION, CLUSTER), resolves=("topics.topic_id",)),
    row(ApiKey.DELETE_SHARE_GROUP_STATE, "handleDeleteShareGroupStateRequest",
        whole(CLUSTER_ACTION, CLUSTER), resolves=("topics.topic_id",)),
    row(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, "handleReadShareGroupStateSummaryRequest",
        whole(CLUSTER_ACTION, CLUSTER), resolves=("topics.topic_id",)),
    # Kafka's coordinator checks CREATE for internal topics that it creates. Here none are created.
    row(ApiKey.STREAMS_GROUP_HEARTBEAT, "handleStreamsGroupHeartbeat",
        whole(READ, GROUP, "group_id"),
        whole_by(DESCRIBE, c.topology_resources, TOPIC),
        keep(CREATE, TOPIC, "status.status_detail", name="create internal topics",
             unless=on_cluster(CREATE), log_if_denied=True)),
    row(ApiKey.STREAMS_GROUP_DESCRIBE, "handleStreamsGroupDescribe", each(DESCRIBE, GROUP),
        keep(DESCRIBE, TOPIC, "groups.topology", name="show", log_if_denied=True),
        hides=True, operations_of=(GROUP,),
        note="A group with a topic that may not be described is refused with 29."),
    row(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "handleDescribeShareGroupOffsetsRequest",
        each(DESCRIBE, GROUP, "group_id", name="group"),
        each(DESCRIBE, TOPIC, "topic_name", name="topic"),
        keep(DESCRIBE, TOPIC, "topics.topic_name", name="show", log_if_denied=True),
        own=offsets.check_share_group_offsets),
    row(ApiKey.ALTER_SHARE_GROUP_OFFSETS, "handleAlterShareGroupOffsetsRequest",
        whole(READ, GROUP, "group_id"),
        each(READ, TOPIC, "topic_name")),
    row(ApiKey.DELETE_SHARE_GROUP_OFFSETS, "handleDeleteShareGroupOffsetsRequest",
        whole(DELETE, GROUP, "group_id"),
        each(READ, TOPIC, "topic_name")),
)
# fmt: on

GATE: Final[Mapping[int, Row]] = {each_row.key: each_row for each_row in _ROWS}
"""The row of each API key."""

for _row in _ROWS:
    require_enforceable(_row)
