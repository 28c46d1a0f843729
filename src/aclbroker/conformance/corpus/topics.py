"""Cases of Metadata and of the keys that create, change, describe and delete topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.conformance.case import DELETERS, INVALID, Case
from aclbroker.conformance.resources import (
    ABSENT_TOPICS,
    DELETED_TOPIC,
    TOPICS,
    TopicIds,
    absent_topic,
    created_topic,
    topic,
)
from aclbroker.protocol.messages import (
    ApiKey,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic_partitions,
    elect_leaders,
    list_partition_reassignments,
    metadata,
)
from aclbroker.protocol.primitives import ZERO_UUID

_ALL_TOPICS: Final = (*TOPICS, *ABSENT_TOPICS)
_TIMEOUT_MS: Final = 1000
_PARTITION_LIMIT: Final = 2000
_NOT_DELETED: Final = tuple(
    topic(right) for right in ("read", "describe", "alter-configs", "prefixed-denied", "closed")
)
"""Existing topics that only the super user and the role ``wildcards`` may delete."""


def cases(ids: TopicIds) -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    yield from _metadata(ids)
    yield from _describe_topic_partitions()
    yield from _create_topics()
    yield from _delete_topics(ids)
    yield from _create_partitions()
    yield from _elect_leaders()
    yield from _reassignments()


def _metadata(ids: TopicIds) -> Iterator[Case]:
    def named(
        *names: str, create: bool = False, operations: bool = False
    ) -> metadata.MetadataRequest:
        return metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(ZERO_UUID, name) for name in names],
            allow_auto_topic_creation=create,
            include_cluster_authorized_operations=operations,
            include_topic_authorized_operations=operations,
        )

    by_id = named()
    by_id.topics = [
        metadata.MetadataRequestTopic(ids.id_of(name), None) for name in (*TOPICS, ABSENT_TOPICS[0])
    ]
    everything = named(operations=True)
    everything.topics = None
    yield Case(ApiKey.METADATA, "of all topics", everything, "1+")
    yield Case(ApiKey.METADATA, "of an empty list of topics", named(operations=True))
    yield Case(ApiKey.METADATA, "of topics that are there", named(*TOPICS))
    yield Case(ApiKey.METADATA, "of each topic", named(*_ALL_TOPICS), "4+")
    yield Case(
        ApiKey.METADATA, "with authorized operations", named(*_ALL_TOPICS, operations=True), "8+"
    )
    yield Case(ApiKey.METADATA, "by topic id", by_id, "10+")
    yield Case(
        ApiKey.METADATA,
        "creating topics",
        named(*map(created_topic, ("create", "describe", "all", "closed")), create=True),
        "4+",
    )


def _describe_topic_partitions() -> Iterator[Case]:
    m = describe_topic_partitions

    def request(
        *names: str, cursor: tuple[str, int] | None = None
    ) -> m.DescribeTopicPartitionsRequest:
        return m.DescribeTopicPartitionsRequest(
            topics=[m.TopicRequest(name) for name in names],
            response_partition_limit=_PARTITION_LIMIT,
            cursor=m.Cursor(*cursor) if cursor else None,
        )

    yield Case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of all topics", request())
    yield Case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, "of each topic", request(*_ALL_TOPICS))
    for label, cursor in {
        "from a topic on": (topic("describe"), 0),
        "from a closed topic on": (topic("closed"), 0),
        "from a topic on that is not asked for": (topic("none"), 0),
        "from a negative partition on": (topic("describe"), -1),
    }.items():
        for asked, names in (("of each topic", _ALL_TOPICS), ("of all topics", ())):
            yield Case(
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                f"{asked} {label}",
                request(*names, cursor=cursor),
                codes=(INVALID,),
            )
    yield Case(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        "of topics named twice",
        request(*(topic("describe"), topic("closed")) * 2),
    )


def _create_topics() -> Iterator[Case]:
    def request(*names: str, validate_only: bool = True) -> create_topics.CreateTopicsRequest:
        return create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name, num_partitions=1, replication_factor=1)
                for name in names
            ],
            timeout_ms=_TIMEOUT_MS,
            validate_only=validate_only,
        )

    yield Case(ApiKey.CREATE_TOPICS, "that are not there", request(*ABSENT_TOPICS))
    yield Case(ApiKey.CREATE_TOPICS, "that are there", request(*TOPICS))
    yield Case(
        ApiKey.CREATE_TOPICS,
        "named twice",
        request(topic("closed"), *ABSENT_TOPICS[:2], *ABSENT_TOPICS[:2], topic("closed")),
        codes=(INVALID,),
    )
    yield Case(
        ApiKey.CREATE_TOPICS, "that are there, for good", request(*TOPICS, validate_only=False)
    )
    yield Case(ApiKey.CREATE_TOPICS, "an empty list", request())
    yield Case(ApiKey.CREATE_TOPICS, "of an internal name", request("__cluster_metadata", "a b"))


def _delete_topics(ids: TopicIds) -> Iterator[Case]:
    absent = map(_by_name, ABSENT_TOPICS)
    yield Case(ApiKey.DELETE_TOPICS, "that are not there", _deletion(*absent))
    yield Case(ApiKey.DELETE_TOPICS, "an empty list", _deletion())
    unknown = (_by_id(name, ids) for name in ABSENT_TOPICS)
    yield Case(ApiKey.DELETE_TOPICS, "by unknown id", _deletion(*unknown), "6+")
    yield from _invalid_deletions(ids)
    yield from _made_deletions(ids)


def _invalid_deletions(ids: TopicIds) -> Iterator[Case]:
    twice = (topic("describe"), topic("closed"), absent_topic("closed")) * 2
    names = (*twice, absent_topic("delete"), twice[0])
    neither = delete_topics.DeleteTopicState(None, ZERO_UUID)
    both = delete_topics.DeleteTopicState(twice[0], ids.id_of(twice[0]))
    for label, request, versions in (
        ("named twice", _deletion(*map(_by_name, names)), "0+"),
        ("by an id twice", _deletion(*(_by_id(name, ids) for name in (*twice, twice[0]))), "6+"),
        ("by neither name nor id, and by both", _deletion(neither, both), "6+"),
    ):
        yield Case(ApiKey.DELETE_TOPICS, label, request, versions, codes=(INVALID,))


def _made_deletions(ids: TopicIds) -> Iterator[Case]:
    undescribed, there = _by_name(DELETED_TOPIC), map(_by_name, _NOT_DELETED)
    by_id = (_by_id(name, ids) for name in (*_NOT_DELETED, ABSENT_TOPICS[0]))
    # On a broker with data, the role ``resources`` has deleted the topic by the second case.
    deleted = (*DELETERS, "cluster-1", "cluster-2", "cluster-4")
    yield Case(
        ApiKey.DELETE_TOPICS,
        "that may be deleted and not described",
        _deletion(undescribed),
        without=DELETERS,
    )
    yield Case(
        ApiKey.DELETE_TOPICS,
        "by the id of one that may be deleted and not described",
        _deletion(_by_id(DELETED_TOPIC, ids)),
        "6+",
        without=deleted,
    )
    yield Case(ApiKey.DELETE_TOPICS, "that are there", _deletion(*there), without=DELETERS)
    yield Case(ApiKey.DELETE_TOPICS, "by id", _deletion(*by_id), "6+", without=DELETERS)


def _deletion(*topics: delete_topics.DeleteTopicState) -> delete_topics.DeleteTopicsRequest:
    return delete_topics.DeleteTopicsRequest(
        topics=topics,
        topic_names=[state.name for state in topics if state.name is not None],
        timeout_ms=_TIMEOUT_MS,
    )


def _by_id(name: str, ids: TopicIds) -> delete_topics.DeleteTopicState:
    return delete_topics.DeleteTopicState(None, ids.id_of(name))


def _by_name(name: str) -> delete_topics.DeleteTopicState:
    return delete_topics.DeleteTopicState(name, ZERO_UUID)


def _create_partitions() -> Iterator[Case]:
    twice = (*(topic("alter"), topic("closed"), absent_topic("closed")) * 2, topic("closed"))
    for label, names in (
        ("of topics", _ALL_TOPICS),
        ("of a topic named twice", TOPICS[:1] * 2),
        ("of topics named twice and one named once", (*twice, topic("describe"))),
    ):
        yield Case(
            ApiKey.CREATE_PARTITIONS,
            label,
            create_partitions.CreatePartitionsRequest(
                topics=[
                    create_partitions.CreatePartitionsTopic(name, count=2, assignments=None)
                    for name in names
                ],
                timeout_ms=_TIMEOUT_MS,
                validate_only=True,
            ),
            codes=(INVALID,) if "twice" in label else (),
        )


def _elect_leaders() -> Iterator[Case]:
    some = [elect_leaders.TopicPartitions(name, [0]) for name in _ALL_TOPICS]
    for label, partitions in (("of each topic", some), ("of no topic", ())):
        yield Case(
            ApiKey.ELECT_LEADERS,
            label,
            elect_leaders.ElectLeadersRequest(
                election_type=0, topic_partitions=partitions, timeout_ms=_TIMEOUT_MS
            ),
        )


def _reassignments() -> Iterator[Case]:
    alter, listed = alter_partition_reassignments, list_partition_reassignments
    # Null replicas cancel a reassignment, and none is running.
    partition = alter.ReassignablePartition(partition_index=0, replicas=None)
    yield Case(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        "cancelled",
        alter.AlterPartitionReassignmentsRequest(
            timeout_ms=_TIMEOUT_MS,
            topics=[alter.ReassignableTopic(name, [partition]) for name in _ALL_TOPICS],
        ),
    )
    named = [
        listed.ListPartitionReassignmentsTopics(name, partition_indexes=[0]) for name in _ALL_TOPICS
    ]
    for label, topics in (("of each topic", named), ("of all topics", None)):
        yield Case(
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            label,
            listed.ListPartitionReassignmentsRequest(timeout_ms=_TIMEOUT_MS, topics=topics),
        )
