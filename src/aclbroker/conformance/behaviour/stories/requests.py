"""Requests that several stories send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aclbroker.conformance.behaviour.stories.batches import TIME_MS, batch
from aclbroker.conformance.behaviour.story import Teller
from aclbroker.protocol.messages import ApiKey, fetch, list_offsets, produce


def write(
    teller: Teller,
    topic: str,
    *records: bytes | None,
    acks: int = -1,
    transactional_id: str | None = None,
) -> produce.ProduceRequest:
    """Return a Produce of these bytes, one for each partition of a topic from 0 on."""
    data = [produce.PartitionProduceData(index, each) for index, each in enumerate(records)]
    entry = produce.TopicProduceData(teller.name(topic), id_of(teller, topic), data)
    return produce.ProduceRequest(transactional_id, acks, 1_000, [entry])


def id_of(teller: Teller, topic: str) -> bytes:
    """Return the id of a story's topic, and one that no topic has for another name."""
    return teller.ids.get(topic, b"an id of no topic")[:16]


def fill(teller: Teller, topic: str, *records: bytes, time_ms: int = TIME_MS) -> None:
    """Let the super user write batches to the partition 0 of a topic."""
    some = (batch(*each, time_ms=time_ms) for each in ((b"one",), (b"two", b"three"), (b"four",)))
    for each in records or some:
        teller.admin(ApiKey.PRODUCE, write(teller, topic, each), 12)


def fetched(
    index: int, offset: int = 0, most: int = 1 << 20, epoch: int = -1, last_epoch: int = -1
) -> fetch.FetchPartition:
    """Return what a Fetch asks for of a partition."""
    return fetch.FetchPartition(
        index, epoch, offset, last_fetched_epoch=last_epoch, partition_max_bytes=most
    )


def read(
    teller: Teller,
    partitions: Mapping[str, Sequence[fetch.FetchPartition]],
    session: tuple[int, int] = (0, -1),
    **more: Any,
) -> fetch.FetchRequest:
    """Return a Fetch of partitions by their topics, in a session: its id and its epoch."""
    topics = [
        fetch.FetchTopic(teller.name(topic), id_of(teller, topic), entries)
        for topic, entries in partitions.items()
    ]
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **more}
    return fetch.FetchRequest(
        session_id=session[0], session_epoch=session[1], topics=topics, **values
    )


def offsets_at(
    teller: Teller, topic: str, *timestamps: int, isolation: int = 0, epoch: int = -1
) -> list_offsets.ListOffsetsRequest:
    """Return a ListOffsets of the partitions of a topic, each at one of the timestamps."""
    entries = [
        list_offsets.ListOffsetsPartition(index, epoch, timestamp, max_num_offsets=1)
        for index, timestamp in enumerate(timestamps)
    ]
    return offsets_of(teller, {topic: entries}, isolation)


def offsets_of(
    teller: Teller,
    topics: Mapping[str, Iterable[list_offsets.ListOffsetsPartition]],
    isolation: int = 0,
) -> list_offsets.ListOffsetsRequest:
    """Return a ListOffsets of partitions by their topics."""
    return list_offsets.ListOffsetsRequest(
        -1,
        isolation,
        [
            list_offsets.ListOffsetsTopic(teller.name(name), list(entries))
            for name, entries in topics.items()
        ],
        1_000,
    )
