"""Produce, of a cluster in memory."""

from __future__ import annotations

from typing import Final

from aclbroker.broker.backends.declared.answers import topic_name
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.catalog import INTERNAL_TOPICS
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.batch import Batch, LogError
from aclbroker.broker.memory.topics import Partition
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from aclbroker.turns import in_turns

_ACKS: Final = (-1, 0, 1)
_FIRST_VERSION_THAT_ADDS: Final = 12
"""From here on a batch adds its partition to the transaction (KIP-890)."""

_FIRST_VERSION_THAT_ABORTS: Final = 11
"""From here on a client knows TRANSACTION_ABORTABLE."""

_FIRST_VERSION_WITH_LEADERS: Final = 10
_CLIENT_OF_KAFKA: Final = "__admin_client"
"""The only client id that may write to internal topics, as in Kafka."""

_WITHOUT_START: Final = frozenset(
    (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR)
)
_TOLD: Final = frozenset((ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS))
_UNVERIFIED: Final = (
    "Unable to verify the partition has been added to the transaction. Underlying error:"
)


class _NotVerified(LogError):
    """A reason of the coordinator of transactions, found before the log is asked."""


def produce(
    backend: MemoryBackend, rights: RequestRights, request: ProduceRequest
) -> ProduceResponse:
    """Write one batch to each partition, and answer where it is, or why it was not written."""
    leaders: set[int] = set()
    response = ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    _written(backend, rights, request, topic_name(backend, topic), entry, leaders)
                    for entry in in_turns(topic.partition_data, 1)
                ],
            )
            for topic in in_turns(request.topic_data)
        ]
    )
    if leaders:
        response.node_endpoints = [
            NodeEndpoint(*node) for node in backend.nodes(rights) if node.node_id in leaders
        ]
    return response


def _written(
    backend: MemoryBackend,
    rights: RequestRights,
    request: ProduceRequest,
    name: str,
    asked: PartitionProduceData,
    leaders: set[int],
) -> PartitionProduceResponse:
    partition = backend.cluster.topics.partition(name, asked.index)
    if partition is None:
        return _refused(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if request.acks not in _ACKS:
        return _refused(asked, ErrorCode.INVALID_REQUIRED_ACKS)
    if name in INTERNAL_TOPICS and rights.context.client_id != _CLIENT_OF_KAFKA:
        return _refused(asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    version = rights.context.api_version
    if partition.leader != backend.node(rights).node_id:
        response = _refused(asked, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if version >= _FIRST_VERSION_WITH_LEADERS:
            leaders.add(partition.leader)
            response.current_leader = LeaderIdAndEpoch(partition.leader, partition.log.leader_epoch)
        return response

    def verify(batch: Batch) -> None:
        _verify(partition, request.transactional_id, batch, version)

    try:
        appended = partition.log.append(
            asked.records, now_ms=backend.cluster.clock.now_ms(), version=version, verify=verify
        )
    except LogError as why:
        return _why(asked, partition, why)
    return PartitionProduceResponse(
        asked.index,
        ErrorCode.NONE,
        appended.first_offset,
        appended.time_ms,
        appended.start_offset,
    )


def _verify(partition: Partition, transactional_id: str | None, batch: Batch, version: int) -> None:
    """Ask the coordinator of transactions whether a producer may begin to write here in one."""
    if partition.transactions is None:
        return
    code = partition.transactions(
        transactional_id or "",
        batch.producer_id,
        batch.producer_epoch,
        partition.topic,
        partition.index,
        version >= _FIRST_VERSION_THAT_ADDS,
    )
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _FIRST_VERSION_THAT_ABORTS:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        # As in Kafka: a client that writes does not expect that code, and tries again after this.
        raise _NotVerified(ErrorCode.NOT_ENOUGH_REPLICAS, f"{_UNVERIFIED} {code.name}")
    if code:
        raise _NotVerified(code)


def _refused(asked: PartitionProduceData, code: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(asked.index, code, base_offset=-1)


def _why(
    asked: PartitionProduceData, partition: Partition, why: LogError
) -> PartitionProduceResponse:
    response = _refused(asked, why.code)
    is_of_log = why.is_checked and not isinstance(why, _NotVerified)
    if why.code not in _WITHOUT_START and is_of_log:
        response.log_start_offset = partition.log.start_offset
    if why.record_errors:
        response.record_errors = [
            BatchIndexAndErrorMessage(*error) for error in in_turns(why.record_errors)
        ]
    # Kafka tells why only of single records and of what is no batch; an exception has words then.
    if why.record_errors or why.code in _TOLD or not why.is_checked:
        response.error_message = why.message
    return response
