"""CreateTopics: no topic can be created here, but a request can be validated."""

from __future__ import annotations

from secrets import token_bytes

from aclbroker.broker.catalog import METADATA_TOPIC, is_topic_name
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.answers import because
from aclbroker.broker.handlers.services import Services
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


def create_topics(
    services: Services, rights: RequestRights, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Refuse each topic or, with ``validate_only``, confirm that it could be created.

    A session without DESCRIBE_CONFIGS on the topic gets TOPIC_AUTHORIZATION_FAILED in place of the
    configuration, beside the success, as from Kafka.
    """
    shown = rights.allowed("show configs", [topic.name for topic in request.topics])
    results = []
    for topic in request.topics:
        why = because(_code(services, topic.name, tried=request.validate_only))
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


def _code(services: Services, name: str, *, tried: bool) -> ErrorCode:
    if name == METADATA_TOPIC:
        return ErrorCode.INVALID_REQUEST
    if not is_topic_name(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if services.catalog.exists(name):
        return ErrorCode.TOPIC_ALREADY_EXISTS
    return ErrorCode.NONE if tried else ErrorCode.POLICY_VIOLATION
