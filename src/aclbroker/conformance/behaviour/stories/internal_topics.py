"""A story about the topics in which a broker keeps its own state."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.catalog import INTERNAL_TOPICS
from aclbroker.broker.client.blocking import BlockingClient, NoAnswer
from aclbroker.conformance.behaviour.stories.batches import batch
from aclbroker.conformance.behaviour.story import Story, StoryEnded, Teller
from aclbroker.protocol.messages import ApiKey, delete_records, metadata, produce

_BROKEN: Final = batch(b"value", key=b"key")[:-1] + b"\7"
"""A batch with a wrong checksum. No broker keeps it, so the broker's own state stays whole."""

_PARTITIONS: Final = (0, 9_999)
"""A partition of every topic, and one that no topic has."""

_CLIENT_IDS: Final = ("__admin_client", "__admin")
"""The client id with which Kafka lets a client write to internal topics, and one like it."""

_TIMEOUT_MS: Final = 1_000


def internal_topics(teller: Teller) -> None:
    """Describe each internal topic, write to it, and delete its records before offset 0: none."""
    for name in sorted(INTERNAL_TOPICS):
        about = metadata.MetadataRequest([metadata.MetadataRequestTopic(name=name)], False)
        [found] = teller.admin(ApiKey.METADATA, about, 12).topics
        if found.error_code:
            raise StoryEnded
        teller.call(found.topic_id, f"id of {name}")
        described = teller.quietly(ApiKey.METADATA, about, 12)
        # The number of partitions is a setting of each broker.
        described.topics[0].partitions = []
        teller.keep(ApiKey.METADATA, described, name, 12)
        _write(teller, name, found.topic_id)
        deletions = [delete_records.DeleteRecordsPartition(index, 0) for index in _PARTITIONS]
        topics = [delete_records.DeleteRecordsTopic(name, deletions)]
        deletion = delete_records.DeleteRecordsRequest(topics, _TIMEOUT_MS)
        teller.ask(ApiKey.DELETE_RECORDS, deletion, name)


def _write(teller: Teller, name: str, topic_id: bytes) -> None:
    data = [produce.PartitionProduceData(index, _BROKEN) for index in _PARTITIONS]
    entry = produce.TopicProduceData(name, topic_id, data)
    request: Any = produce.ProduceRequest(None, -1, _TIMEOUT_MS, [entry])
    teller.ask_each(ApiKey.PRODUCE, request, name)
    version = max(teller.versions(ApiKey.PRODUCE), default=None)
    if version is None:
        raise StoryEnded
    for client_id in _CLIENT_IDS:
        client = BlockingClient(teller.client().socket, client_id)
        try:
            answer = client.ask(ApiKey.PRODUCE, version, request)
        except (NoAnswer, OSError) as error:
            raise StoryEnded from error
        teller.keep(ApiKey.PRODUCE, answer, f"{name} as {client_id}", version)


STORIES: Final = (Story(internal_topics, newest_only=True, on_cluster=True),)
