"""WriteTxnMarkers: ends transactions in partitions, whatever their coordinator knows of them."""

from __future__ import annotations

from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.producers import Producer
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from aclbroker.turns import in_turns

_SECOND_VERSION: Final = 2
"""The version of transactions whose ends bump the producer's epoch (KIP-890)."""


def write_txn_markers(
    backend: MemoryBackend, _rights: RequestRights, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """End transactions in partitions, as `kafka-transactions.sh abort` does with one that hangs.

    As in Kafka, a marker for no partition is left out of the answer.
    """
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(marker.producer_id, _topics(backend, marker))
            for marker in in_turns(request.markers)
            if any(topic.partition_indexes for topic in in_turns(marker.topics))
        ]
    )


def _topics(
    backend: MemoryBackend, marker: WritableTxnMarker
) -> list[WritableTxnMarkerTopicResult]:
    return [
        WritableTxnMarkerTopicResult(
            topic.name,
            [
                WritableTxnMarkerPartitionResult(index, _marked(backend, marker, topic.name, index))
                for index in in_turns(topic.partition_indexes)
            ],
        )
        for topic in in_turns(marker.topics)
        if topic.partition_indexes
    ]


def _marked(backend: MemoryBackend, marker: WritableTxnMarker, topic: str, index: int) -> ErrorCode:
    partition = backend.cluster.topics.partition(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer = partition.log.producers.by_id.get(marker.producer_id)
    code = ErrorCode.NONE if producer is None else _check(producer, marker)
    if code:
        return code
    try:
        partition.log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commits=marker.transaction_result,
            now_ms=backend.cluster.clock.now_ms(),
            coordinator_epoch=marker.coordinator_epoch,
        )
    except LogError as why:
        return why.code
    return ErrorCode.NONE


def _check(producer: Producer, marker: WritableTxnMarker) -> ErrorCode:
    """Return why a marker must not follow what a producer has written."""
    bumps = marker.transaction_version >= _SECOND_VERSION
    if marker.producer_epoch < producer.epoch + bumps:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if marker.coordinator_epoch < producer.coordinator_epoch:
        return ErrorCode.TRANSACTION_COORDINATOR_FENCED
    return ErrorCode.NONE
