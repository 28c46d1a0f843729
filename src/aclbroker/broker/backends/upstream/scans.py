"""The fields of a Produce, a Fetch and their answers that the gateway reads without decoding."""

from __future__ import annotations

from typing import Final

from aclbroker.protocol.compile.scanner import Plan
from aclbroker.protocol.messages.fetch import FetchRequest, FetchResponse
from aclbroker.protocol.messages.produce import ProduceRequest, ProduceResponse

PRODUCE_REQUEST: Final = Plan(
    ProduceRequest,
    result="(transactional_id, acks, topics, transactional, records)",
    kept={
        "transactional_id": "transactional_id",
        "acks": "acks",
        "topic_data.name": "topic",
        "topic_data.topic_id": "topic",
        "topic_data.partition_data.index": "number",
    },
    before={
        "": "transactional_id = None",
        "topic_data": "topics = []",
        "topic_data.partition_data": "partitions = []",
    },
    each={
        "topic_data": "topics.append((topic, partitions))",
        "topic_data.partition_data": "partitions.append(number)",
    },
    one_batch=True,
)
"""The transactional id, acks, and the topics with the numbers of their partitions.

The last two say whether a batch is transactional, and where the last one begins.
"""

PRODUCE_RESPONSE: Final = Plan(
    ProduceResponse,
    result="(topics,)",
    kept={"responses.name": "topic", "responses.topic_id": "topic"},
    before={"responses": "topics = []"},
    each={"responses": "topics.append(topic)"},
)
"""The topics."""

FETCH_REQUEST: Final = Plan(
    FetchRequest,
    result="(replica_id, session_id, session_epoch, topics, forgotten)",
    kept={
        "replica_id": "replica_id",
        "session_id": "session_id",
        "session_epoch": "session_epoch",
        "topics.topic": "topic",
        "topics.topic_id": "topic",
        "topics.partitions.partition": "number",
        "forgotten_topics_data.topic": "topic",
        "forgotten_topics_data.topic_id": "topic",
        "forgotten_topics_data.partitions": "numbers",
    },
    before={
        "": "replica_id, session_id, session_epoch, forgotten = -1, 0, -1, []",
        "topics": "topics = []",
        "topics.partitions": "partitions = []",
        "forgotten_topics_data": "forgotten = []",
    },
    each={
        "topics": "topics.append((topic, partitions))",
        "topics.partitions": "partitions.append((number, partition))",
        "forgotten_topics_data": "forgotten.append((topic, numbers))",
    },
    spans={"topics.partitions": "partition"},
)
"""The id of a follower, the session and its epoch, the topics, and the topics to forget.

A topic comes with the numbers and bytes of its partitions, one to forget with their numbers.
"""

FETCH_RESPONSE: Final = Plan(
    FetchResponse,
    result="(error_code, session_id, topics)",
    kept={
        "error_code": "error_code",
        "session_id": "session_id",
        "responses.topic": "topic",
        "responses.topic_id": "topic",
    },
    before={"": "error_code = session_id = 0", "responses": "topics = []"},
    each={"responses": "topics.append(topic)"},
)
"""The code of the whole answer, the session, and the topics."""
