"""The gate: which operation on which resource each API key needs.

It reads like the table "Protocol (API key) | Operation | Resource" of Kafka's documentation, in the
order of the keys. Codes follow from the resource: 29 topic, 30 group, 31 cluster, 53 transactional
id. Where Kafka 4.3 and its documentation differ, both stand here, each under its profile.

``whole`` refuses the request, ``each`` an entry of the array that the answer echoes, ``keep``
leaves an entry out of the answer. A key without a row is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate import conditions as c
from aclbroker.broker.gate import groups, offsets, tokens, topics
from aclbroker.broker.gate.echo import (
    TOP,
    Answer,
    echo,
    entries,
    made,
    top_and_entries,
    top_or_entries,
)
from aclbroker.broker.gate.need import (
    Profile,
    Row,
    anywhere,
    each,
    exempt,
    keep,
    on_cluster,
    row,
    since,
    topic,
    until,
    whole,
    whole_by,
)
from aclbroker.broker.gate.refusals import (
    refuse_alter_replica_log_dirs,
    refuse_alter_scram_credentials,
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
IDEMPOTENT_WRITE: Final = AclOperation.IDEMPOTENT_WRITE
READ: Final = AclOperation.READ
WRITE: Final = AclOperation.WRITE

CLUSTER: Final = ResourceType.CLUSTER
GROUP: Final = ResourceType.GROUP
TOPIC: Final = ResourceType.TOPIC
TXN_ID: Final = ResourceType.TRANSACTIONAL_ID
USER: Final = ResourceType.USER

KAFKA: Final = Profile.KAFKA
DOCUMENTED: Final = Profile.DOCUMENTED

PARTITIONS: Final = echo("partitions", "partitions", "partition_index")
BARE_PARTITIONS: Final = echo("partitions", "partitions", "partition_index=")
BARE_INDEXES: Final = echo("partitions", "partition_indexes", "partition_index=")
SHARE_STATE: Final = entries(
    echo("results", "topics", "topic_id", echo("partitions", "partitions", "partition"))
)
NO_PRODUCER: Final = Answer(top=True, fill={"producer_id": -1, "producer_epoch": -1})
NO_NODE: Final[dict[str, Any]] = {"node_id": -1, "host": "", "port": -1}

# fmt: off
_ROWS: Final = (
    row(ApiKey.PRODUCE,
        whole(WRITE, TXN_ID, "transactional_id", when=c.has_transactional_records),
        whole(IDEMPOTENT_WRITE, CLUSTER, when=c.has_idempotent_records, profile=DOCUMENTED),
        each(WRITE, topic()),
        answer=entries(echo("responses", "topic_data", "name topic_id",
                            echo("partition_responses", "partition_data", "index",
                                 base_offset=-1)))),
    row(ApiKey.FETCH,
        whole(CLUSTER_ACTION, CLUSTER, when=c.is_follower,
              code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        each(READ, topic("topic"), when=c.is_consumer),
        answer=entries(echo("responses", "topics", "topic topic_id",
                            echo("partitions", "partitions", "partition_index=partition",
                                 high_watermark=-1, records=b""))),
        first=c.unknown_fetch_session),
    row(ApiKey.LIST_OFFSETS,
        each(DESCRIBE, TOPIC, "name"),
        answer=entries(echo("topics", "topics", "name", PARTITIONS))),
    row(ApiKey.METADATA,
        each(DESCRIBE, TOPIC, "name"),
        each(CREATE, TOPIC, "name", when=topics.may_create, unless=on_cluster(CREATE)),
        answer=entries(echo("topics", "topics", "name topic_id")),
        special=topics.check_metadata,
        note="A topic that may not be described is answered alike whether it exists or not; a "
             "list of all topics leaves it out."),
    row(ApiKey.LEADER_AND_ISR, whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.STOP_REPLICA, whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.UPDATE_METADATA, whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.CONTROLLED_SHUTDOWN, whole(CLUSTER_ACTION, CLUSTER)),
    row(ApiKey.OFFSET_COMMIT,
        whole(READ, GROUP, "group_id"),
        each(READ, topic()),
        answer=entries(echo("topics", "topics", "name topic_id", PARTITIONS))),
    row(ApiKey.OFFSET_FETCH,
        each(DESCRIBE, GROUP, "group_id"),
        each(DESCRIBE, topic()),
        answer={0: entries(echo("topics", "topics", "name", BARE_INDEXES)),
                2: TOP,
                8: entries(echo("groups", "groups", "group_id"))},
        special=offsets.check_offset_fetch,
        note="Topics that may not be described are left out where all are asked for."),
    row(ApiKey.FIND_COORDINATOR,
        whole(CLUSTER_ACTION, CLUSTER, when=c.finds_share_coordinator),
        whole_by(DESCRIBE, c.coordinator_keys, "GROUP or TRANSACTIONAL_ID", versions=until(3),
                 when=c.finds_other_coordinator),
        each(DESCRIBE, c.coordinator_key, versions=since(4), when=c.finds_other_coordinator,
             type_name="GROUP or TRANSACTIONAL_ID"),
        answer={0: Answer(top=True, fill=NO_NODE),
                4: entries(echo("coordinators", "coordinator_keys", "key=", **NO_NODE))},
        first=c.early_share_coordinator),
    row(ApiKey.JOIN_GROUP, whole(READ, GROUP, "group_id"),
        answer={0: TOP, 7: Answer(top=True, fill={"protocol_name": None})}),
    row(ApiKey.HEARTBEAT, whole(READ, GROUP, "group_id")),
    row(ApiKey.LEAVE_GROUP, whole(READ, GROUP, "group_id")),
    row(ApiKey.SYNC_GROUP, whole(READ, GROUP, "group_id"), first=c.sync_without_protocol),
    row(ApiKey.DESCRIBE_GROUPS, each(DESCRIBE, GROUP),
        answer=entries(echo("groups", "groups", "group_id="))),
    row(ApiKey.LIST_GROUPS,
        keep(DESCRIBE, GROUP, "groups", "group_id", unless=on_cluster(DESCRIBE)),
        note="Never refused: without rights the list is empty."),
    exempt(ApiKey.SASL_HANDSHAKE, "Part of authentication."),
    exempt(ApiKey.API_VERSIONS, "Asked before authentication."),
    row(ApiKey.CREATE_TOPICS,
        each(CREATE, c.creatable_topic, unless=on_cluster(CREATE)),
        answer=entries(echo("topics", "topics", "name")),
        once=True,
        note="The configuration of a created topic is shown with DESCRIBE_CONFIGS on it."),
    row(ApiKey.DELETE_TOPICS,
        each(DESCRIBE, c.topic_to_delete, unless=on_cluster(DELETE), profile=KAFKA),
        each(DELETE, c.existing_topic_to_delete, unless=on_cluster(DELETE), profile=KAFKA),
        each(DELETE, c.topic_to_delete, profile=DOCUMENTED),
        answer={0: entries(echo("responses", "topic_names", "name=")),
                6: entries(echo("responses", "topics", "name topic_id"))},
        once=True,
        special=topics.check_delete_topics,
        note="A topic given by its id is named only to who may describe it."),
    row(ApiKey.DELETE_RECORDS, each(DELETE, TOPIC, "name"),
        answer=entries(echo("topics", "topics", "name",
                            echo("partitions", "partitions", "partition_index",
                                 low_watermark=-1)))),
    row(ApiKey.INIT_PRODUCER_ID,
        whole(WRITE, TXN_ID, "transactional_id", when=c.is_transactional),
        whole(IDEMPOTENT_WRITE, CLUSTER, when=c.is_idempotent, unless=anywhere(WRITE, TOPIC),
              profile=KAFKA),
        whole(IDEMPOTENT_WRITE, CLUSTER, when=c.is_idempotent, profile=DOCUMENTED),
        answer=NO_PRODUCER),
    row(ApiKey.OFFSET_FOR_LEADER_EPOCH,
        each(DESCRIBE, TOPIC, "topic", unless=on_cluster(CLUSTER_ACTION)),
        answer=entries(echo("topics", "topics", "topic",
                            echo("partitions", "partitions", "partition")))),
    row(ApiKey.ADD_PARTITIONS_TO_TXN,
        whole(CLUSTER_ACTION, CLUSTER, versions=since(4)),
        whole(WRITE, TXN_ID, "v3_and_below_transactional_id", versions=until(3)),
        each(WRITE, c.transaction_topic, versions=until(3),
             spare=ErrorCode.OPERATION_NOT_ATTEMPTED),
        answer={0: entries(echo("results_by_topic_v3_and_below", "v3_and_below_topics", "name",
                                echo("results_by_partition", "partitions", "partition_index="))),
                4: TOP}),
    row(ApiKey.ADD_OFFSETS_TO_TXN,
        whole(WRITE, TXN_ID, "transactional_id"),
        whole(READ, GROUP, "group_id")),
    row(ApiKey.END_TXN, whole(WRITE, TXN_ID, "transactional_id")),
    row(ApiKey.WRITE_TXN_MARKERS,
        whole(CLUSTER_ACTION, CLUSTER, unless=on_cluster(ALTER), profile=KAFKA),
        whole(CLUSTER_ACTION, CLUSTER, profile=DOCUMENTED),
        answer=entries(echo("markers", "markers", "producer_id",
                            echo("topics", "topics", "name", BARE_INDEXES)))),
    row(ApiKey.TXN_OFFSET_COMMIT,
        whole(WRITE, TXN_ID, "transactional_id"),
        whole(READ, GROUP, "group_id"),
        each(READ, TOPIC, "name"),
        answer=entries(echo("topics", "topics", "name", PARTITIONS))),
    row(ApiKey.DESCRIBE_ACLS, whole(DESCRIBE, CLUSTER)),
    row(ApiKey.CREATE_ACLS, whole(ALTER, CLUSTER),
        answer=entries(echo("results", "creations", ""))),
    row(ApiKey.DELETE_ACLS, whole(ALTER, CLUSTER),
        answer=entries(echo("filter_results", "filters", ""))),
    row(ApiKey.DESCRIBE_CONFIGS,
        each(DESCRIBE_CONFIGS, c.config_resource, type_name="CLUSTER, TOPIC or GROUP"),
        answer=entries(echo("results", "resources", "resource_type resource_name"))),
    row(ApiKey.ALTER_CONFIGS,
        each(ALTER_CONFIGS, c.replaced_config, type_name="CLUSTER, TOPIC or GROUP"),
        answer=entries(echo("responses", "resources", "resource_type resource_name")),
        once=True),
    row(ApiKey.ALTER_REPLICA_LOG_DIRS, whole(ALTER, CLUSTER),
        answer=made(refuse_alter_replica_log_dirs)),
    row(ApiKey.DESCRIBE_LOG_DIRS, whole(DESCRIBE, CLUSTER),
        note="Before version 3 the refusal is an empty list without a code."),
    exempt(ApiKey.SASL_AUTHENTICATE, "Part of authentication."),
    row(ApiKey.CREATE_PARTITIONS, each(ALTER, TOPIC, "name"),
        answer=entries(echo("results", "topics", "name")),
        once=True),
    row(ApiKey.CREATE_DELEGATION_TOKEN,
        whole(CREATE_TOKENS, USER, names=tokens.owner),
        special=tokens.check_create,
        note="For another owner than oneself; not over PLAINTEXT, nor with a token."),
    exempt(ApiKey.RENEW_DELEGATION_TOKEN,
           "The owner and the renewers may; not over PLAINTEXT, nor with a token."),
    exempt(ApiKey.EXPIRE_DELEGATION_TOKEN,
           "The owner and the renewers may; not over PLAINTEXT, nor with a token."),
    exempt(ApiKey.DESCRIBE_DELEGATION_TOKEN,
           "Own tokens; others with DESCRIBE on the DELEGATION_TOKEN or DESCRIBE_TOKENS on the "
           "USER; not over PLAINTEXT, nor with a token."),
    row(ApiKey.DELETE_GROUPS, each(DELETE, GROUP),
        answer=entries(echo("results", "groups_names", "group_id="))),
    row(ApiKey.ELECT_LEADERS,
        whole(ALTER, CLUSTER, profile=KAFKA),
        whole(CLUSTER_ACTION, CLUSTER, profile=DOCUMENTED),
        answer=top_and_entries(echo("replica_election_results", "topic_partitions", "topic",
                                    echo("partition_result", "partitions", "partition_id=")))),
    row(ApiKey.INCREMENTAL_ALTER_CONFIGS,
        each(ALTER_CONFIGS, c.altered_config, type_name="CLUSTER, TOPIC or GROUP"),
        answer=entries(echo("responses", "resources", "resource_type resource_name")),
        once=True),
    row(ApiKey.ALTER_PARTITION_REASSIGNMENTS, whole(ALTER, CLUSTER),
        answer=top_and_entries(echo("responses", "topics", "name", PARTITIONS))),
    row(ApiKey.LIST_PARTITION_REASSIGNMENTS, whole(DESCRIBE, CLUSTER)),
    row(ApiKey.OFFSET_DELETE,
        whole(DELETE, GROUP, "group_id"),
        each(READ, TOPIC, "name"),
        answer=top_or_entries(echo("topics", "topics", "name", PARTITIONS))),
    row(ApiKey.DESCRIBE_CLIENT_QUOTAS, whole(DESCRIBE_CONFIGS, CLUSTER),
        answer=Answer(top=True, fill={"entries": None})),
    row(ApiKey.ALTER_CLIENT_QUOTAS, whole(ALTER_CONFIGS, CLUSTER),
        answer=entries(echo("entries", "entries", "entity"))),
    row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, whole(DESCRIBE, CLUSTER),
        answer=top_and_entries(echo("results", "users", ""))),
    row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, whole(ALTER, CLUSTER),
        answer=made(refuse_alter_scram_credentials)),
    row(ApiKey.DESCRIBE_QUORUM, whole(DESCRIBE, CLUSTER)),
    row(ApiKey.UPDATE_FEATURES, whole(ALTER, CLUSTER)),
    exempt(ApiKey.DESCRIBE_CLUSTER, "DESCRIBE on the CLUSTER shows its authorized operations."),
    row(ApiKey.DESCRIBE_PRODUCERS, each(READ, c.valid_topic),
        answer=entries(echo("topics", "topics", "name", BARE_INDEXES))),
    row(ApiKey.UNREGISTER_BROKER, whole(ALTER, CLUSTER)),
    row(ApiKey.DESCRIBE_TRANSACTIONS, each(DESCRIBE, TXN_ID),
        answer=entries(echo("transaction_states", "transactional_ids", "transactional_id=")),
        trim=groups.hide_transaction_topics,
        note="Topics of a transaction are shown with DESCRIBE on them."),
    row(ApiKey.LIST_TRANSACTIONS,
        keep(DESCRIBE, TXN_ID, "transaction_states", "transactional_id"),
        note="Never refused: without rights the list is empty."),
    row(ApiKey.CONSUMER_GROUP_HEARTBEAT,
        whole(READ, GROUP, "group_id"),
        whole(DESCRIBE, TOPIC, names=c.subscribed_topics)),
    row(ApiKey.CONSUMER_GROUP_DESCRIBE, each(DESCRIBE, GROUP),
        answer=entries(echo("groups", "group_ids", "group_id=")),
        trim=groups.hide_consumer_groups,
        note="A group with a topic that may not be described is refused with 29."),
    row(ApiKey.LIST_CONFIG_RESOURCES, whole(DESCRIBE_CONFIGS, CLUSTER)),
    row(ApiKey.DESCRIBE_TOPIC_PARTITIONS, each(DESCRIBE, TOPIC, "name"),
        answer=entries(echo("topics", "topics", "name")),
        special=topics.check_describe_topic_partitions,
        note="A list of all topics leaves out those that may not be described."),
    row(ApiKey.SHARE_GROUP_HEARTBEAT,
        whole(READ, GROUP, "group_id"),
        whole(DESCRIBE, TOPIC, names=c.subscribed_topics)),
    row(ApiKey.SHARE_GROUP_DESCRIBE, each(DESCRIBE, GROUP),
        answer=entries(echo("groups", "group_ids", "group_id=")),
        trim=groups.hide_share_groups,
        note="A group with a topic that may not be described is refused with 29."),
    row(ApiKey.SHARE_FETCH,
        whole(READ, GROUP, "group_id"),
        each(READ, topic(None)),
        answer=top_or_entries(echo("responses", "topics", "topic_id", PARTITIONS)),
        first=c.share_without_group),
    row(ApiKey.SHARE_ACKNOWLEDGE,
        whole(READ, GROUP, "group_id"),
        each(READ, topic(None)),
        answer=top_or_entries(echo("responses", "topics", "topic_id", PARTITIONS)),
        first=c.share_without_group),
    row(ApiKey.ADD_RAFT_VOTER, whole(ALTER, CLUSTER)),
    row(ApiKey.REMOVE_RAFT_VOTER, whole(ALTER, CLUSTER)),
    row(ApiKey.INITIALIZE_SHARE_GROUP_STATE, whole(CLUSTER_ACTION, CLUSTER), answer=SHARE_STATE),
    row(ApiKey.READ_SHARE_GROUP_STATE, whole(CLUSTER_ACTION, CLUSTER), answer=SHARE_STATE),
    row(ApiKey.WRITE_SHARE_GROUP_STATE, whole(CLUSTER_ACTION, CLUSTER), answer=SHARE_STATE),
    row(ApiKey.DELETE_SHARE_GROUP_STATE, whole(CLUSTER_ACTION, CLUSTER), answer=SHARE_STATE),
    row(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, whole(CLUSTER_ACTION, CLUSTER),
        answer=SHARE_STATE),
    row(ApiKey.STREAMS_GROUP_HEARTBEAT,
        whole(READ, GROUP, "group_id"),
        whole_by(DESCRIBE, c.topology_resources, "TOPIC")),
    row(ApiKey.STREAMS_GROUP_DESCRIBE, each(DESCRIBE, GROUP),
        answer=entries(echo("groups", "group_ids", "group_id=")),
        trim=groups.hide_streams_groups,
        note="A group with a topic that may not be described is refused with 29."),
    row(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        each(DESCRIBE, GROUP, "group_id"),
        each(DESCRIBE, TOPIC, "topic_name"),
        answer=entries(echo("groups", "groups", "group_id")),
        special=offsets.check_share_group_offsets,
        note="Topics that may not be described are left out where all are asked for."),
    row(ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        whole(READ, GROUP, "group_id"),
        each(READ, TOPIC, "topic_name"),
        answer=top_or_entries(echo("responses", "topics", "topic_name", PARTITIONS)),
        special=topics.check_alter_share_group_offsets),
    row(ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        whole(DELETE, GROUP, "group_id"),
        each(READ, TOPIC, "topic_name"),
        answer=top_or_entries(echo("responses", "topics", "topic_name"))),
)
# fmt: on

GATE: Final[Mapping[int, Row]] = {row.key: row for row in _ROWS}
"""The rows by API key."""
