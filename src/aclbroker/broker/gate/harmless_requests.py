"""Fields of requests about which the gate asks for no right, with the reasons.

tests/gate/test_every_request_field.py walks all fields of the requests that a gateway forwards. The
gate asks for a right on a field's value, or a right on the cluster guards the whole request. All
other fields are listed here. Nothing else reads these tables.

A field is harmless if its value reaches no resource beyond those that the gate has asked about. A
Kafka asks for no right on these fields, either. ``[]`` ends the name of an array of values, and
``=null`` stands for an array that is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PARTITION: Final = "A partition of the topic beside it, on which a right is asked for."
_OFFSET: Final = "A place in the topic beside it, on which a right is asked for."
_EPOCH: Final = "A leader epoch, by which a broker refuses outdated requests."
_MEMBER: Final = "A member of the group, on which a right is asked for."
_COUNT: Final = "A number that says how much is to be read, or how long to wait."
_FLAG: Final = "Yes or no."
_PRODUCER: Final = "It goes with the transactional id; a broker compares it with that of the last."
_OPERATIONS: Final = "The gateway puts the session's own operations in their place."
_TASK: Final = "A part of the group's topology, by a number that Kafka Streams gave it."
_REPORT: Final = "A member reports its own state to its group."
_SETTING: Final = "A setting of the resource beside it, on which a right is asked for."
_ALL_TOPICS: Final = "It asks for all topics. Those without DESCRIBE are left out."
_SIZE: Final = "A property of the topic beside it, which the session may create."

EVERYWHERE: Final[Mapping[str, str]] = {
    "index": _PARTITION,
    "partition": _PARTITION,
    "partition_index": _PARTITION,
    "partitions[]": _PARTITION,
    "partition_indexes[]": _PARTITION,
    "committed_offset": _OFFSET,
    "fetch_offset": _OFFSET,
    "first_offset": _OFFSET,
    "last_offset": _OFFSET,
    "offset": _OFFSET,
    "start_offset": _OFFSET,
    "timestamp": _OFFSET,
    "committed_leader_epoch": _EPOCH,
    "current_leader_epoch": _EPOCH,
    "last_fetched_epoch": _EPOCH,
    "leader_epoch": _EPOCH,
    "committed_metadata": "A note beside an offset, which clients alone read.",
    "commit_timestamp": "The time of an offset.",
    "retention_time_ms": "How long an offset is kept.",
    "group_instance_id": _MEMBER,
    "instance_id": _MEMBER,
    "member_id": _MEMBER,
    "generation_id": "A count of the group's members, by which a coordinator refuses old requests.",
    "generation_id_or_member_epoch": "A count, by which a coordinator refuses old requests.",
    "member_epoch": "A count, by which a coordinator refuses old requests.",
    "protocol_type": "The kind of client that a group has.",
    "reason": "Words of a client for the coordinator's log.",
    "rack_id": "Where the client is, so that it reads from a broker nearby.",
    "rebalance_timeout_ms": "How long a group waits for the member.",
    "session_timeout_ms": "How long a group waits for the member.",
    "timeout_ms": "How long a broker may take for the answer.",
    "transaction_timeout_ms": "How long a transaction may take.",
    "max_bytes": _COUNT,
    "max_wait_ms": _COUNT,
    "min_bytes": _COUNT,
    "max_num_offsets": _COUNT,
    "max_records": _COUNT,
    "batch_size": _COUNT,
    "partition_max_bytes": _COUNT,
    "response_partition_limit": _COUNT,
    "isolation_level": "Whether records of open transactions are left out.",
    "acks": "How many brokers must have the records before the answer.",
    "producer_epoch": _PRODUCER,
    "producer_id": _PRODUCER,
    "v3_and_below_producer_epoch": _PRODUCER,
    "v3_and_below_producer_id": _PRODUCER,
    "committed": "Whether the transaction is committed or aborted.",
    "require_stable": "Whether offsets of open transactions are refused.",
    "include_authorized_operations": _OPERATIONS,
    "include_cluster_authorized_operations": _OPERATIONS,
    "include_topic_authorized_operations": _OPERATIONS,
    "include_documentation": _FLAG,
    "validate_only": "Whether a change is only tried.",
    "acknowledge_types[]": "Whether records of the topic beside it were processed.",
    "is_renew_ack": "Whether the session keeps records of the topics that the request names.",
    "share_acquire_mode": "How strictly the numbers of records are kept.",
    "broker_ids[]": "Brokers for the replicas of the topic beside it, as any client may choose.",
    "config_operation": "Whether the setting beside it is set, deleted, or changed in part.",
    "num_partitions": _SIZE,
    "replication_factor": _SIZE,
    "count": "The number of partitions of the topic beside it, which the session may alter.",
    "subtopology_id": _TASK,
    "client_instance_id": "An id that the broker made for the client; any client may push metrics.",
}
"""The reasons for fields that are harmless in every request, by the name of the field."""

HARMLESS: Final[Mapping[str, str]] = {
    "Produce topic_data.partition_data.records": (
        "Records for the topic beside it. Their attributes decide about further rights: "
        "`broker.gate.conditions.has_transactional_records`."
    ),
    "Produce transactional_id": (
        "A broker uses it only for a transactional batch, for which the gate asks for WRITE on it."
    ),
    "Fetch session_id": (
        "A session that another connection has begun is unknown to a gateway, which sends 0."
    ),
    "Fetch session_epoch": "A count; with the session's id it names a session of the connection.",
    "Fetch forgotten_topics_data.topic": "It leaves the session of the connection.",
    "Fetch forgotten_topics_data.topic_id": "It leaves the session of the connection.",
    "Fetch cluster_id": "A broker reads it only in requests between controllers.",
    "Fetch topics.partitions.log_start_offset": "A broker reads it only if a follower asks.",
    "Fetch topics.partitions.high_watermark": "A broker reads it only if a follower asks.",
    "Fetch topics.partitions.replica_directory_id": (
        "A broker reads it only in requests between controllers."
    ),
    "Fetch replica_state.replica_epoch": "A broker reads it only if a follower asks.",
    "ListOffsets replica_id": (
        "A follower gets the end of the log, with the records that not all replicas have. A Kafka "
        "asks a follower for DESCRIBE alone, too."
    ),
    "OffsetForLeaderEpoch replica_id": (
        "A broker answers a follower as a consumer. A Kafka asks both for DESCRIBE alone."
    ),
    "Metadata topics=null": _ALL_TOPICS,
    "OffsetFetch topics=null": _ALL_TOPICS,
    "OffsetFetch groups.topics=null": _ALL_TOPICS,
    "JoinGroup protocols.name": "An assignor, by a name that the group's clients agree on.",
    "JoinGroup protocols.metadata": (
        "A member's subscription. The leader of a classic group reads it, and the broker does not. "
        "If the group has members of the newer protocol, the broker assigns its topics without "
        "asking for rights, also in a Kafka. The member then needs READ to fetch."
    ),
    "SyncGroup assignments.assignment": (
        "An assignment of the group's leader, which members read. To fetch they need READ."
    ),
    "SyncGroup protocol_name": "An assignor, by a name that the group's clients agree on.",
    "ListGroups states_filter[]": "One of a few words, which leaves groups out of the answer.",
    "ListGroups types_filter[]": "One of a few words, which leaves groups out of the answer.",
    "CreateTopics topics.configs.name": "A setting of a topic that the session may create.",
    "CreateTopics topics.configs.value": "A setting of a topic that the session may create.",
    "DescribeConfigs resources.configuration_keys=null": "It asks for all settings.",
    "DescribeConfigs resources.configuration_keys[]": _SETTING,
    "DescribeConfigs include_synonyms": (
        "The values from which that of a topic or a group comes, with the broker's own."
    ),
    "AlterConfigs resources.configs.name": _SETTING,
    "AlterConfigs resources.configs.value": _SETTING,
    "IncrementalAlterConfigs resources.configs.name": _SETTING,
    "IncrementalAlterConfigs resources.configs.value": _SETTING,
    "CreatePartitions topics.assignments=null": "The broker chooses.",
    "DescribeCluster endpoint_type": "Brokers or controllers. Answers have no controllers.",
    "DescribeCluster include_fenced_brokers": "The answer has the gateway's addresses for them.",
    "ListTransactions state_filters[]": "One of a few words, which leaves transactions out.",
    "ListTransactions producer_id_filters[]": "A filter, which leaves transactions out.",
    "ListTransactions duration_filter": "A filter, which leaves transactions out.",
    "ListTransactions transactional_id_pattern": (
        "A filter, which leaves transactions out. Those without DESCRIBE are left out as well."
    ),
    "ConsumerGroupHeartbeat subscribed_topic_names=null": "The subscription is as before.",
    "ConsumerGroupHeartbeat server_assignor": "One of a few words.",
    "ConsumerGroupHeartbeat topic_partitions=null": _REPORT,
    "ConsumerGroupHeartbeat topic_partitions.topic_id": (
        "A member reports its own partitions. The coordinator compares them with its assignment."
    ),
    "PushTelemetry subscription_id": "A number for a set of metrics, which any client may push.",
    "PushTelemetry terminating": _FLAG,
    "PushTelemetry compression_type": "A number for the form of the metrics.",
    "PushTelemetry metrics": "Figures of the client for the cluster's plugin. Any client may push.",
    "DescribeTopicPartitions cursor.topic_name": (
        "A place in the order of names. Topics without DESCRIBE are left out from there on."
    ),
    "ShareGroupHeartbeat subscribed_topic_names=null": "The subscription is as before.",
    "ShareFetch forgotten_topics_data.topic_id": "It leaves the session of the connection.",
    "ShareAcknowledge share_session_epoch": (
        "A count. All topics whose records are acknowledged are in the request."
    ),
    "StreamsGroupHeartbeat endpoint_information_epoch": "A count.",
    "StreamsGroupHeartbeat topology.epoch": "A count.",
    "StreamsGroupHeartbeat topology.subtopologies.state_changelog_topics.partitions": _SIZE,
    "StreamsGroupHeartbeat topology.subtopologies.repartition_source_topics.partitions": _SIZE,
    "StreamsGroupHeartbeat topology.subtopologies.state_changelog_topics.topic_configs.key": _SIZE,
    "StreamsGroupHeartbeat topology.subtopologies.state_changelog_topics.topic_configs.value": (
        _SIZE
    ),
    "StreamsGroupHeartbeat topology.subtopologies.repartition_source_topics.topic_configs.key": (
        _SIZE
    ),
    "StreamsGroupHeartbeat topology.subtopologies.repartition_source_topics.topic_configs.value": (
        _SIZE
    ),
    "StreamsGroupHeartbeat topology.subtopologies.copartition_groups.source_topics[]": (
        "The number of a topic in the topology."
    ),
    "StreamsGroupHeartbeat topology.subtopologies.copartition_groups.source_topic_regex[]": (
        "The number of an expression in the topology, which has none."
    ),
    "StreamsGroupHeartbeat topology.subtopologies.copartition_groups.repartition_source_topics[]": (
        "The number of a topic in the topology."
    ),
    "StreamsGroupHeartbeat active_tasks=null": _REPORT,
    "StreamsGroupHeartbeat standby_tasks=null": _REPORT,
    "StreamsGroupHeartbeat warmup_tasks=null": _REPORT,
    "StreamsGroupHeartbeat task_offsets=null": _REPORT,
    "StreamsGroupHeartbeat task_end_offsets=null": _REPORT,
    "StreamsGroupHeartbeat process_id": "An id that a client made for itself.",
    "StreamsGroupHeartbeat user_endpoint.host": (
        "Where a member answers interactive queries, for the members of its group."
    ),
    "StreamsGroupHeartbeat user_endpoint.port": (
        "Where a member answers interactive queries, for the members of its group."
    ),
    "StreamsGroupHeartbeat client_tags=null": _REPORT,
    "StreamsGroupHeartbeat client_tags.key": "A tag that a client chose.",
    "StreamsGroupHeartbeat client_tags.value": "A tag that a client chose.",
    "StreamsGroupHeartbeat shutdown_application": (
        "It ends the members of the group, on which a right is asked for."
    ),
    "DescribeShareGroupOffsets groups.topics=null": _ALL_TOPICS,
}
"""The reasons for single fields, by the name of the API and the path of the field."""
