"""Cases of producer ids, of transactions, and of the keys that describe them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.conformance.case import NOT_ATTEMPTED, WRONG_PARTITION, Case
from aclbroker.conformance.resources import (
    ABSENT_TOPICS,
    TOPICS,
    TRANSACTIONS,
    absent_topic,
    group,
    topic,
    transaction,
)
from aclbroker.protocol.messages import (
    ApiKey,
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)

_ALL_TOPICS: Final = (*TOPICS, *ABSENT_TOPICS)
_PRODUCER: Final = {"producer_id": 4_000_000, "producer_epoch": 0}
"""A producer id and epoch that no broker knows."""

_WITH_GROUPS: Final = (
    ("write", "read"),
    ("write", "describe"),
    ("write", "closed"),
    ("write", "prefixed-denied"),
    ("prefixed", "prefixed"),
    ("prefixed-denied", "read"),
    ("describe", "read"),
    ("describe", "closed"),
    ("closed", "read"),
    ("closed", "closed"),
)
"""Pairs of rights on the transactional id and on the group."""


def cases() -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    for name in (*TRANSACTIONS, None, ""):
        yield _init_producer_id(name)
    for name in TRANSACTIONS:
        yield from _add_partitions(name)
        yield Case(
            ApiKey.END_TXN, f"{name!r}", end_txn.EndTxnRequest(name, **_PRODUCER, committed=False)
        )
    yield _verify_partitions()
    for id_right, group_right in _WITH_GROUPS:
        yield from _with_group(id_right, group_right)
    yield _write_markers()
    yield from _described()


def _init_producer_id(name: str | None) -> Case:
    return Case(
        ApiKey.INIT_PRODUCER_ID,
        f"{name!r}",
        init_producer_id.InitProducerIdRequest(name, 10_000, producer_id=-1, producer_epoch=-1),
    )


def _add_partitions(name: str) -> Iterator[Case]:
    m = add_partitions_to_txn
    lists = {
        "allowed topics": (topic("write"), topic("prefixed")),
        "a closed topic": (topic("write"), topic("closed"), topic("prefixed")),
        "a topic that may be described": (topic("write"), topic("describe")),
        "an absent topic": (topic("write"), absent_topic("write")),
        "absent and closed topics": (topic("write"), absent_topic("write"), topic("closed")),
    }
    for which, names in lists.items():
        topics = [m.AddPartitionsToTxnTopic(each, [0, 1]) for each in names]
        request = m.AddPartitionsToTxnRequest(
            transactions=[
                m.AddPartitionsToTxnTransaction(name, **_PRODUCER, verify_only=True, topics=topics)
            ],
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=_PRODUCER["producer_id"],
            v3_and_below_producer_epoch=_PRODUCER["producer_epoch"],
            v3_and_below_topics=topics,
        )
        # The topics have one partition, so each request names some partitions that do not exist.
        codes = (WRONG_PARTITION, NOT_ATTEMPTED)
        label = f"{name!r} with {which}"
        yield Case(ApiKey.ADD_PARTITIONS_TO_TXN, label, request, "0-3", codes=codes)
        yield Case(ApiKey.ADD_PARTITIONS_TO_TXN, f"{label}, by a broker", request, "4+")


def _verify_partitions() -> Case:
    m = add_partitions_to_txn
    topics = [m.AddPartitionsToTxnTopic(name, [0]) for name in _ALL_TOPICS]
    return Case(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "of each transactional id",
        m.AddPartitionsToTxnRequest(
            transactions=[
                m.AddPartitionsToTxnTransaction(name, **_PRODUCER, verify_only=True, topics=topics)
                for name in TRANSACTIONS
            ]
        ),
        "4+",
    )


def _with_group(id_right: str, group_right: str) -> Iterator[Case]:
    label = f"{id_right} with group {group_right}"
    id_, group_id = transaction(id_right), group(group_right)
    yield Case(
        ApiKey.ADD_OFFSETS_TO_TXN,
        label,
        add_offsets_to_txn.AddOffsetsToTxnRequest(id_, **_PRODUCER, group_id=group_id),
    )
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=""
    )
    yield Case(
        ApiKey.TXN_OFFSET_COMMIT,
        label,
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=id_,
            group_id=group_id,
            **_PRODUCER,
            generation_id=1,
            member_id="nobody",
            group_instance_id=None,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(name, [partition])
                for name in _ALL_TOPICS
            ],
        ),
    )


def _write_markers() -> Case:
    m = write_txn_markers
    markers = [
        m.WritableTxnMarker(
            producer_id=_PRODUCER["producer_id"] + number,
            topics=[m.WritableTxnMarkerTopic(name, partition_indexes=[0]) for name in names],
        )
        for number, names in enumerate((ABSENT_TOPICS[:3], ABSENT_TOPICS[3:]))
    ]
    return Case(ApiKey.WRITE_TXN_MARKERS, "of absent topics", m.WriteTxnMarkersRequest(markers))


def _described() -> Iterator[Case]:
    yield Case(
        ApiKey.DESCRIBE_TRANSACTIONS,
        "each",
        describe_transactions.DescribeTransactionsRequest((*TRANSACTIONS, "")),
    )
    yield Case(
        ApiKey.LIST_TRANSACTIONS,
        "all",
        list_transactions.ListTransactionsRequest(
            duration_filter=-1, transactional_id_pattern=None
        ),
    )
    yield Case(
        ApiKey.DESCRIBE_PRODUCERS,
        "of each topic",
        describe_producers.DescribeProducersRequest(
            [describe_producers.TopicRequest(name, [0]) for name in _ALL_TOPICS]
        ),
    )
