"""Metadata, DescribeCluster and FindCoordinator of a cluster in memory, of one node or several."""

from __future__ import annotations

import re
from typing import Final

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.backends.backend import Node, cluster_operations
from aclbroker.broker.backends.declared import cluster as standalone
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.catalog import (
    GROUPS_TOPIC,
    INTERNAL_TOPICS,
    SHARES_TOPIC,
    TRANSACTIONS_TOPIC,
)
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory import MemoryCluster
from aclbroker.broker.memory.placing import creates_itself
from aclbroker.broker.memory.topics import Topic
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
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

_FIRST_VERSION_WITH_KEYS: Final = 4
_SHARES: Final = 2
_TOPIC_OF: Final = (GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARES_TOPIC)
"""The coordinator's topic, by the type of the key."""
_MOST_DIGITS: Final = 100
_OF_SHARE: Final = re.compile(
    r"(?P<group>.*):(?P<topic_id>[\w-]{22}(?:==)?):(?P<index>[+-]?[0-9]+)", re.ASCII | re.DOTALL
)
"""What a share coordinator is asked for: the group may have colons, an id of a topic has none."""


def metadata(
    backend: MemoryBackend, rights: RequestRights, request: MetadataRequest
) -> MetadataResponse:
    """Answer with all nodes and the topics asked for; create those that may be created.

    As in Kafka, the topic that a request has just created is answered with
    UNKNOWN_TOPIC_OR_PARTITION, so that its client asks again.
    """
    nodes = backend.nodes(rights)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(*node) for node in nodes],
        cluster_id=backend.cluster_id,
        controller_id=nodes[0].node_id,
        topics=[_described(backend, name) for name in in_turns(_names(backend, rights, request))],
    )
    for name in in_turns(rights.creatable):
        if name is not None:
            _create(backend.cluster, name)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(rights)
    if request.include_topic_authorized_operations:
        for topic in in_turns(response.topics):
            topic.topic_authorized_operations = rights.operations(
                ResourceType.TOPIC, topic.name or ""
            )
    return response


def _create(cluster: MemoryCluster, name: str) -> None:
    topics, count, replicas = cluster.topics, cluster.settings.partitions, cluster.settings.replicas
    nodes = cluster.node_ids
    if creates_itself(name, count, replicas, nodes, topics.by_name, topics.partitions):
        topics.create(name, count, replicas=replicas)


def describe_cluster(
    backend: MemoryBackend, rights: RequestRights, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Answer with all nodes (KIP-700); a request for controllers is refused."""
    response = standalone.describe_cluster(backend, rights, request)
    if not response.error_code:
        nodes = backend.nodes(rights)
        response.controller_id = nodes[0].node_id
        response.brokers = [DescribeClusterBroker(*node) for node in nodes]
    return response


def find_coordinator(
    backend: MemoryBackend, rights: RequestRights, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name the node that coordinates each group, transactional id or partition of a share group.

    As in Kafka, the request creates the coordinator's topic.
    """
    nodes = {node.node_id: node for node in backend.nodes(rights)}

    def coordinator(key: str) -> Node:
        return nodes[backend.cluster.coordinator(key)]

    def found(key: str) -> Coordinator:
        if request.key_type == _SHARES and not _is_of_share(key):
            return Coordinator(key, -1, "", -1, ErrorCode.INVALID_REQUEST)
        return Coordinator(key, *coordinator(key))

    if rights.context.api_version >= _FIRST_VERSION_WITH_KEYS:
        coordinators = [found(key) for key in in_turns(request.coordinator_keys)]
        if any(not each.error_code for each in in_turns(coordinators)):
            backend.cluster.topics.create_internal(_TOPIC_OF[request.key_type])
        return FindCoordinatorResponse(coordinators=coordinators)
    node = coordinator(request.key)
    backend.cluster.topics.create_internal(_TOPIC_OF[request.key_type])
    return FindCoordinatorResponse(node_id=node.node_id, host=node.host, port=node.port)


def _is_of_share(key: str) -> bool:
    """Tell whether a key names a share group, a topic's id and a partition (KIP-932)."""
    match = _OF_SHARE.fullmatch(key)
    return match is not None and match["group"].strip() != "" and _is_int32(match["index"])


def _is_int32(text: str) -> bool:
    return len(text) <= _MOST_DIGITS and -(1 << 31) <= int(text) < 1 << 31


def _names(backend: MemoryBackend, rights: RequestRights, request: MetadataRequest) -> list[str]:
    if request.topics is None:
        return rights.visible("show", backend.cluster.topics.topics)
    names = dict.fromkeys(
        [
            backend.cluster.topics.name_of(topic.topic_id) if topic.name is None else topic.name
            for topic in in_turns(request.topics)
        ]
    )
    return [name for name in in_turns(names) if name is not None]


def _described(backend: MemoryBackend, name: str) -> MetadataResponseTopic:
    topic = backend.cluster.topics.by_name.get(name)
    internal = name in INTERNAL_TOPICS
    if topic is not None:
        return MetadataResponseTopic(0, name, topic.topic_id, internal, _partitions(topic))
    code = ErrorCode.INVALID_TOPIC_EXCEPTION
    if is_topic_name(name):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(code, name, is_internal=internal)


def _partitions(topic: Topic) -> list[MetadataResponsePartition]:
    return [
        MetadataResponsePartition(
            0, each.index, each.leader, 0, list(each.replicas), list(each.replicas)
        )
        for each in in_turns(topic.partitions)
    ]
