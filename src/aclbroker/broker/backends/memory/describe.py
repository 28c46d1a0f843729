"""What a cluster in memory tells of its partitions: where they are, how large, who writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from aclbroker.broker.backends.declared import cluster as standalone
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.offsets import of_leader
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.placing import check_nodes
from aclbroker.broker.memory.producers import Producer
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from aclbroker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from aclbroker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from aclbroker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from aclbroker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from aclbroker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from aclbroker.turns import in_turns

_LOG_DIR: Final = "memory"
_NO_TOPIC: Final = "This server does not host this topic-partition."
_NOT_NEEDED: Final = "Leader election not needed for topic partition."
_FIXED: Final = "All partitions of a cluster in memory stay on their nodes."


def describe_topic_partitions(
    backend: MemoryBackend, rights: RequestRights, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Answer as a broker without data does, with the nodes that the partitions are on."""
    response = standalone.describe_topic_partitions(backend, rights, request)
    for topic in in_turns(response.topics):
        for each in in_turns(topic.partitions):
            partition = backend.cluster.topics.partition(topic.name, each.partition_index)
            if partition is not None:
                each.leader_id = partition.leader
                each.replica_nodes = each.isr_nodes = list(partition.replicas)
    return response


def describe_log_dirs(
    backend: MemoryBackend, rights: RequestRights, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Answer with the sizes of the partitions that are on this node, in one directory."""
    memory, node_id = backend.cluster, backend.node(rights).node_id
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        asked = [(name, range(count)) for name, count in in_turns(memory.topics.topics.items())]
    else:
        asked = [(topic.topic, topic.partitions) for topic in in_turns(request.topics)]
    topics = []
    for name, indices in in_turns(asked):
        sizes = [
            DescribeLogDirsPartition(index, partition.log.size)
            for index in in_turns(list(indices))
            if (partition := memory.topics.partition(name, index)) is not None
            and node_id in partition.replicas
        ]
        if sizes:
            topics.append(DescribeLogDirsTopic(name, sizes))
    room = memory.room
    free = max(0, room.limit - room.used)
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(0, _LOG_DIR, topics, room.limit, free)]
    )


def alter_replica_log_dirs(
    backend: MemoryBackend, rights: RequestRights, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Confirm moves to the only directory, where all partitions are; refuse any other."""
    memory, node_id = backend.cluster, backend.node(rights).node_id

    def code(path: str, name: str, index: int) -> ErrorCode:
        if path != _LOG_DIR:
            return ErrorCode.LOG_DIR_NOT_FOUND
        partition = memory.topics.partition(name, index)
        if partition is None or node_id not in partition.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    results = [
        AlterReplicaLogDirTopicResult(
            topic.name,
            [
                AlterReplicaLogDirPartitionResult(index, code(directory.path, topic.name, index))
                for index in in_turns(topic.partitions)
            ],
        )
        for directory in in_turns(request.dirs)
        for topic in in_turns(directory.topics)
    ]
    return AlterReplicaLogDirsResponse(results=results)


def describe_producers(
    backend: MemoryBackend, rights: RequestRights, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Answer with the producers that each partition knows (KIP-664)."""

    def partition(name: str, index: int) -> PartitionResponse:
        found = of_leader(backend, rights, name, index)
        if isinstance(found, ErrorCode):
            is_known = backend.cluster.topics.exists(name)
            return PartitionResponse(index, found, None if is_known else _NO_TOPIC)
        producers = list(found.log.producers)
        return PartitionResponse(
            index, active_producers=[_state(producer) for producer in in_turns(producers)]
        )

    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                topic.name,
                [partition(topic.name, index) for index in in_turns(topic.partition_indexes)],
            )
            for topic in in_turns(request.topics)
        ]
    )


def _state(producer: Producer) -> ProducerState:
    start = producer.transaction_start
    return ProducerState(
        producer.producer_id,
        producer.epoch,
        producer.last_sequence,
        producer.last_ms,
        producer.coordinator_epoch,
        -1 if start is None else start,
    )


def alter_partition_reassignments(
    backend: MemoryBackend, _rights: RequestRights, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Refuse to move a partition; one that is where it should be already is confirmed."""

    def partition(name: str, asked: ReassignablePartition) -> ReassignablePartitionResponse:
        found = backend.cluster.topics.partition(name, asked.partition_index)
        why: Any = None
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            why = f"Unable to find a topic named {shown_name(name)}."
            if backend.cluster.topics.exists(name):
                why = f"Unable to find partition {name}:{asked.partition_index}."
        elif asked.replicas is None:
            code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elif tuple(asked.replicas) == found.replicas:
            code = ErrorCode.NONE
        else:
            code, why = ErrorCode.INVALID_REPLICA_ASSIGNMENT, _FIXED
            try:
                check_nodes([asked.replicas], backend.cluster.node_ids)
            except LogError as wrong:
                why = wrong.message
        return ReassignablePartitionResponse(asked.partition_index, code, why)

    return AlterPartitionReassignmentsResponse(
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                topic.name, [partition(topic.name, entry) for entry in in_turns(topic.partitions)]
            )
            for topic in in_turns(request.topics)
        ],
    )


def elect_leaders(
    backend: MemoryBackend, _rights: RequestRights, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    """Answer that each partition has its preferred leader; of all, that is not said of any."""
    if request.topic_partitions is None:
        names = list(backend.cluster.topics.topics)
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(name) for name in in_turns(names)]
        )

    def partition(name: str, index: int) -> PartitionResult:
        if backend.cluster.topics.partition(name, index) is not None:
            return PartitionResult(index, ErrorCode.ELECTION_NOT_NEEDED, _NOT_NEEDED)
        why = f"No such topic as {shown_name(name)}"
        if backend.cluster.topics.exists(name):
            why = f"No such partition as {name}-{index}"
        return PartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)

    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic.topic, [partition(topic.topic, index) for index in in_turns(topic.partitions)]
            )
            for topic in in_turns(request.topic_partitions)
        ]
    )
