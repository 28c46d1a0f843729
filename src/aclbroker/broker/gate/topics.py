"""Metadata, DeleteTopics and DescribeTopicPartitions, which show topics only with DESCRIBE."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from aclbroker.broker.catalog import java_order
from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.conditions import topic_to_delete
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.engine import (
    BY_ID,
    Verdict,
    denial,
    part,
    refuse,
    refused,
    single_entries,
    unchanged,
)
from aclbroker.broker.gate.rights import RequestRights, names_of
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
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
from aclbroker.turns import in_turns

_FIRST_VERSION_WITH_TOPIC_IDS: Final = 12
_NONE: Final[frozenset[str | None]] = frozenset()
# A plain int: `struct` packs it three times as fast as a member of an IntEnum.
_DENIED: Final = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def creates_missing(request: MetadataRequest) -> bool:
    """if a missing topic is to be created"""
    return request.allow_auto_topic_creation


def check_metadata(request: MetadataRequest, rights: RequestRights, topics: Topics) -> Verdict:
    """Refuse the topics that may not be described and the missing ones that may not be created.

    The request that passes has None as its topics if it asks for all of them, also in version 0,
    in which an empty list asks for all.
    """
    version = rights.context.api_version
    asked = request.topics
    if asked is None or (version == 0 and not asked):
        everything = dataclasses.replace(request, topics=None)
        return Verdict(everything, None, partial(_describable_only, rights))
    names = [topic.name for topic in in_turns(asked)]
    has_ids = any([topic.topic_id != ZERO_UUID for topic in in_turns(asked)])  # noqa: C419 # twice as fast
    if _is_malformed(asked, version, names, has_ids=has_ids):
        why = Denial(ErrorCode.INVALID_REQUEST, "Topics need a name, or an id from version 12 on.")
        named = [dataclasses.replace(topic, name=topic.name or "") for topic in in_turns(asked)]
        response = form_of(rights.row.key, version).refuse(
            MetadataResponse, MetadataRequest(named), why
        )
        response.error_code = why.code
        return refused(response)
    if has_ids:
        return _check_ids(request, asked, rights, topics)
    return _check_names(request, asked, dict.fromkeys(in_turns(names), 1), rights, topics)


def _is_malformed(
    asked: Collection[MetadataRequestTopic],
    version: int,
    names: Sequence[str | None],
    *,
    has_ids: bool,
) -> bool:
    """Return whether a topic has an id too early, or neither name nor id.

    As in Kafka, once one topic has an id those without one are passed over, whatever they have.
    """
    if version < _FIRST_VERSION_WITH_TOPIC_IDS:
        return has_ids or None in names
    return None in names and not has_ids


def _describable_only(rights: RequestRights, response: Any) -> Any:
    seen = set(rights.visible("show", [topic.name for topic in in_turns(response.topics)]))
    response.topics = [topic for topic in in_turns(response.topics) if topic.name in seen]
    return response


def _check_ids(
    request: MetadataRequest,
    asked: Collection[MetadataRequestTopic],
    rights: RequestRights,
    topics: Topics,
) -> Verdict:
    # As in Kafka, a request with one topic id is taken as one by ids, and names in it are ignored.
    ids = dict.fromkeys(topic.topic_id for topic in in_turns(asked) if topic.topic_id != ZERO_UUID)
    names = {topic_id: topics.name_of(topic_id) for topic_id in in_turns(ids)}
    seen = rights.allowed("describe", list(filter(None, names.values())))
    refusals = {}
    for topic_id, name in in_turns(names.items()):
        if name is None:
            code = int(ErrorCode.UNKNOWN_TOPIC_ID)
        elif name in seen:
            continue
        else:
            code = _DENIED
        refusals[topic_id] = MetadataResponseTopic(code, None, topic_id)
    kept = [
        MetadataRequestTopic(topic_id, None)
        for topic_id in in_turns(ids)
        if topic_id not in refusals
    ]

    def complete(response: Any) -> Any:
        found = {topic.topic_id: topic for topic in in_turns(response.topics)}
        found |= refusals
        response.topics = [found[topic_id] for topic_id in in_turns(ids) if topic_id in found]
        return response

    return Verdict(dataclasses.replace(request, topics=kept), None, complete)


def _check_names(
    request: MetadataRequest,
    asked: Collection[MetadataRequestTopic],
    names: Mapping[str | None, int],
    rights: RequestRights,
    topics: Topics,
) -> Verdict:
    seen = rights.allowed("describe", names)
    created = _NONE
    need = rights.need("create")
    if need is not None and topics.auto_creates and (need.when is None or need.when(request)):
        missing = {name for name in in_turns(seen) if not topics.exists(name or "")}
        if missing:
            created = frozenset(rights.allowed("create", missing))
            seen = (seen - missing) | created
        # The topic that was said to exist may be gone by now. It must not be created without the
        # right, so only ``created`` may be.
        request = _without_creation(request) if seen != created else request
    if len(seen) == len(names):
        # As Verdict(...), whose __new__ is Python code and takes twice as long.
        return tuple.__new__(Verdict, (request, None, unchanged, created))
    kept = [topic for topic in in_turns(asked) if topic.name in seen]

    def complete(response: Any) -> Any:
        found = {topic.name: topic for topic in in_turns(response.topics) if topic.name in seen}
        response.topics = [
            found.get(name) if name in seen else MetadataResponseTopic(_DENIED, name)
            for name in in_turns(names)
            if name not in seen or name in found
        ]
        return response

    return Verdict(dataclasses.replace(request, topics=kept), None, complete, created)


def _without_creation(request: MetadataRequest) -> MetadataRequest:
    # Takes a third of the time of dataclasses.replace, which counts in every Metadata.
    return MetadataRequest(
        request.topics,
        False,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
    )


def check_delete_topics(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check DESCRIBE and DELETE on each topic, and refuse the topics that may not be deleted.

    The rules are those of Kafka's ControllerApis.deleteTopics. By name, the answer says that a
    topic does not exist only with DESCRIBE on it. By id, DELETE is enough, and the name of a
    refused topic is told only with DESCRIBE. Whether a topic exists only chooses between refusals.
    """
    form = form_of(rights.row.key, rights.context.api_version)
    request, denials = single_entries(form, request, rights)
    echo = form.echo
    entries = getattr(request, echo.asked) if echo is not None else ()
    targets = {}
    for position, entry in enumerate(in_turns(entries)):
        if position not in denials:
            target = topic_to_delete(entry, request, topics)
            if isinstance(target, int):
                denials[position] = Denial(target, ErrorCode(target).name)
            else:
                targets[position] = target[1] or ""
    names = dict.fromkeys(targets.values(), 1)
    described, deletable = rights.allowed("describe", names), rights.allowed("delete", names)
    tells_of_absence = rights.need("describe") is not None
    hidden: dict[bytes, str] = {}
    for position, name in in_turns(targets.items()):
        entry = entries[position]
        by_id = not isinstance(entry, str) and entry.name is None
        if name in deletable and (by_id or name in described):
            continue
        if tells_of_absence and not by_id and name in described and not topics.exists(name):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            denials[position] = Denial(code, code.name)
            continue
        if by_id:
            hidden[entry.topic_id] = name
        need = "delete" if name in described else "describe"
        denials[position] = _delete_denial(rights, need, BY_ID if by_id else name)
    seen = described if tells_of_absence else rights.allowed("show name", hidden.values())
    named = {topic_id: name for topic_id, name in in_turns(hidden.items()) if name in seen}
    verdict = part(form, request, rights, denials)
    if verdict.request is None:
        return refused(_name_topics(named, verdict.response))
    allowed = getattr(verdict.request, echo.asked) if echo is not None else ()
    return verdict._replace(
        complete=lambda response: _name_topics(named, _completed(verdict, allowed, response))
    )


def _completed(verdict: Verdict, allowed: Sequence[Any], response: Any) -> Any:
    """Complete an answer that names topics more fully than the request, by name and by id.

    It has an entry for each that was ``allowed``, in order.
    """
    answered = list(response.responses)
    # Before version 6 the entries of a request are names, all of them.
    if not answered or len(answered) != len(allowed) or isinstance(allowed[0], str):
        return verdict.complete(response)
    told = [(entry.name, entry.topic_id) for entry in in_turns(answered)]
    for entry, asked in zip(in_turns(answered), in_turns(allowed), strict=True):
        entry.name, entry.topic_id = asked.name, asked.topic_id
    response = verdict.complete(response)
    for entry, (name, topic_id) in zip(in_turns(answered), in_turns(told), strict=True):
        entry.name, entry.topic_id = name, topic_id
    return response


def _delete_denial(rights: RequestRights, name: str, shown: str) -> Denial:
    need = rights.declared(name)
    return denial(_DENIED, need.operation, need.types[0], shown)


def _name_topics(names: Mapping[bytes, str], response: Any) -> Any:
    for entry in in_turns(response.responses):
        if entry.name is None and entry.error_code == _DENIED:
            entry.name = names.get(entry.topic_id)
    return response


def check_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, rights: RequestRights, _topics: Topics
) -> Verdict:
    """Refuse the topics that may not be described; an empty list asks for all topics.

    Topics before the cursor are left out, as in Kafka's DescribeTopicPartitionsRequestHandler.
    """
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    asked = [topic for topic in in_turns(request.topics) if not _is_before(topic.name, first)]
    if cursor is not None and (
        cursor.partition_index < 0
        or (request.topics and all(topic.name != first for topic in in_turns(asked)))
    ):
        why = Denial(ErrorCode.INVALID_REQUEST, "The cursor is not in the list, or negative.")
        return refuse(request, rights, why)
    if not request.topics:
        return Verdict(request, None, partial(_describable_from, rights, first))
    names = names_of(asked, "name")
    seen = rights.allowed("describe", names)
    refusals = [
        DescribeTopicPartitionsResponseTopic(_DENIED, name)
        for name in in_turns(names)
        if name not in seen
    ]
    kept = [topic for topic in in_turns(asked) if topic.name in seen]
    if not kept:
        # The request must not pass with an empty list, which would ask for all topics.
        return refused(DescribeTopicPartitionsResponse(topics=refusals))

    def complete(response: Any) -> Any:
        answered = [topic for topic in in_turns(response.topics) if topic.name in seen]
        response.topics = [*answered, *refusals]
        return response

    return Verdict(dataclasses.replace(request, topics=kept), None, complete)


def _is_before(name: str, other: str) -> bool:
    return java_order(name) < java_order(other)


def _describable_from(rights: RequestRights, first: str, response: Any) -> Any:
    response.topics = [
        topic for topic in in_turns(response.topics) if not _is_before(topic.name, first)
    ]
    return _describable_only(rights, response)
