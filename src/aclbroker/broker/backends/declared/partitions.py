"""Produce, Fetch, the offset APIs and producer ids; declared topics are empty and stay so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from aclbroker.broker.backends.declared.answers import STANDALONE, topic_name, with_code
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from aclbroker.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from aclbroker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from aclbroker.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from aclbroker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from aclbroker.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from aclbroker.turns import in_turns

_LONGEST_WAIT_MS = 30_000


def produce(
    backend: DeclaredBackend, _rights: RequestRights, request: ProduceRequest
) -> ProduceResponse:
    """Refuse the records of every partition at once.

    A declared topic cannot store them (POLICY_VIOLATION); any other topic does not exist.
    """

    def partition(name: str, index: int) -> PartitionProduceResponse:
        if backend.catalog.has_partition(name, index):
            code, message = ErrorCode.POLICY_VIOLATION, STANDALONE
        else:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
        return PartitionProduceResponse(index, code, base_offset=-1, error_message=message)

    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    partition(topic_name(backend, topic), entry.index)
                    for entry in in_turns(topic.partition_data)
                ],
            )
            for topic in in_turns(request.topic_data)
        ]
    )


def fetch(
    backend: DeclaredBackend, _rights: RequestRights, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    """Answer that declared topics are empty, after the request's ``max_wait_ms``.

    An error is answered at once. The answer never opens a fetch session (KIP-227), so the client
    keeps sending full requests.
    """
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [
                    _fetched(backend, topic_name(backend, topic, "topic"), entry)
                    for entry in in_turns(topic.partitions)
                ],
            )
            for topic in in_turns(request.topics)
        ]
    )
    partitions = [
        entry for topic in in_turns(response.responses) for entry in in_turns(topic.partitions)
    ]
    if request.max_wait_ms <= 0 or any(entry.error_code for entry in in_turns(partitions)):
        return response
    return _after(min(request.max_wait_ms, _LONGEST_WAIT_MS), response)


async def _after(wait_ms: int, response: FetchResponse) -> FetchResponse:
    await asyncio.sleep(wait_ms / 1000)
    return response


def _fetched(backend: DeclaredBackend, name: str, asked: Any) -> PartitionData:
    if not backend.catalog.has_partition(name, asked.partition):
        # No name means that the request has a topic id that no topic has. Only a follower gets here
        # with one: the gate has refused a consumer.
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name else ErrorCode.UNKNOWN_TOPIC_ID
        return PartitionData(asked.partition, missing, high_watermark=-1, records=b"")
    code = ErrorCode.OFFSET_OUT_OF_RANGE if asked.fetch_offset else ErrorCode.NONE
    return PartitionData(
        asked.partition, code, last_stable_offset=0, log_start_offset=0, records=b""
    )


def list_offsets(
    backend: DeclaredBackend, _rights: RequestRights, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Answer offset 0 for each partition of a declared topic: it begins and ends there."""

    def partition(name: str, index: int) -> ListOffsetsPartitionResponse:
        if not backend.catalog.has_partition(name, index):
            return ListOffsetsPartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return ListOffsetsPartitionResponse(index, 0, [0], offset=0, leader_epoch=0)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                topic.name,
                [
                    partition(topic.name, entry.partition_index)
                    for entry in in_turns(topic.partitions)
                ],
            )
            for topic in in_turns(request.topics)
        ]
    )


def offset_for_leader_epoch(
    backend: DeclaredBackend, _rights: RequestRights, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Answer that leader epoch 0, the only one of a declared topic, ends at offset 0."""

    def partition(name: str, index: int) -> EpochEndOffset:
        if not backend.catalog.has_partition(name, index):
            return EpochEndOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, index)
        return EpochEndOffset(0, index, leader_epoch=0, end_offset=0)

    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic.topic,
                [partition(topic.topic, entry.partition) for entry in in_turns(topic.partitions)],
            )
            for topic in in_turns(request.topics)
        ]
    )


def init_producer_id(
    backend: DeclaredBackend, _rights: RequestRights, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Return a new producer id, which an idempotent producer needs before it sends anything.

    A request with a transactional id gets COORDINATOR_NOT_AVAILABLE.
    """
    if request.transactional_id is not None:
        return InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, producer_epoch=-1
        )
    return InitProducerIdResponse(producer_id=next(backend.producer_ids))


def add_partitions_to_txn(
    backend: DeclaredBackend, rights: RequestRights, request: AddPartitionsToTxnRequest
) -> Any:
    """Answer COORDINATOR_NOT_AVAILABLE, unless the request names partitions that do not exist.

    Kafka adds all partitions or none. So if some get UNKNOWN_TOPIC_OR_PARTITION, the others get
    OPERATION_NOT_ATTEMPTED.
    """
    answer: Any = with_code(ErrorCode.COORDINATOR_NOT_AVAILABLE)(backend, rights, request)
    asked = [
        (topic.name, partition)
        for topic in in_turns(request.v3_and_below_topics)
        for partition in in_turns(topic.partitions)
    ]
    if all(backend.catalog.has_partition(*each) for each in in_turns(asked)):
        return answer
    for topic in in_turns(answer.results_by_topic_v3_and_below):
        for partition in in_turns(topic.results_by_partition):
            exists = backend.catalog.has_partition(topic.name, partition.partition_index)
            partition.partition_error_code = (
                ErrorCode.OPERATION_NOT_ATTEMPTED
                if exists
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
    return answer
