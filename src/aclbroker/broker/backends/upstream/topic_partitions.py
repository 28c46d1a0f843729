"""DescribeTopicPartitions: pages of topics, of which some may be hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

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


def forward_describe_topic_partitions(
    backend: UpstreamBackend, rights: RequestRights, request: DescribeTopicPartitionsRequest
) -> Later:
    """Forward a DescribeTopicPartitions, whose cursor must name one of the topics in its list.

    If the request asks for all topics, and the cursor of the answer names a hidden one, the answer
    goes on with the topics behind it.
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
    """Return a page of topics whose cursor, if there is one, names a topic that may be seen."""
    response = read_answer(backend, rights, request, rights.context.api_version, frame)
    limit = request.response_partition_limit
    while not request.topics and response.next_cursor is not None:
        response.topics = _seen(rights, response.topics)
        if _cut(response, limit) or rights.visible("show", [response.next_cursor.topic_name]):
            break
        asked = dataclasses.replace(request, cursor=response.next_cursor)
        more = wait(backend.cluster.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, asked))
        response.topics = [*response.topics, *more.topics]
        response.next_cursor = more.next_cursor
    return response


def _seen(rights: RequestRights, topics: Sequence[Any]) -> list[Any]:
    names = set(rights.visible("show", [topic.name for topic in in_turns(topics)]))
    return [topic for topic in in_turns(topics) if topic.name in names]


def _cut(response: DescribeTopicPartitionsResponse, limit: int) -> bool:
    """Move the topics beyond the limit of partitions behind the cursor; return whether any are."""
    partitions = 0
    for number, topic in enumerate(in_turns(response.topics)):
        if number and partitions >= limit:
            first = topic.partitions[0].partition_index if topic.partitions else 0
            response.next_cursor = Cursor(topic.name or "", first)
            response.topics = response.topics[:number]
            return True
        partitions += len(topic.partitions)
    return False
