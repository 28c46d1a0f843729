"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords, of a cluster in memory."""

from __future__ import annotations

from collections import Counter
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.catalog import INTERNAL_TOPICS
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.times import find_latest_time, find_time
from aclbroker.broker.memory.topics import Partition
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from aclbroker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from aclbroker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from aclbroker.turns import in_turns

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING: Final = -6
_FIRST_VERSIONS: Final = {
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING: 11,
}
_COMMITTED: Final = 1
_ANY_EPOCH: Final = -1


def of_leader(
    backend: MemoryBackend,
    rights: RequestRights,
    name: str | None,
    index: int,
    epoch: int = _ANY_EPOCH,
) -> Partition | ErrorCode:
    """Return a partition that this node leads, or why there is none.

    ``epoch`` is the leader epoch that the client knows, -1 if none.
    """
    partition = backend.cluster.topics.partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.leader != backend.node(rights).node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if epoch != _ANY_EPOCH and epoch != partition.log.leader_epoch:
        is_old = epoch < partition.log.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
    return partition


def list_offsets(
    backend: MemoryBackend, rights: RequestRights, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Find the offset of each partition that a time, or a number that stands for one, is at."""
    counts = Counter(
        (topic.name, entry.partition_index)
        for topic in in_turns(request.topics)
        for entry in in_turns(topic.partitions)
    )

    def partition(name: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        index = asked.partition_index
        if counts[name, index] > 1:
            return ListOffsetsPartitionResponse(index, ErrorCode.INVALID_REQUEST)
        return _listed(backend, rights, request, name, asked)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    partition(topic.name, entry)
                    for entry in in_turns(
                        {
                            entry.partition_index: entry for entry in in_turns(topic.partitions)
                        }.values()
                    )
                ],
            )
            for topic in in_turns(request.topics)
        ]
    )


def _listed(
    backend: MemoryBackend,
    rights: RequestRights,
    request: ListOffsetsRequest,
    name: str,
    asked: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    if rights.context.api_version < _FIRST_VERSIONS.get(asked.timestamp, 0) or (
        asked.timestamp < _EARLIEST_PENDING
    ):
        return ListOffsetsPartitionResponse(index, ErrorCode.UNSUPPORTED_VERSION)
    found = of_leader(backend, rights, name, index, asked.current_leader_epoch)
    if isinstance(found, ErrorCode):
        return ListOffsetsPartitionResponse(index, found)
    committed = request.isolation_level == _COMMITTED
    timestamp, offset = _found(found.log, asked.timestamp, committed=committed)
    epoch = found.log.leader_epoch if offset >= 0 else _ANY_EPOCH
    return ListOffsetsPartitionResponse(index, 0, [offset], timestamp, offset, epoch)


def _found(log: PartitionLog, timestamp: int, *, committed: bool) -> tuple[int, int]:
    """Return a timestamp, -1 for what is none, and an offset, -1 if nothing was found."""
    end = log.last_stable_offset if committed else log.end_offset
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return -1, log.start_offset
    if timestamp == _LATEST:
        return -1, end
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING):
        return -1, -1
    found = find_latest_time(log) if timestamp == _MAX_TIMESTAMP else find_time(log, timestamp)
    return (-1, -1) if found is None or found.offset >= end else found


def offset_for_leader_epoch(
    backend: MemoryBackend, rights: RequestRights, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Answer where the leader epoch asked for, or the last one before it, ends."""

    def partition(name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
        found = of_leader(backend, rights, name, asked.partition, asked.current_leader_epoch)
        if isinstance(found, ErrorCode):
            return EpochEndOffset(found, asked.partition)
        return EpochEndOffset(0, asked.partition, *found.log.epoch_end(asked.leader_epoch))

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [partition(topic.topic, entry) for entry in in_turns(topic.partitions)],
            )
            for topic in in_turns(request.topics)
        ]
    )


def delete_records(
    backend: MemoryBackend, rights: RequestRights, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete the records before an offset of each partition; -1 stands for the end.

    As in Kafka, a topic that is only compacted keeps its records (POLICY_VIOLATION), and so does an
    internal one (INVALID_TOPIC_EXCEPTION).
    """

    def partition(name: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        index = asked.partition_index
        found = of_leader(backend, rights, name, index)
        if name in INTERNAL_TOPICS and found is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            found = ErrorCode.INVALID_TOPIC_EXCEPTION
        if isinstance(found, ErrorCode):
            return DeleteRecordsPartitionResult(index, low_watermark=-1, error_code=found)
        if not found.log.settings.deletes:
            code = ErrorCode.POLICY_VIOLATION
            return DeleteRecordsPartitionResult(index, low_watermark=-1, error_code=code)
        try:
            found.log.delete_before(asked.offset)
        except LogError as why:
            return DeleteRecordsPartitionResult(index, low_watermark=-1, error_code=why.code)
        return DeleteRecordsPartitionResult(index, low_watermark=found.log.start_offset)

    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                topic.name, [partition(topic.name, entry) for entry in in_turns(topic.partitions)]
            )
            for topic in in_turns(request.topics)
        ]
    )
