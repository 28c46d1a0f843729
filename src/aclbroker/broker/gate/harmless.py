"""Fields of answers that look as if they disclosed a topic, a group or a secret, and do not.

tests/gate/test_every_field.py demands that each text, each id, and each number with such a name is
declared in `broker.gate.shown` or listed here with a reason. Nothing else reads these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EVERYWHERE: Final[Mapping[str, str]] = {
    "error_message": "Kafka's words for the code beside it, about what the request names.",
    "rack": "A broker's rack; it goes with the broker's address.",
    "member_id": "An id that a coordinator made for a member.",
    "group_instance_id": "A name that a member chose for itself; it goes with its group.",
    "instance_id": "A name that a member chose for itself; it goes with its group.",
    "client_id": "What a member's client calls itself; it goes with its group.",
    "client_host": "Where a member's client is, which is no node; it goes with its group.",
    "rack_id": "Where a member's client is; it goes with its group.",
    "group_state": "One of a few words.",
    "group_type": "One of a few words.",
    "group_epoch": "A count.",
    "assignor_name": "One of a few words.",
    "protocol_type": "What kind of client a group is of; it goes with its group.",
    "protocol_name": "The assignor that a group's members agreed on.",
    "transaction_state": "One of a few words.",
    "subtopology_id": "A part of a topology, by a number that Kafka Streams gave it.",
    "replica_nodes": "Ids of nodes without an address.",
    "isr_nodes": "Ids of nodes without an address.",
    "cluster_id": "The cluster's own id, which is told to everybody.",
    "entity_type": "One of a few words.",
}
"""The reasons for fields that are harmless in every answer, by the name of the field."""

HARMLESS: Final[Mapping[str, str]] = {
    "Produce responses.partition_responses.record_errors.batch_index_error_message": (
        "Kafka's words about a record that was sent."
    ),
    "Fetch responses.partitions.records": "What is read of the topic; it goes with its topic.",
    "ShareFetch responses.partitions.records": "What is read; it goes with its topic.",
    "ShareFetch responses.partitions.acknowledge_error_message": (
        "Kafka's words for the code beside it."
    ),
    "OffsetFetch topics.partitions.metadata": "A member's note; it goes with group and topic.",
    "OffsetFetch groups.topics.partitions.metadata": (
        "A member's note; it goes with group and topic."
    ),
    "JoinGroup leader": "A member's id.",
    "DescribeGroups groups.protocol_data": "The assignor that a group's members agreed on.",
    "SaslHandshake mechanisms": "Told before authentication.",
    "ApiVersions api_keys.api_key": "Told before authentication.",
    "ApiVersions supported_features.name": "Told before authentication.",
    "ApiVersions finalized_features.name": "Told before authentication.",
    "UpdateFeatures results.feature": "One of a few words.",
    "CreateTopics topics.error_message": (
        "Kafka's words for the code beside it. Those for a collision name another topic, whose "
        "name differs from the one that was asked for in dots and underscores alone."
    ),
    "DescribeConfigs results.configs.name": "Kafka's own name for a setting.",
    "DescribeConfigs results.configs.config_source": "A number for where a value comes from.",
    "DescribeConfigs results.configs.config_type": "A number for a type.",
    "DescribeConfigs results.configs.documentation": "Kafka's own documentation.",
    "DescribeConfigs results.configs.synonyms.name": "Kafka's own name for a setting.",
    "DescribeLogDirs results.topics.partitions.is_future_key": "Yes or no.",
    "DescribeClientQuotas entries.values.key": "Kafka's own name for a quota.",
    "DescribeClientQuotas entries.values.value": "The size of a quota.",
    "DescribeQuorum topics.partitions.current_voters.replica_directory_id": (
        "The id of a directory, no topic's."
    ),
    "DescribeQuorum topics.partitions.observers.replica_directory_id": (
        "The id of a directory, no topic's."
    ),
    "DescribeQuorum nodes.listeners.name": "A listener's name; it goes with its address.",
    "DescribeCluster endpoint_type": "Brokers or controllers.",
    "GetTelemetrySubscriptions client_instance_id": "An id made for the client that asks.",
    "GetTelemetrySubscriptions requested_metrics": "Which metrics the client is to push.",
    "ListTransactions unknown_state_filters": "What the request has as a filter.",
    "ConsumerGroupDescribe groups.members.subscribed_topic_regex": (
        "A pattern that a member chose; it says nothing of what there is."
    ),
    "StreamsGroupHeartbeat status.status_detail": (
        "The coordinator's words about the topology, whose topics its members may describe."
    ),
    "StreamsGroupHeartbeat endpoint_information_epoch": "A count.",
    "StreamsGroupHeartbeat partitions_by_user_endpoint.user_endpoint.host": (
        "Where a member answers interactive queries, which is no node."
    ),
    "StreamsGroupHeartbeat partitions_by_user_endpoint.user_endpoint.port": (
        "Where a member answers interactive queries, which is no node."
    ),
    "StreamsGroupDescribe groups.members.process_id": "An id that a client made for itself.",
    "StreamsGroupDescribe groups.members.user_endpoint.host": (
        "Where a member answers interactive queries, which is no node."
    ),
    "StreamsGroupDescribe groups.members.user_endpoint.port": (
        "Where a member answers interactive queries, which is no node."
    ),
    "StreamsGroupDescribe groups.members.client_tags.key": "A tag that a client chose.",
    "StreamsGroupDescribe groups.members.client_tags.value": "A tag that a client chose.",
}
"""The reasons for single fields, by the name of the API and the path of the field."""
