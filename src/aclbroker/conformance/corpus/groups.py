"""Cases of the classic group protocol, of committed offsets, and of finding and listing groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.conformance.case import DELETERS, NO_TOPIC_ID, Case
from aclbroker.conformance.resources import (
    ABSENT_GROUPS,
    ABSENT_TOPICS,
    GROUPS,
    TOPICS,
    TRANSACTIONS,
    TopicIds,
    absent_group,
    group,
)
from aclbroker.protocol.messages import (
    ApiKey,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from aclbroker.protocol.primitives import ZERO_UUID

_ALL_TOPICS: Final = (*TOPICS, *ABSENT_TOPICS)
_NO_GROUP: Final = ""
_MEMBER: Final = "nobody"
"""A member id that no coordinator knows, so that it answers at once and does not wait."""
_GROUP_KEY, _TRANSACTION_KEY, _SHARE_KEY, _UNKNOWN_KEY = 0, 1, 2, 9


def cases(ids: TopicIds) -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    yield from _find_coordinator()
    for name in (*GROUPS, _NO_GROUP):
        yield from _one_group(name)
        yield _offset_commit(ids, name)
        yield from _offset_fetch(ids, name)
        yield _offset_delete(name)
    for right in ("read", "closed"):
        yield from _zero_topic_ids(ids, group(right))
    yield from _many_groups()
    yield from _offset_fetch_of_groups(ids)


def _find_coordinator() -> Iterator[Case]:
    share_keys = tuple(f"{name}:AAAAAAAAAAAAAAAAAAAAAQ:0" for name in GROUPS)
    for kind, key_type, names, versions in (
        ("group", _GROUP_KEY, (*GROUPS, _NO_GROUP), "0+"),
        ("transaction", _TRANSACTION_KEY, (*TRANSACTIONS, _NO_GROUP), "1+"),
        ("share partition", _SHARE_KEY, (*share_keys, _NO_GROUP), "6+"),
        ("unknown type", _UNKNOWN_KEY, ("x",), "1+"),
    ):
        for name in names:
            yield Case(
                ApiKey.FIND_COORDINATOR,
                f"of {kind} {name!r}",
                find_coordinator.FindCoordinatorRequest(
                    key=name, key_type=key_type, coordinator_keys=[name]
                ),
                versions,
            )
        yield Case(
            ApiKey.FIND_COORDINATOR,
            f"of each {kind}",
            find_coordinator.FindCoordinatorRequest(
                key_type=key_type, coordinator_keys=[name for name in names if name]
            ),
            "4+",
        )


def _one_group(name: str) -> Iterator[Case]:
    yield Case(
        ApiKey.JOIN_GROUP,
        f"{name!r}",
        join_group.JoinGroupRequest(
            group_id=name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=_MEMBER,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol("range", b"")],
            reason=None,
        ),
    )
    yield Case(
        ApiKey.SYNC_GROUP,
        f"{name!r}",
        sync_group.SyncGroupRequest(
            group_id=name,
            generation_id=1,
            member_id=_MEMBER,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        ),
    )
    yield Case(
        ApiKey.HEARTBEAT,
        f"{name!r}",
        heartbeat.HeartbeatRequest(name, 1, _MEMBER, None),
    )
    yield Case(
        ApiKey.LEAVE_GROUP,
        f"{name!r}",
        leave_group.LeaveGroupRequest(
            name, _MEMBER, [leave_group.MemberIdentity(_MEMBER, None, None)]
        ),
    )


def _offset_commit(ids: TopicIds, name: str) -> Case:
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0,
        committed_offset=0,
        committed_metadata="",
    )
    return Case(
        ApiKey.OFFSET_COMMIT,
        f"in {name!r}",
        offset_commit.OffsetCommitRequest(
            group_id=name,
            generation_id_or_member_epoch=1,
            member_id=_MEMBER,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[
                offset_commit.OffsetCommitRequestTopic(topic, ids.id_of(topic), [partition])
                for topic in _ALL_TOPICS
            ],
        ),
    )


def _offset_fetch(ids: TopicIds, name: str) -> Iterator[Case]:
    some = [offset_fetch.OffsetFetchRequestTopic(topic, [0]) for topic in _ALL_TOPICS]
    in_group = [
        offset_fetch.OffsetFetchRequestTopics(topic, ids.id_of(topic), [0]) for topic in _ALL_TOPICS
    ]
    yield Case(
        ApiKey.OFFSET_FETCH,
        f"of each topic in {name!r}",
        offset_fetch.OffsetFetchRequest(
            group_id=name, topics=some, groups=[_offsets_of(name, in_group)]
        ),
    )
    yield Case(
        ApiKey.OFFSET_FETCH,
        f"of all topics in {name!r}",
        offset_fetch.OffsetFetchRequest(
            group_id=name, topics=None, groups=[_offsets_of(name, None)]
        ),
        "2+",
    )


def _zero_topic_ids(ids: TopicIds, name: str) -> Iterator[Case]:
    topics = [("", ZERO_UUID), *((each, ids.id_of(each)) for each in TOPICS)]
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=""
    )
    committed = offset_commit.OffsetCommitRequest(
        group_id=name,
        generation_id_or_member_epoch=1,
        member_id=_MEMBER,
        group_instance_id=None,
        topics=[offset_commit.OffsetCommitRequestTopic(*topic, [partition]) for topic in topics],
    )
    fetched = offset_fetch.OffsetFetchRequest(
        groups=[
            _offsets_of(
                name, [offset_fetch.OffsetFetchRequestTopics(*topic, [0]) for topic in topics]
            )
        ]
    )
    for key, request in ((ApiKey.OFFSET_COMMIT, committed), (ApiKey.OFFSET_FETCH, fetched)):
        yield Case(key, f"of a zero topic id in {name!r}", request, "10+", codes=(NO_TOPIC_ID,))


def _offsets_of(
    name: str, topics: list[offset_fetch.OffsetFetchRequestTopics] | None
) -> offset_fetch.OffsetFetchRequestGroup:
    return offset_fetch.OffsetFetchRequestGroup(
        group_id=name, member_id=None, member_epoch=-1, topics=topics
    )


def _offset_fetch_of_groups(ids: TopicIds) -> Iterator[Case]:
    some = [offset_fetch.OffsetFetchRequestTopics(topic, ids.id_of(topic), [0]) for topic in TOPICS]
    for label, topics in (("each topic", some), ("all topics", None), ("no topic", [])):
        yield Case(
            ApiKey.OFFSET_FETCH,
            f"of {label} in each group",
            offset_fetch.OffsetFetchRequest(
                groups=[_offsets_of(name, topics) for name in (*GROUPS, *ABSENT_GROUPS)]
            ),
            "8+",
        )


def _offset_delete(name: str) -> Case:
    # Partition 9 has no committed offset, so deleting it changes nothing.
    partition = offset_delete.OffsetDeleteRequestPartition(partition_index=9)
    return Case(
        ApiKey.OFFSET_DELETE,
        f"in {name!r}",
        offset_delete.OffsetDeleteRequest(
            group_id=name,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(topic, [partition]) for topic in _ALL_TOPICS
            ],
        ),
    )


def _many_groups() -> Iterator[Case]:
    every = (*GROUPS, *ABSENT_GROUPS)
    yield Case(
        ApiKey.DESCRIBE_GROUPS,
        "each",
        describe_groups.DescribeGroupsRequest(groups=every),
    )
    yield Case(
        ApiKey.DESCRIBE_GROUPS,
        "with authorized operations",
        describe_groups.DescribeGroupsRequest(groups=every, include_authorized_operations=True),
        "3+",
    )
    yield Case(
        ApiKey.DESCRIBE_GROUPS, "an empty list", describe_groups.DescribeGroupsRequest(groups=())
    )
    yield Case(
        ApiKey.DELETE_GROUPS,
        "that are not there",
        delete_groups.DeleteGroupsRequest(groups_names=ABSENT_GROUPS),
    )
    yield Case(
        ApiKey.DELETE_GROUPS, "an empty list", delete_groups.DeleteGroupsRequest(groups_names=())
    )
    yield Case(
        ApiKey.DELETE_GROUPS,
        "named twice",
        delete_groups.DeleteGroupsRequest(
            groups_names=[absent_group(right) for right in ("closed", "delete", "closed")] * 2
        ),
    )
    yield Case(
        ApiKey.DELETE_GROUPS,
        "that are there",
        delete_groups.DeleteGroupsRequest(
            groups_names=[group("read"), group("describe"), group("closed")]
        ),
        without=DELETERS,
    )
    yield Case(ApiKey.LIST_GROUPS, "all", list_groups.ListGroupsRequest())
    yield Case(
        ApiKey.LIST_GROUPS,
        "in a state",
        list_groups.ListGroupsRequest(states_filter=["Empty"], types_filter=["classic"]),
        "4+",
    )
