"""The named functions of the table: when a need applies, and which resource an entry is about.

docs/gate.md prints the docstring of a condition (a function that is given as ``when``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from aclbroker.acl.authorizer import RequestContext
from aclbroker.acl.bindings import CLUSTER_NAME, ResourceType
from aclbroker.acl.topic_names import is_topic_name
from aclbroker.broker.catalog import INTERNAL_TOPICS, METADATA_TOPIC
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.need import Target
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.fetch import FetchResponse
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns, pause

GROUP_COORDINATOR: Final = 0
TRANSACTION_COORDINATOR: Final = 1
SHARE_COORDINATOR: Final = 2

TOPIC_CONFIG: Final = 2
BROKER_CONFIG: Final = 4
BROKER_LOGGER_CONFIG: Final = 8
CLIENT_METRICS_CONFIG: Final = 16
GROUP_CONFIG: Final = 32
_DELETE_CONFIG: Final = 1
_CLUSTER_CONFIGS: Final = (BROKER_CONFIG, BROKER_LOGGER_CONFIG, CLIENT_METRICS_CONFIG)
_KNOWN_CONFIGS: Final = frozenset((TOPIC_CONFIG, GROUP_CONFIG, *_CLUSTER_CONFIGS))

# Positions in a record batch of format 2. Its length counts the bytes after that field.
_BATCH_LENGTH: Final = slice(8, 12)
_BATCH_MAGIC: Final = 16
_BATCH_ATTRIBUTES: Final = slice(21, 23)
_BATCH_PRODUCER_ID: Final = slice(43, 51)
_BATCH_OVERHEAD: Final = 12
_TRANSACTIONAL: Final = 0x10


def _batches(request: Any) -> Iterator[bytes]:
    """Yield the first bytes of each record batch, up to its producer id."""
    for topic in in_turns(request.topic_data):
        for partition in in_turns(topic.partition_data):
            records = partition.records or b""
            start = 0
            while start + _BATCH_PRODUCER_ID.stop <= len(records):
                head = records[start : start + _BATCH_PRODUCER_ID.stop]
                if head[_BATCH_MAGIC] < 2:
                    break
                yield head
                pause()
                size = int.from_bytes(head[_BATCH_LENGTH], "big", signed=True)
                if size <= 0:
                    break
                start += _BATCH_OVERHEAD + size


def has_transactional_records(request: Any) -> bool:
    """if a batch is transactional"""
    return any(
        int.from_bytes(head[_BATCH_ATTRIBUTES], "big") & _TRANSACTIONAL
        for head in _batches(request)
    )


def has_idempotent_records(request: Any) -> bool:
    """if a batch has a producer id and is not transactional"""
    return any(
        int.from_bytes(head[_BATCH_PRODUCER_ID], "big", signed=True) >= 0
        and not int.from_bytes(head[_BATCH_ATTRIBUTES], "big") & _TRANSACTIONAL
        for head in _batches(request)
    )


def is_follower(request: Any) -> bool:
    """if a follower asks (its replica id is a broker's)"""
    return bool(max(request.replica_id, request.replica_state.replica_id) >= 0)


def is_consumer(request: Any) -> bool:
    """if a consumer asks"""
    return not is_follower(request)


def is_transactional(request: Any) -> bool:
    """with a transactional id"""
    return request.transactional_id is not None


def is_idempotent(request: Any) -> bool:
    """without a transactional id"""
    return request.transactional_id is None


def finds_share_coordinator(request: Any) -> bool:
    """for a share coordinator"""
    return bool(request.key_type == SHARE_COORDINATOR)


def finds_other_coordinator(request: Any) -> bool:
    """for a group or transaction coordinator"""
    return not finds_share_coordinator(request)


def _by_coordinator_type(key_type: int, key: str | None) -> Target:
    if key_type == GROUP_COORDINATOR:
        return ResourceType.GROUP, key
    if key_type == TRANSACTION_COORDINATOR:
        return ResourceType.TRANSACTIONAL_ID, key
    return ErrorCode.INVALID_REQUEST


def coordinator_key(entry: str, request: Any, _topics: Topics) -> Target:
    """Find the resource whose coordinator is asked for; its type is in the request."""
    return _by_coordinator_type(request.key_type, entry)


def coordinator_keys(request: Any) -> Iterable[Target]:
    """Find the same in versions whose requests have a single key."""
    return [_by_coordinator_type(request.key_type, request.key)]


def wants_two_phase_commit(request: Any) -> bool:
    """with two-phase commit"""
    return bool(request.enable2_pc)


def topic_by_id(entry: Any, _request: Any, topics: Topics) -> Target:
    """Find an entry's topic by its id; an unknown id, and the zero id, are errors."""
    name = topics.name_of(entry.topic_id)
    return ErrorCode.UNKNOWN_TOPIC_ID if name is None else (ResourceType.TOPIC, name)


def config_resource(entry: Any, _request: Any, _topics: Topics) -> Target:
    """Find the resource that a configuration belongs to."""
    if entry.resource_type == TOPIC_CONFIG:
        return ResourceType.TOPIC, entry.resource_name
    if entry.resource_type == GROUP_CONFIG:
        return ResourceType.GROUP, entry.resource_name
    if entry.resource_type in _CLUSTER_CONFIGS:
        return ResourceType.CLUSTER, CLUSTER_NAME
    return ErrorCode.INVALID_REQUEST


def unknown_config_type(request: Any, _context: RequestContext, _topics: Topics) -> Denial | None:
    """Refuse every entry of a DescribeConfigs if one has an unknown type, as Kafka does."""
    for resource in in_turns(request.resources):
        kind = resource.resource_type
        if kind not in _KNOWN_CONFIGS:
            return Denial(ErrorCode.INVALID_REQUEST, f"There is no resource type {kind}.")
    return None


def altered_config(entry: Any, request: Any, topics: Topics) -> Target:
    """Find the resource whose configuration is altered key by key (IncrementalAlterConfigs).

    Errors in the entry come before any right, as in Kafka's ConfigAdminManager.preprocess: a
    repeated key, a null value that is not a deletion, and a broker other than this one.
    """
    if _is_malformed(entry, lambda each: each.config_operation != _DELETE_CONFIG):
        return ErrorCode.INVALID_REQUEST
    if entry.resource_type == BROKER_CONFIG and _is_of_another(entry, topics):
        return ErrorCode.INVALID_REQUEST
    return config_resource(entry, request, topics)


def replaced_config(entry: Any, request: Any, topics: Topics) -> Target:
    """Find the resource whose configuration is replaced (AlterConfigs); loggers are an error."""
    if entry.resource_type == BROKER_LOGGER_CONFIG or _is_malformed(entry, lambda _each: True):
        return ErrorCode.INVALID_REQUEST
    if entry.resource_type == BROKER_CONFIG and _is_of_another(entry, topics):
        return ErrorCode.INVALID_REQUEST
    return config_resource(entry, request, topics)


def _is_malformed(entry: Any, needs_value: Callable[[Any], bool]) -> bool:
    names = [config.name for config in in_turns(entry.configs)]
    return len(set(names)) < len(names) or any(
        config.value is None and needs_value(config) for config in in_turns(entry.configs)
    )


def _is_of_another(entry: Any, topics: Topics) -> bool:
    return entry.resource_name not in ("", str(topics.node_id))


def creatable_topic(entry: Any, _request: Any, _topics: Topics) -> Target:
    """Find a topic to be created; the topic of the cluster's metadata is an error."""
    if entry.name == METADATA_TOPIC:
        return ErrorCode.INVALID_REQUEST
    return ResourceType.TOPIC, entry.name


def valid_topic(entry: Any, _request: Any, _topics: Topics) -> Target:
    """Find an entry's topic; a name that no topic can have is an error."""
    if not is_topic_name(entry.name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ResourceType.TOPIC, entry.name


def transaction_topic(entry: Any, _request: Any, _topics: Topics) -> Target:
    """Find a topic to be written in a transaction; an internal one is an error."""
    if entry.name in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ResourceType.TOPIC, entry.name


def topic_to_delete(entry: Any, _request: Any, topics: Topics) -> Target:
    """Find a topic to be deleted by name or by id; before version 6 the entry is the name."""
    if isinstance(entry, str):
        return ResourceType.TOPIC, entry
    if (entry.topic_id == ZERO_UUID) == (entry.name is None):
        return ErrorCode.INVALID_REQUEST
    if entry.name is not None:
        return ResourceType.TOPIC, entry.name
    name = topics.name_of(entry.topic_id)
    return ErrorCode.UNKNOWN_TOPIC_ID if name is None else (ResourceType.TOPIC, name)


def subscribed_topics(request: Any) -> Iterable[str]:
    """Return the topics that a member subscribes to by name."""
    return dict.fromkeys(in_turns(request.subscribed_topic_names or ()))


def topology_resources(request: Any) -> Iterable[Target]:
    """Find the topics of a streams group's topology; invalid and internal names are errors."""
    names = _topology_names(request)
    if any(name in INTERNAL_TOPICS or not is_topic_name(name) for name in in_turns(names)):
        return [ErrorCode.STREAMS_INVALID_TOPOLOGY]
    return [(ResourceType.TOPIC, name) for name in in_turns(names)]


def _topology_names(request: Any) -> Collection[str]:
    names: dict[str, None] = {}
    for part in in_turns(request.topology.subtopologies if request.topology else ()):
        names |= dict.fromkeys(in_turns(part.source_topics))
        names |= dict.fromkeys(in_turns(part.repartition_sink_topics))
        names |= dict.fromkeys(info.name for info in in_turns(part.repartition_source_topics))
        names |= dict.fromkeys(info.name for info in in_turns(part.state_changelog_topics))
    return names


def is_for_another(request: Any, context: RequestContext) -> bool:
    """for another owner than oneself"""
    owner = token_owner(request)
    return owner is not None and owner != context.session.principals[0]


def token_owner(request: Any) -> str | None:
    """Return the owner of a token to be created; None means that it is the requester."""
    if not request.owner_principal_name or request.owner_principal_type is None:
        return None
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def sync_without_protocol(request: Any, context: RequestContext, _topics: Topics) -> Denial | None:
    """Refuse a SyncGroup without protocol type or name from version 5 on, as KIP-559 demands."""
    if context.api_version >= 5 and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return Denial(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "Protocol type and name are missing.")
    return None


FULL_FETCH: Final = (0, -1)
"""The epochs of a Fetch that begins a session or ends one: both name all that they want."""


def unknown_fetch_session(
    request: Any, _context: RequestContext, topics: Topics
) -> FetchResponse | None:
    """Refuse a Fetch that continues a session (KIP-227) which the broker does not keep."""
    if request.session_epoch not in FULL_FETCH and not topics.keeps_session(request.session_id):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    return None


def share_without_group(request: Any, _context: RequestContext, _topics: Topics) -> Denial | None:
    """Refuse a share request without a group id."""
    if request.group_id is None:
        return Denial(ErrorCode.INVALID_REQUEST, "The group id is null.")
    return None


# The limit of Kafka's KafkaApis.isMemberIdValid: the length of a UUID, in UTF-16 code units.
_LONGEST_MEMBER_ID: Final = 36


def invalid_member(request: Any, _context: RequestContext) -> Denial | None:
    """Refuse a share request whose member id is missing or too long.

    Kafka checks it after the right to read the group and before the rights on topics.
    """
    member = request.member_id
    if member and len(member.encode("utf-16-le")) // 2 <= _LONGEST_MEMBER_ID:
        return None
    return Denial(ErrorCode.INVALID_REQUEST, "The member id is missing or too long.")
