"""Metadata, DescribeCluster and related keys, which show this node and the declared topics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.backends.backend import Node, cluster_operations
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.catalog import INTERNAL_TOPICS, Catalog, java_order
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.compile import encoder
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
    Cursor,
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
from aclbroker.turns import in_turns

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_FIRST_VERSION_WITH_KEYS: Final = 4
_MOST_PARTITIONS: Final = 2000
_FEW: Final = 8
_REMEMBERED: Final = 256
_SHORT: Final = 4096
"""How many bytes an answer has at most that is kept encoded."""


def metadata(
    backend: DeclaredBackend, rights: RequestRights, request: MetadataRequest
) -> MetadataResponse | bytes:
    """Answer with this node and the topics asked for; one that is not declared gets an error."""
    node, catalog = backend.node(rights), backend.catalog
    names = _names(catalog, rights, request)
    topics: Sequence[MetadataResponseTopic]
    shared = len(names) <= _FEW and not request.include_topic_authorized_operations
    if shared and all(map(catalog.exists, names)):
        if rights.is_whole and not request.include_cluster_authorized_operations:
            version = rights.context.api_version
            encoded = _encoded(version, backend.cluster_id, catalog, node, *names)
            if encoded is not None:
                return encoded
        topics = _few_topics(catalog, node.node_id, *names)
    else:
        topics = [_topic(catalog, node.node_id, name) for name in in_turns(names)]
    response = MetadataResponse(0, _brokers(node), backend.cluster_id, node.node_id, topics)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(rights)
    if request.include_topic_authorized_operations:
        for topic in in_turns(response.topics):
            topic.topic_authorized_operations = rights.operations(
                ResourceType.TOPIC, topic.name or ""
            )
    return response


def describe_cluster(
    backend: DeclaredBackend, rights: RequestRights, request: DescribeClusterRequest
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
    node = backend.node(rights)
    response = DescribeClusterResponse(
        cluster_id=backend.cluster_id,
        controller_id=node.node_id,
        brokers=[DescribeClusterBroker(*node)],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(rights)
    return response


def describe_topic_partitions(
    backend: DeclaredBackend, rights: RequestRights, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Answer with as many partitions as the request allows, by name of their topics.

    No more than `_MOST_PARTITIONS` are described, as in Kafka by default
    (``max.request.partition.size.limit``). The cursor of the answer tells where to go on.
    """
    catalog, cursor = backend.catalog, request.cursor
    names = {topic.name for topic in in_turns(request.topics)}
    if not names:
        # Before the limit is applied: the cursor must not name what the session may not see.
        seen = rights.visible("show", catalog.topics)
        first_name = java_order(cursor.topic_name) if cursor else b""
        names = {name for name in in_turns(seen) if java_order(name) >= first_name}
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    response = DescribeTopicPartitionsResponse(topics=topics)
    room = max(1, min(_MOST_PARTITIONS, request.response_partition_limit))
    in_order = sorted([(java_order(name), name) for name in in_turns(names)])
    for _, name in in_turns(in_order):
        if room == 0:
            response.next_cursor = Cursor(name, 0)
            break
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        topic = _described_topic(backend, rights, name, slice(first, first + room))
        topics.append(topic)
        room -= len(topic.partitions)
        if first + len(topic.partitions) < catalog.topics.get(name, 0):
            response.next_cursor = Cursor(name, first + len(topic.partitions))
            break
    return response


def describe_log_dirs(
    _backend: DeclaredBackend, _rights: RequestRights, _request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Answer with one log directory that holds nothing.

    The list is not empty, since Java's AdminClient takes an empty one for a refusal.
    """
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(log_dir="none", total_bytes=-1, usable_bytes=-1)]
    )


def find_coordinator(
    backend: DeclaredBackend, rights: RequestRights, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name this node as every coordinator; it then answers with COORDINATOR_NOT_AVAILABLE."""
    node = backend.node(rights)
    if rights.context.api_version >= _FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(
            coordinators=[Coordinator(key, *node) for key in in_turns(request.coordinator_keys)]
        )
    return FindCoordinatorResponse(node_id=node.node_id, host=node.host, port=node.port)


def _names(catalog: Catalog, rights: RequestRights, request: MetadataRequest) -> list[str]:
    """Return the names of the topics to answer with; the gate has refused unknown topic ids."""
    if request.topics is None:
        return rights.visible("show", catalog.topics)
    names = dict.fromkeys(
        [
            catalog.name_of(topic.topic_id) if topic.name is None else topic.name
            for topic in in_turns(request.topics)
        ]
    )
    return [name for name in in_turns(names) if name is not None]


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
        for number in in_turns(range(count))
    )


@lru_cache(_REMEMBERED)
def _encoded(
    version: int, cluster_id: str, catalog: Catalog, node: Node, *names: str
) -> bytes | None:
    """Return the encoded answer about a few topics; None if it is too large to be kept."""
    topics = _few_topics(catalog, node.node_id, *names)
    response = MetadataResponse(0, _brokers(node), cluster_id, node.node_id, topics)
    found = encoder(MetadataResponse, version)(response)
    return found if isinstance(found, bytes) and len(found) <= _SHORT else None


@lru_cache(_REMEMBERED)
def _few_topics(catalog: Catalog, node_id: int, *names: str) -> Sequence[MetadataResponseTopic]:
    """Return a few topics; clients ask for the same ones again and again, and share the answer."""
    return SharedList(_topic(catalog, node_id, name) for name in in_turns(names))


def _topic(catalog: Catalog, node_id: int, name: str) -> MetadataResponseTopic:
    internal = name in INTERNAL_TOPICS
    if not catalog.exists(name):
        return MetadataResponseTopic(_missing(name), name, is_internal=internal)
    partitions = _partitions(node_id, catalog.topics[name])
    return MetadataResponseTopic(0, name, catalog.id_of(name), internal, partitions)


def _described_topic(
    backend: DeclaredBackend, rights: RequestRights, name: str, described: slice
) -> DescribeTopicPartitionsResponseTopic:
    topic = _topic(backend.catalog, backend.node(rights).node_id, name)
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
            for partition in in_turns(topic.partitions[described])
        ],
        topic_authorized_operations=rights.operations(ResourceType.TOPIC, name),
    )
