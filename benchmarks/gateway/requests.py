"""The requests that the load client sends, and whether their answers are without an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import list_offsets as lo
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from benchmarks.exchange import decoded
from tests.memory.records import batch
from tests.support.client import request_frame

TOPIC, LARGE_TOPIC, FETCHED_TOPIC = "orders", "orders-large", "orders-fetched"
"""The topics of small Produces, of large ones, and of the records that are fetched."""

FETCH_BYTES: Final = 1 << 20
RECORD_BYTES: Final = 1_000_000
"""The size of a large record: its batch is just below Kafka's default limit of 1 MiB."""
SMALL_BYTES: Final = 64
_LATEST: Final = -1
_WAIT_MS: Final = 30_000


@dataclass(frozen=True)
class Request:
    """A request at a version, and a function that returns the error codes of its answer."""

    key: ApiKey
    version: int
    message: Any
    codes: Callable[[Any], Iterable[int]]

    @property
    def frame(self) -> bytes:
        """The request as bytes."""
        return request_frame(self.key, self.version, self.message, client_id="benchmark")

    def check(self, payload: bytes) -> None:
        """Raise RuntimeError unless an answer has results, and all of them without an error."""
        codes = list(self.codes(decoded(self.key, self.version, payload)))
        if not codes or any(codes):
            raise RuntimeError(f"{self.key.name} was answered with the error codes {codes}")


def produce(topic: str, size: int) -> Request:
    """Return a Produce of one record to one partition, acknowledged by its leader."""
    records = batch(b"v" * size)
    data = p.TopicProduceData(name=topic, partition_data=[p.PartitionProduceData(0, records)])
    message = p.ProduceRequest(acks=1, timeout_ms=_WAIT_MS, topic_data=[data])
    return Request(
        ApiKey.PRODUCE,
        9,
        message,
        lambda answer: (
            part.error_code for topic in answer.responses for part in topic.partition_responses
        ),
    )


def fetch() -> Request:
    """Return a Fetch without a session, whose answer has 1 MiB of records."""
    partition = f.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    message = f.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=0,
        session_id=0,
        topics=[f.FetchTopic(topic=FETCHED_TOPIC, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    return Request(ApiKey.FETCH, 12, message, _fetched)


def _fetched(answer: Any) -> Iterator[int]:
    for topic in answer.responses:
        for partition in topic.partitions:
            yield partition.error_code or int(len(partition.records or b"") < FETCH_BYTES // 2)


def metadata() -> Request:
    """Return a Metadata request about one topic."""
    message = MetadataRequest([MetadataRequestTopic(name=TOPIC)], False)
    return Request(
        ApiKey.METADATA, 12, message, lambda answer: (topic.error_code for topic in answer.topics)
    )


def list_offsets(topic: str = TOPIC) -> Request:
    """Return a ListOffsets request about the end of one partition, which its leader answers."""
    partition = lo.ListOffsetsPartition(partition_index=0, timestamp=_LATEST)
    topics = [lo.ListOffsetsTopic(name=topic, partitions=[partition])]
    return Request(
        ApiKey.LIST_OFFSETS,
        7,
        lo.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics),
        lambda answer: (
            partition.error_code for topic in answer.topics for partition in topic.partitions
        ),
    )
