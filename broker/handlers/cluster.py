"""Metadata, DescribeCluster and related keys, which show this node and the declared topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from aclbroker.broker.acl.bindings import ResourceType
from aclbroker.broker.catalog import INTERNAL_TOPICS, Catalog, is_topic_name
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.services import Node, Services, cluster_operations
from aclbroker.protocol.compile.shared import SharedList
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from aclbroker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from aclbroker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from aclbroker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from aclbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_FIRST_VERSION_WITH_KEYS: Final = 4


def metadata(
    services: Services, rights: RequestRights, request: MetadataRequest
) -> MetadataResponse:
    """Answer with this node and the topics asked for; one that is not declared gets an error."""
    node, catalog = services.node(rights), services.catalog
    topics = [_topic(catalog, node.node_id, name) for name in _names(catalog, request)]
    response = MetadataResponse(0, _brokers(node), services.cluster_id, node.node_id, topics)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(rights)
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            topic.topic_authorized_operations = rights.operations(
                ResourceType.TOPIC, topic.name or ""
            )
    return response


def describe_cluster(
    services: Services, rights: RequestRights, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Answer with this node as the only broker (KIP-700); a request for controllers is refused."""
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE
                if request.endpoint_type == _CONTROLLERS
                else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            ),
            error_message=f"Endpoint type {request.endpoint_type} is not here; {_BROKERS} is.",
        )
    node = services.node(rights)
    response = DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=node.node_id,
        brokers=[DescribeClusterBroker(*node)],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(rights)
    return response


def describe_topic_partitions(
    services: Services, rights: RequestRights, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Answer with all topics at once, without regard to the request's limit of partitions."""
    names = [topic.name for topic in request.topics] or list(services.catalog.topics)
    topics = [_described_topic(services, rights, name) for name in dict.fromkeys(names)]
    if request.cursor is not None:
        for topic in topics:
            if topic.name == request.cursor.topic_name:
                topic.partitions = topic.partitions[request.cursor.partition_index :]
    return DescribeTopicPartitionsResponse(topics=topics)


def describe_log_dirs(
    _services: Services, _rights: RequestRights, _request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Answer with one log directory that holds nothing.

    The list is not empty, since Java's AdminClient takes an empty one for a refusal.
    """
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(log_dir="none", total_bytes=-1, usable_bytes=-1)]
    )


def find_coordinator(
    services: Services, rights: RequestRights, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name this node as every coordinator; it then answers with COORDINATOR_NOT_AVAILABLE."""
    node = services.node(rights)
    if rights.context.api_version >= _FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key, *node) for key in request.coordinator_keys]
        )
    return FindCoordinatorResponse(node_id=node.node_id, host=node.host, port=node.port)


def _names(catalog: Catalog, request: MetadataRequest) -> list[str]:
    """Return the names of the topics to answer with; the gate has refused unknown topic ids."""
    if request.topics is None:
        return list(catalog.topics)
    names = dict.fromkeys(
        [
            catalog.name_of(topic.topic_id) if topic.name is None else topic.name
            for topic in request.topics
        ]
    )
    return [name for name in names if name is not None]


def _missing(name: str) -> ErrorCode:
    if is_topic_name(name):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


@lru_cache
def _brokers(node: Node) -> Sequence[MetadataResponseBroker]:
    """Return the list of brokers, which is this node alone; all answers share it."""
    return SharedList([MetadataResponseBroker(*node)])


@lru_cache
def _partitions(node_id: int, count: int) -> Sequence[MetadataResponsePartition]:
    """Return a topic's ``count`` partitions; all such topics and all answers share the list."""
    return SharedList(
        MetadataResponsePartition(0, number, node_id, 0, [node_id], [node_id])
        for number in range(count)
    )


def _topic(catalog: Catalog, node_id: int, name: str) -> MetadataResponseTopic:
    internal = name in INTERNAL_TOPICS
    if not catalog.exists(name):
        return MetadataResponseTopic(_missing(name), name, is_internal=internal)
    partitions = _partitions(node_id, catalog.topics[name])
    return MetadataResponseTopic(0, name, catalog.id_of(name), internal, partitions)


def _described_topic(
    services: Services, rights: RequestRights, name: str
) -> DescribeTopicPartitionsResponseTopic:
    topic = _topic(services.catalog, services.node(rights).node_id, name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=topic.error_code,
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=partition.partition_index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replica_nodes,
                isr_nodes=partition.isr_nodes,
                # The protocol allows null here, but Java's AdminClient fails on it.
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in topic.partitions
        ],
        topic_authorized_operations=rights.operations(ResourceType.TOPIC, name),
    )
