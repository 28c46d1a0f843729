"""CreateTopics, DeleteTopics and CreatePartitions, of a cluster in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from aclbroker.broker.backends.declared.answers import topic_name
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.configs import setting_source
from aclbroker.broker.catalog import new_topic_id
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory import placing
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.topics import MemoryTopics
from aclbroker.broker.topic_configs import TOPIC_CONFIGS, InvalidConfig, validate
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from aclbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from aclbroker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns

_DEFAULT: Final = -1
_ONE: Final = 1
_NO_TOPIC: Final = "This server does not host this topic-partition."
_NAMED_TWICE: Final = "The topic is given both by its name and by its id."


def create_topics(
    backend: MemoryBackend, rights: RequestRights, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create each topic or, with ``validate_only``, tell whether it could be created.

    A session without DESCRIBE_CONFIGS on the topic gets TOPIC_AUTHORIZATION_FAILED in place of the
    configuration, beside the success, as from Kafka.
    """
    names = rights.allowed("show configs", [topic.name for topic in in_turns(request.topics)])
    wanted = sum(_count(backend, topic) for topic in in_turns(request.topics))
    results = []
    for topic in in_turns(request.topics, _ONE):
        try:
            placing.check_count(wanted, backend.cluster.topics.partitions)
            result = _created(
                backend, topic, is_shown=topic.name in names, tried=request.validate_only
            )
        except LogError as why:
            result = CreatableTopicResult(
                topic.name, error_code=why.code, error_message=why.message
            )
        results.append(result)
    return CreateTopicsResponse(topics=results)


def _count(backend: MemoryBackend, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == _DEFAULT:
        return backend.cluster.settings.partitions
    return max(0, topic.num_partitions)


def _created(
    backend: MemoryBackend, topic: CreatableTopic, *, is_shown: bool, tried: bool
) -> CreatableTopicResult:
    """Create a topic, unless it is only ``tried``. Raises `LogError`."""
    topics, nodes = backend.cluster.topics, backend.cluster.node_ids
    placing.check_name(topic.name, topics.by_name)
    configs = _configs(topics, topic)
    assignments: list[list[int]] = []
    if topic.assignments:
        placing.check_unset(topic.num_partitions, topic.replication_factor)
        given = [(each.partition_index, each.broker_ids) for each in in_turns(topic.assignments)]
        assignments = placing.assigned(given, nodes)
        replicas = len(assignments[0])
    else:
        replicas = topic.replication_factor
        if replicas == _DEFAULT:
            replicas = backend.cluster.settings.replicas
        placing.check_numbers(topic.num_partitions, replicas, nodes)
    count = _count(backend, topic)
    # Kafka makes up an id for a topic that is only looked at, too.
    topic_id = new_topic_id()
    if not tried:
        made = topics.create(topic.name, count, configs, assignments, replicas)
        if made is None:
            message = f"Topic '{topic.name}' already exists."
            raise LogError(ErrorCode.TOPIC_ALREADY_EXISTS, message)
        topic_id = made.topic_id
    result = CreatableTopicResult(topic.name, topic_id, error_message=None)
    if not is_shown:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.configs = None
        return result
    result.num_partitions, result.replication_factor = count, replicas
    result.configs = [
        CreatableTopicConfigs(
            name,
            topics.config(configs, name),
            config_source=setting_source(topics, configs, name),
        )
        for name in TOPIC_CONFIGS
    ]
    return result


def _configs(topics: MemoryTopics, topic: CreatableTopic) -> dict[str, str]:
    configs: dict[str, str] = {}
    for each in in_turns(topic.configs):
        if each.value is None:
            raise LogError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {shown_name(each.name)}",
            )
        configs[each.name] = each.value
    try:
        validate(configs, topics.defaults)
    except InvalidConfig as why:
        raise LogError(ErrorCode.INVALID_CONFIG, str(why)) from None
    return configs


def delete_topics(
    backend: MemoryBackend, _rights: RequestRights, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete each topic, by its name or its id.

    One that is named in both ways is not deleted, as in Kafka.
    """
    asked: list[str | DeleteTopicState] = [*request.topics, *request.topic_names]
    counts = Counter(topic_name(backend, entry) for entry in in_turns(asked))
    twice = {name for name, count in in_turns(counts.items()) if name and count > 1}
    return DeleteTopicsResponse(
        responses=[_deleted(backend, entry, twice) for entry in in_turns(asked, _ONE)]
    )


def _deleted(
    backend: MemoryBackend, entry: str | DeleteTopicState, twice: Collection[str]
) -> DeletableTopicResult:
    topics = backend.cluster.topics
    by_id = not isinstance(entry, str) and entry.topic_id != ZERO_UUID
    name = topic_name(backend, entry)
    topic = topics.by_name.get(name)
    if topic is not None and name in twice:
        code = ErrorCode.INVALID_REQUEST
        return DeletableTopicResult(name, topic.topic_id, code, _NAMED_TWICE)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic_id = entry.topic_id if isinstance(entry, DeleteTopicState) else ZERO_UUID
        return DeletableTopicResult(name or None, topic_id, code, _NO_TOPIC)
    topics.delete(topic)
    return DeletableTopicResult(name, topic.topic_id)


def create_partitions(
    backend: MemoryBackend, _rights: RequestRights, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Give each topic more partitions or, with ``validate_only``, tell whether it could have."""
    results = []
    for topic in in_turns(request.topics, _ONE):
        result = CreatePartitionsTopicResult(topic.name)
        try:
            _grow(backend, topic, tried=request.validate_only)
        except LogError as why:
            result.error_code, result.error_message = why.code, why.message
        results.append(result)
    return CreatePartitionsResponse(results=results)


def _grow(backend: MemoryBackend, asked: CreatePartitionsTopic, *, tried: bool) -> None:
    topics = backend.cluster.topics
    topic = topics.by_name.get(asked.name)
    if topic is None:
        raise LogError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if asked.count == count:
        raise LogError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if asked.count < count:
        raise LogError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {count} partition(s); {asked.count} would not "
            "be an increase.",
        )
    more = asked.count - count
    placing.check_count(more, topics.partitions)
    assignments = [list(each.broker_ids) for each in in_turns(asked.assignments or ())]
    if asked.assignments is not None:
        if len(assignments) != more:
            raise LogError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {more} additional partition(s), but only {len(assignments)} "
                "assignment(s) were specified.",
            )
        replicas = len(topic.partitions[0].replicas)
        placing.check_nodes(assignments, backend.cluster.node_ids, replicas)
    if not tried and not topics.grow(topic, asked.count, assignments):
        raise LogError(
            ErrorCode.INVALID_PARTITIONS, f"The topic {asked.name} was changed at the same time."
        )
