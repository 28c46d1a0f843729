"""Cases of share groups (KIP-932): members, fetching, offsets, and their state on brokers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from aclbroker.conformance.case import DELETERS, INVALID, Case
from aclbroker.conformance.corpus.member_groups import SUBSCRIPTIONS
from aclbroker.conformance.resources import (
    ABSENT_GROUPS,
    ABSENT_TOPICS,
    SHARE_GROUPS,
    TOPICS,
    TopicIds,
    absent_topic,
    share_group,
    topic,
)
from aclbroker.protocol.messages import (
    ApiKey,
    alter_share_group_offsets,
    delete_share_group_offsets,
    delete_share_group_state,
    describe_share_group_offsets,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    write_share_group_state,
)

_ALL_TOPICS: Final = (*TOPICS, *ABSENT_TOPICS)
_SOME_TOPICS: Final = (topic("describe"), topic("closed"), absent_topic("describe"))
_MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAg"
_EPOCH: Final = 7


def cases(ids: TopicIds) -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    for name in (*SHARE_GROUPS, ""):
        yield from _members(name)
        yield _acknowledge(ids, f"in no session of {name!r}", name, _EPOCH)
        yield _fetch(ids, f"in no session of {name!r}", name, _EPOCH)
    for right in ("read", "closed"):
        yield from _invalid_members(ids, share_group(right))
    for right in ("read", "prefixed-denied"):
        yield from _session(ids, share_group(right))
    for name in (*SHARE_GROUPS, ABSENT_GROUPS[0], ""):
        yield from _offsets(name)
    groups = (*SHARE_GROUPS, *ABSENT_GROUPS)
    for include in (False, True):
        yield Case(
            ApiKey.SHARE_GROUP_DESCRIBE,
            "with authorized operations" if include else "each",
            share_group_describe.ShareGroupDescribeRequest(groups, include),
        )
    yield _described_offsets("of some topics in each group", groups, _SOME_TOPICS)
    yield _described_offsets("of all topics in each group", groups, None)
    yield _described_offsets("of each topic", (share_group("read"),), _ALL_TOPICS)
    yield from _state(ids)


def _members(name: str) -> Iterator[Case]:
    for label, topics in SUBSCRIPTIONS.items():
        yield Case(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            f"{name!r} with {label}",
            share_group_heartbeat.ShareGroupHeartbeatRequest(name, _MEMBER, _EPOCH, None, topics),
        )


def _invalid_members(ids: TopicIds, name: str) -> Iterator[Case]:
    """Yield requests with member ids that Kafka takes for invalid (KafkaApis.isMemberIdValid)."""
    for label, member in (("an empty member id", ""), ("a member id of 37 letters", "x" * 37)):
        heartbeat = share_group_heartbeat.ShareGroupHeartbeatRequest(
            name, member, _EPOCH, None, (topic("closed"),)
        )
        fetched = _fetch(ids, f"{name!r} with {label}", name, _EPOCH)
        acknowledged = _acknowledge(ids, f"{name!r} with {label}", name, _EPOCH)
        fetched.message.member_id = acknowledged.message.member_id = member
        yield Case(ApiKey.SHARE_GROUP_HEARTBEAT, fetched.label, heartbeat, codes=(INVALID,))
        yield fetched._replace(codes=(INVALID,))
        yield acknowledged._replace(codes=(INVALID,))


def _session(ids: TopicIds, name: str) -> Iterator[Case]:
    """Yield the successive requests of one share session; each raises the session epoch by one.

    All topics in them exist, since an unknown topic id makes Kafka 4.3 fail with -1 before it looks
    at rights.
    """
    yield _fetch(ids, f"in a new session of {name!r}", name, 0, "1")
    yield _fetch(ids, f"in a session of {name!r}", name, 1, "1", acknowledge=True)
    yield _acknowledge(ids, f"in a session of {name!r}", name, 2, "1")
    yield _fetch(ids, f"in a new session of {name!r} again", name, 0, "2+")
    yield _fetch(ids, f"in a session of {name!r} again", name, 1, "2+", acknowledge=True)
    yield _acknowledge(ids, f"in a session of {name!r} again", name, 2, "2+")
    yield _acknowledge(ids, f"at the end of a session of {name!r}", name, -1)


def _fetch(
    ids: TopicIds,
    label: str,
    name: str,
    epoch: int,
    versions: str = "1+",
    *,
    acknowledge: bool = False,
) -> Case:
    m = share_fetch
    batches = [m.AcknowledgementBatch(0, 0, [1])] if acknowledge else []
    request = m.ShareFetchRequest(
        group_id=name,
        member_id=_MEMBER,
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1024,
        max_records=1,
        batch_size=1,
        topics=[m.FetchTopic(ids.id_of(each), [m.FetchPartition(0, batches)]) for each in TOPICS],
    )
    return Case(ApiKey.SHARE_FETCH, label, request, versions)


def _acknowledge(ids: TopicIds, label: str, name: str, epoch: int, versions: str = "1+") -> Case:
    m = share_acknowledge
    batches = [m.AcknowledgementBatch(0, 0, [1])]
    request = m.ShareAcknowledgeRequest(
        group_id=name,
        member_id=_MEMBER,
        share_session_epoch=epoch,
        topics=[
            m.AcknowledgeTopic(ids.id_of(each), [m.AcknowledgePartition(0, batches)])
            for each in TOPICS
        ],
    )
    return Case(ApiKey.SHARE_ACKNOWLEDGE, label, request, versions)


def _offsets(name: str) -> Iterator[Case]:
    yield _described_offsets(f"of some topics in {name!r}", (name,), _SOME_TOPICS)
    yield _described_offsets(f"of all topics in {name!r}", (name,), None)
    altered = alter_share_group_offsets
    partition = altered.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topics = [altered.AlterShareGroupOffsetsRequestTopic(each, [partition]) for each in _ALL_TOPICS]
    yield Case(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        f"in {name!r}",
        altered.AlterShareGroupOffsetsRequest(name, topics),
    )
    yield _deleted_offsets(f"of topics that are there in {name!r}", name, TOPICS, DELETERS)
    yield _deleted_offsets(f"of absent topics in {name!r}", name, ABSENT_TOPICS)


def _deleted_offsets(
    label: str, name: str, topics: Sequence[str], without: tuple[str, ...] = ()
) -> Case:
    deleted = delete_share_group_offsets
    asked = [deleted.DeleteShareGroupOffsetsRequestTopic(each) for each in topics]
    request = deleted.DeleteShareGroupOffsetsRequest(name, asked)
    return Case(ApiKey.DELETE_SHARE_GROUP_OFFSETS, label, request, without=without)


def _described_offsets(label: str, groups: Sequence[str], topics: Sequence[str] | None) -> Case:
    m = describe_share_group_offsets
    asked = None
    if topics is not None:
        asked = [m.DescribeShareGroupOffsetsRequestTopic(each, [0]) for each in topics]
    return Case(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        label,
        m.DescribeShareGroupOffsetsRequest(
            [m.DescribeShareGroupOffsetsRequestGroup(name, asked) for name in groups]
        ),
    )


def _state(ids: TopicIds) -> Iterator[Case]:
    """Yield the requests that brokers send to the share coordinator."""
    topic_id = ids.id_of(ABSENT_TOPICS[0])

    def case(key: ApiKey, request: Any, data: Any, *partition: Any) -> Case:
        return Case(
            key,
            "of a topic",
            request(SHARE_GROUPS[0], [data(topic_id, [partition[0](0, *partition[1:])])]),
        )

    m1, m2, m3 = initialize_share_group_state, read_share_group_state, write_share_group_state
    m4, m5 = delete_share_group_state, read_share_group_state_summary
    yield case(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        m1.InitializeShareGroupStateRequest,
        m1.InitializeStateData,
        m1.PartitionData,
    )
    yield case(
        ApiKey.READ_SHARE_GROUP_STATE,
        m2.ReadShareGroupStateRequest,
        m2.ReadStateData,
        m2.PartitionData,
    )
    yield case(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        m3.WriteShareGroupStateRequest,
        m3.WriteStateData,
        m3.PartitionData,
    )
    yield case(
        ApiKey.DELETE_SHARE_GROUP_STATE,
        m4.DeleteShareGroupStateRequest,
        m4.DeleteStateData,
        m4.PartitionData,
    )
    yield case(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        m5.ReadShareGroupStateSummaryRequest,
        m5.ReadStateSummaryData,
        m5.PartitionData,
    )
