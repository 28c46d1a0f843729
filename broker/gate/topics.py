"""Metadata and DescribeTopicPartitions: what exists is told only to who may describe it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.engine import Verdict, check_needs, refused, unchanged
from aclbroker.broker.gate.need import Profile, Row
from aclbroker.broker.gate.rights import May, Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from aclbroker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from aclbroker.protocol.primitives import ZERO_UUID

_FIRST_VERSION_WITH_TOPIC_IDS: Final = 12
# A plain int: `struct` packs it three times as fast as a member of an IntEnum.
_DENIED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def may_create(request: MetadataRequest) -> bool:
    """if a missing topic is to be created"""
    return request.allow_auto_topic_creation


def check_metadata(
    row: Row, request: MetadataRequest, may: May, topics: Topics, _profile: Profile
) -> Verdict:
    """Take out the topics that may not be described or, where they would be, created.

    What goes on asks for all topics with None alone, in version 0 too, where the wire has an empty
    list for that.
    """
    version = may.context.api_version
    asked = request.topics
    if asked is None or (version == 0 and not asked):
        everything = dataclasses.replace(request, topics=None)
        return Verdict(everything, None, partial(_describable_only, may))
    names = [topic.name for topic in asked]
    has_ids = any([topic.topic_id != ZERO_UUID for topic in asked])  # noqa: C419 # twice as fast
    if (has_ids or None in names) and any(_is_malformed(topic, version) for topic in asked):
        why = Denial(ErrorCode.INVALID_REQUEST, "Topics need a name, or an id from version 12 on.")
        named = [dataclasses.replace(topic, name=topic.name or "") for topic in asked]
        answer = row.answer(version)
        response = answer.refuse(MetadataResponse, MetadataRequest(named), why)
        response.error_code = why[0]
        return refused(response)
    if has_ids:
        return _check_ids(request, asked, may, topics)
    return _check_names(request, asked, dict.fromkeys(names, 1), may, topics)


def _is_malformed(topic: MetadataRequestTopic, version: int) -> bool:
    has_id = topic.topic_id != ZERO_UUID
    if version < _FIRST_VERSION_WITH_TOPIC_IDS:
        return has_id or topic.name is None
    return not has_id and topic.name is None


def _describable_only(may: May, response: Any) -> Any:
    names = dict.fromkeys((topic.name for topic in response.topics), 1)
    seen = may.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, names, quietly=True)
    response.topics = [topic for topic in response.topics if topic.name in seen]
    return response


def _check_ids(
    request: MetadataRequest, asked: Iterable[MetadataRequestTopic], may: May, topics: Topics
) -> Verdict:
    # As in Kafka, one topic id makes the whole request one by ids: names in it are passed over.
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
    names = {topic_id: topics.name_of(topic_id) for topic_id in ids}
    known: dict[str | None, int] = dict.fromkeys(filter(None, names.values()), 1)
    seen = may.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, known)
    refusals = {}
    for topic_id, name in names.items():
        if name is None:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
        elif name in seen:
            continue
        else:
            code = _DENIED
        refusals[topic_id] = MetadataResponseTopic(code, None, topic_id)
    kept = [MetadataRequestTopic(topic_id, None) for topic_id in ids if topic_id not in refusals]

    def complete(response: Any) -> Any:
        found = {topic.topic_id: topic for topic in response.topics}
        response.topics = [refusals.get(topic_id) or found[topic_id] for topic_id in ids]
        return response

    return Verdict(dataclasses.replace(request, topics=kept), None, complete)


def _check_names(
    request: MetadataRequest,
    asked: Iterable[MetadataRequestTopic],
    names: Mapping[str | None, int],
    may: May,
    topics: Topics,
) -> Verdict:
    seen = may.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    if request.allow_auto_topic_creation and topics.auto_creates:
        seen = _creatable(seen, may, topics)
    if len(seen) == len(names):
        return Verdict(request, None, unchanged)
    kept = [topic for topic in asked if topic.name in seen]

    def complete(response: Any) -> Any:
        found = {topic.name: topic for topic in response.topics}
        response.topics = [
            found[name] if name in seen else MetadataResponseTopic(_DENIED, name) for name in names
        ]
        return response

    return Verdict(dataclasses.replace(request, topics=kept), None, complete)


def _creatable(seen: set[str | None], may: May, topics: Topics) -> set[str | None]:
    """Take out the missing topics that the session may not create."""
    missing = {name for name in seen if not topics.exists(name or "")}
    if not missing or may.cluster(AclOperation.CREATE, quietly=True):
        return seen
    created = may.allowed(AclOperation.CREATE, ResourceType.TOPIC, dict.fromkeys(missing, 1))
    return (seen - missing) | created


def check_delete_topics(
    row: Row, request: Any, may: May, topics: Topics, profile: Profile
) -> Verdict:
    """Name a topic that was given by its id and is refused, if it may be described."""
    verdict = check_needs(row, request, may, topics, profile)

    def name_described(response: Any) -> Any:
        hidden = [
            entry
            for entry in response.responses
            if entry.name is None and entry.error_code == _DENIED
        ]
        names = {entry.topic_id: topics.name_of(entry.topic_id) for entry in hidden}
        seen = may.allowed(
            AclOperation.DESCRIBE,
            ResourceType.TOPIC,
            dict.fromkeys(names.values(), 1),
            quietly=True,
        )
        for entry in hidden:
            if names[entry.topic_id] in seen:
                entry.name = names[entry.topic_id]
        return response

    if verdict.request is None:
        return refused(name_described(verdict.response))
    return Verdict(
        verdict.request, None, lambda response: name_described(verdict.complete(response))
    )


def check_alter_share_group_offsets(
    row: Row, request: Any, may: May, topics: Topics, profile: Profile
) -> Verdict:
    """Give the topics of the answer, refused ones too, the ids that they have in Kafka's."""
    verdict = check_needs(row, request, may, topics, profile)

    def identify(response: Any) -> Any:
        for entry in response.responses:
            if topics.exists(entry.topic_name):
                entry.topic_id = topics.id_of(entry.topic_name)
        return response

    if verdict.request is None:
        return refused(identify(verdict.response))
    return Verdict(verdict.request, None, lambda response: identify(verdict.complete(response)))


def check_describe_topic_partitions(
    _row: Row, request: Any, may: May, _topics: Topics, _profile: Profile
) -> Verdict:
    """Take out the topics that may not be described; an empty list asks for all topics."""
    if not request.topics:
        return Verdict(request, None, partial(_describable_only, may))
    names: dict[str | None, int] = dict.fromkeys((topic.name for topic in request.topics), 1)
    seen = may.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    refusals = [
        DescribeTopicPartitionsResponseTopic(_DENIED, name) for name in names if name not in seen
    ]

    kept = [topic for topic in request.topics if topic.name in seen]
    if not kept:
        # Not to go on with an empty list, which asks for all topics.
        return refused(DescribeTopicPartitionsResponse(topics=refusals))

    def complete(response: Any) -> Any:
        response.topics = [*response.topics, *refusals]
        return response

    return Verdict(dataclasses.replace(request, topics=kept), None, complete)
