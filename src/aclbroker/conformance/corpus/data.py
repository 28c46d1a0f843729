"""Cases of Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from aclbroker.conformance.case import NO_TOPIC_ID, Case
from aclbroker.conformance.corpus.records import batch
from aclbroker.conformance.resources import (
    ABSENT_TOPICS,
    TOPICS,
    TopicIds,
    topic,
    transaction,
)
from aclbroker.protocol.messages import (
    ApiKey,
    delete_records,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from aclbroker.protocol.primitives import ZERO_UUID

_ALL_TOPICS: Final = (*TOPICS, *ABSENT_TOPICS)
_ALLOWED: Final = (topic("write"), topic("prefixed"))
_PRODUCER_ID: Final = 4_000_000
_CONSUMER, _FOLLOWER = -1, 1


def cases(ids: TopicIds) -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    yield from _produce(ids)
    yield from _fetch(ids)
    yield from _list_offsets()
    yield from _offset_for_leader_epoch()
    yield Case(
        ApiKey.DELETE_RECORDS,
        "each topic",
        delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name, [delete_records.DeleteRecordsPartition(partition_index=0, offset=0)]
                )
                for name in _ALL_TOPICS
            ],
            timeout_ms=100,
        ),
    )


def _produce_request(
    ids: TopicIds,
    topics: Iterable[str],
    records: bytes,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> produce.ProduceRequest:
    return produce.ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=100,
        topic_data=[
            produce.TopicProduceData(
                name, ids.id_of(name), [produce.PartitionProduceData(index=0, records=records)]
            )
            for name in topics
        ],
    )


def _produce(ids: TopicIds) -> Iterator[Case]:
    def case(label: str, message: produce.ProduceRequest, *, answered: bool = True) -> Case:
        return Case(ApiKey.PRODUCE, label, message, answered=answered)

    plain = batch()
    idempotent = batch(producer_id=_PRODUCER_ID)
    transactional = batch(producer_id=_PRODUCER_ID, transactional=True)
    yield case("to each topic", _produce_request(ids, _ALL_TOPICS, plain))
    yield case("to allowed topics", _produce_request(ids, _ALLOWED, plain))
    yield case("to no topic", _produce_request(ids, (), plain))
    yield case("with acks 1", _produce_request(ids, TOPICS, plain, acks=1))
    yield case("with acks 2", _produce_request(ids, TOPICS, plain, acks=2))
    yield case(
        "with acks 0 to an allowed topic",
        _produce_request(ids, _ALLOWED, plain, acks=0),
        answered=False,
    )
    yield case(
        "with acks 0 to a closed topic",
        _produce_request(ids, (topic("write"), topic("closed")), plain, acks=0),
        answered=False,
    )
    yield case("idempotent", _produce_request(ids, TOPICS, idempotent))
    for right in ("write", "describe", "closed"):
        yield case(
            f"in transaction {right}",
            _produce_request(ids, TOPICS, transactional, transactional_id=transaction(right)),
        )
    yield case("transactional without id", _produce_request(ids, TOPICS, transactional))
    beside_zero = _produce_request(ids, (topic("write"), topic("closed")), plain)
    zero = produce.TopicProduceData(
        "", ZERO_UUID, [produce.PartitionProduceData(index=0, records=plain)]
    )
    beside_zero.topic_data = [zero, *beside_zero.topic_data]
    yield Case(ApiKey.PRODUCE, "to a zero topic id", beside_zero, "13+", codes=(NO_TOPIC_ID,))
    yield case(
        "plain with a transactional id",
        _produce_request(ids, TOPICS, plain, transactional_id=transaction("closed")),
    )


def _fetch_request(
    ids: TopicIds, topics: Iterable[str], replica: int = _CONSUMER
) -> fetch.FetchRequest:
    return fetch.FetchRequest(
        replica_id=replica,
        replica_state=fetch.ReplicaState(replica_id=replica),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1024,
        topics=[
            fetch.FetchTopic(
                name,
                ids.id_of(name),
                [fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1024)],
            )
            for name in topics
        ],
    )


def _fetch(ids: TopicIds) -> Iterator[Case]:
    yield Case(ApiKey.FETCH, "of each topic", _fetch_request(ids, _ALL_TOPICS))
    yield Case(ApiKey.FETCH, "of no topic", _fetch_request(ids, ()))
    yield Case(ApiKey.FETCH, "by a follower", _fetch_request(ids, _ALL_TOPICS, _FOLLOWER))
    for label, others, replica in (
        ("of a zero topic id", (), _CONSUMER),
        ("of a zero topic id by a follower", (), _FOLLOWER),
        ("of a zero topic id beside others", (topic("read"), topic("closed")), _CONSUMER),
    ):
        request = _fetch_request(ids, others, replica)
        partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1024)
        request.topics = [fetch.FetchTopic("", ZERO_UUID, [partition]), *request.topics]
        yield Case(ApiKey.FETCH, label, request, "13+", codes=(NO_TOPIC_ID,))
    session = _fetch_request(ids, TOPICS)
    session.session_epoch = 0
    yield Case(ApiKey.FETCH, "in a new session", session)
    lost = _fetch_request(ids, TOPICS)
    lost.session_id, lost.session_epoch = 77, 5
    lost.forgotten_topics_data = [
        fetch.ForgottenTopic(topic("closed"), ids.id_of(topic("closed")), [0])
    ]
    yield Case(ApiKey.FETCH, "in an unknown session", lost)


def _list_offsets() -> Iterator[Case]:
    for label, replica in (("by a consumer", _CONSUMER), ("by a follower", _FOLLOWER)):
        yield Case(
            ApiKey.LIST_OFFSETS,
            label,
            list_offsets.ListOffsetsRequest(
                replica_id=replica,
                topics=[
                    list_offsets.ListOffsetsTopic(
                        name,
                        [
                            list_offsets.ListOffsetsPartition(
                                partition_index=0, timestamp=-1, max_num_offsets=1
                            )
                        ],
                    )
                    for name in _ALL_TOPICS
                ],
                timeout_ms=100,
            ),
        )


def _offset_for_leader_epoch() -> Iterator[Case]:
    for label, replica in (("by a consumer", _CONSUMER), ("by a follower", _FOLLOWER)):
        yield Case(
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            label,
            offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                replica_id=replica,
                topics=[
                    offset_for_leader_epoch.OffsetForLeaderTopic(
                        name,
                        [
                            offset_for_leader_epoch.OffsetForLeaderPartition(
                                partition=0, current_leader_epoch=-1, leader_epoch=0
                            )
                        ],
                    )
                    for name in _ALL_TOPICS
                ],
            ),
        )
