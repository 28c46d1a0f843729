"""DescribeTopicPartitions: pages of topics, of which some may be hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from aclbroker.broker.backends.backend import Later
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.forwarding import later, read_answer, send
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.turns import wait
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from aclbroker.protocol.primitives import Frame
from aclbroker.turns import in_turns

_MOST_PARTITIONS: Final = 2000
"""Kafka's default of ``max.request.partition.size.limit``."""


def forward_describe_topic_partitions(
    backend: UpstreamBackend, rights: RequestRights, request: DescribeTopicPartitionsRequest
) -> Later:
    """Forward a DescribeTopicPartitions, whose cursor must name one of the topics in its list.

    If the request asks for all topics, further pages fill the place of hidden topics.
    """
    cursor = request.cursor
    names = [topic.name for topic in in_turns(request.topics)]
    if cursor is not None and names and cursor.topic_name not in names:
        # The gate has refused the topic of the cursor. All others in the list come after it.
        request = dataclasses.replace(request, cursor=None)
    sent = send(backend, rights, request, rights.context.api_version)
    read = partial(_read_topic_partitions, backend, rights, request)
    return later(backend, rights, sent, read)


def _read_topic_partitions(
    backend: UpstreamBackend,
    rights: RequestRights,
    request: DescribeTopicPartitionsRequest,
    frame: Frame,
) -> Any:
    """Return a page of topics that may be seen, with as many partitions as the request allows."""
    response = read_answer(backend, rights, request, rights.context.api_version, frame)
    if request.topics:
        return response
    limit = max(1, min(_MOST_PARTITIONS, request.response_partition_limit))
    response.topics = _seen(rights, response.topics)
    while (cursor := response.next_cursor) is not None:
        is_full = _partitions(response.topics) >= limit
        if is_full and rights.visible("show", [cursor.topic_name]):
            break
        asked = DescribeTopicPartitionsRequest([], _MOST_PARTITIONS, cursor)
        more = wait(backend.cluster.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, asked))
        response.topics = _joined(response.topics, _seen(rights, more.topics))
        response.next_cursor = more.next_cursor
        _cut(response, limit)
    return response


def _seen(rights: RequestRights, topics: Sequence[Any]) -> list[Any]:
    names = set(rights.visible("show", [topic.name for topic in in_turns(topics)]))
    return [topic for topic in in_turns(topics) if topic.name in names]


def _partitions(topics: Sequence[Any]) -> int:
    return sum(len(topic.partitions) for topic in in_turns(topics))


def _joined(topics: list[Any], more: list[Any]) -> list[Any]:
    """Return the topics of two pages. The second may begin within the last topic of the first."""
    if topics and more and topics[-1].name == more[0].name:
        topics[-1].partitions = [*topics[-1].partitions, *more[0].partitions]
        more = more[1:]
    return [*topics, *more]


def _cut(response: DescribeTopicPartitionsResponse, limit: int) -> None:
    """Move the partitions beyond the limit behind the cursor."""
    left = limit
    for number, topic in enumerate(in_turns(response.topics)):
        count = len(topic.partitions)
        if count > left or not left:
            first = topic.partitions[left].partition_index if count else 0
            response.next_cursor = Cursor(topic.name or "", first)
            topic.partitions = topic.partitions[:left]
            response.topics = response.topics[: number + bool(left)]
            return
        left -= count
