"""Requests that would create, change or empty topics: they are told what is true of such a topic.

No topic can be created here, but a request can be validated. What exists is empty, and stays as it
is declared.
"""

from __future__ import annotations

from secrets import token_bytes
from typing import Any, Final

from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.backends.declared.answers import because, by_topic, with_codes
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.catalog import METADATA_TOPIC
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from aclbroker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from aclbroker.turns import in_turns

_TELLS_THAT_DELETION_IS_DISABLED: Final = 3
"""The first version of DeleteTopics with a code for that (KIP-322)."""

_TO_THE_END: Final = -1
"""The offset in a DeleteRecords that stands for the end of the partition."""


def create_topics(
    backend: DeclaredBackend, rights: RequestRights, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Refuse each topic or, with ``validate_only``, confirm that it could be created.

    A session without DESCRIBE_CONFIGS on the topic gets TOPIC_AUTHORIZATION_FAILED in place of the
    configuration, beside the success, as from Kafka.
    """
    shown = rights.allowed("show configs", [topic.name for topic in in_turns(request.topics)])
    results = []
    for topic in in_turns(request.topics):
        why = because(_code(backend, topic.name, tried=request.validate_only))
        result = CreatableTopicResult(topic.name, error_code=why.code)
        if why.code:
            result.error_message = why.message
        elif topic.name in shown:
            result.num_partitions = topic.num_partitions
            result.replication_factor = topic.replication_factor
        else:
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            result.configs = None
        if not why.code:
            result.topic_id = token_bytes(16)
        results.append(result)
    return CreateTopicsResponse(topics=results)


def _code(backend: DeclaredBackend, name: str, *, tried: bool) -> ErrorCode:
    if name == METADATA_TOPIC:
        return ErrorCode.INVALID_REQUEST
    if not is_topic_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if backend.catalog.exists(name):
        return ErrorCode.TOPIC_ALREADY_EXISTS
    return ErrorCode.NONE if tried else ErrorCode.POLICY_VIOLATION


def delete_topics(backend: DeclaredBackend, rights: RequestRights, request: Any) -> Any:
    """Answer for each topic that exists that topics cannot be deleted, as ``delete.topic.enable``
    does in Kafka.
    """
    tells = rights.context.api_version >= _TELLS_THAT_DELETION_IS_DISABLED
    code = ErrorCode.TOPIC_DELETION_DISABLED if tells else ErrorCode.POLICY_VIOLATION
    return by_topic(code)(backend, rights, request)


def create_partitions(backend: DeclaredBackend, rights: RequestRights, request: Any) -> Any:
    """Refuse each topic: its partitions cannot become fewer, and here not more either."""

    def code_of(backend: DeclaredBackend, entry: Any) -> ErrorCode:
        count = backend.catalog.topics.get(entry.name)
        if count is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if entry.count <= count:
            return ErrorCode.INVALID_PARTITIONS
        return ErrorCode.NONE if request.validate_only else ErrorCode.POLICY_VIOLATION

    return with_codes(code_of)(backend, rights, request)


def delete_records(
    backend: DeclaredBackend, _rights: RequestRights, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Confirm for each partition that nothing is before offset 0; others are beyond its end."""

    def partition(name: str, asked: Any) -> DeleteRecordsPartitionResult:
        index = asked.partition_index
        if not backend.catalog.has_partition(name, index):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif asked.offset not in (0, _TO_THE_END):
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            return DeleteRecordsPartitionResult(index, 0, ErrorCode.NONE)
        return DeleteRecordsPartitionResult(index, -1, code)

    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                topic.name,
                [partition(topic.name, asked) for asked in in_turns(topic.partitions)],
            )
            for topic in in_turns(request.topics)
        ]
    )
