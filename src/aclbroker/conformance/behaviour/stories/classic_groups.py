"""Stories of groups of the classic protocol."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.conformance.behaviour.stories.group_requests import (
    beat_until_rebalance,
    commit,
    heartbeat,
    join,
    joined,
    reads_orders,
    stable,
    sync,
)
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from aclbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.heartbeat import HeartbeatRequest
from aclbroker.protocol.messages.join_group import JoinGroupRequestProtocol
from aclbroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aclbroker.protocol.messages.sync_group import SyncGroupRequestAssignment

_TOPICS: Final = {"orders": TopicWanted(4), "payments": TopicWanted(2)}


def refused_joins(teller: Teller) -> None:
    """Tell who may not join."""
    refused: list[dict[str, Any]] = [
        {"group_id": ""},
        {"session_timeout_ms": 5_999},
        {"session_timeout_ms": 1_800_001},
        {"member_id": "nobody"},
        {"protocols": []},
        {"protocol_type": ""},
    ]
    for changes in refused:
        teller.ask(ApiKey.JOIN_GROUP, join(teller, **changes), version=9)
    teller.ask(ApiKey.JOIN_GROUP, join(teller, member_id="nobody"), version=9)
    teller.ask(
        ApiKey.JOIN_GROUP, join(teller, group_instance_id="i", member_id="nobody"), version=9
    )
    member_id, _ = stable(teller)
    for changes in (
        {"protocol_type": "connect"},
        {"protocols": [JoinGroupRequestProtocol("other", reads_orders(teller))]},
        {"member_id": "nobody"},
        {"member_id": member_id, "group_instance_id": "i"},
    ):
        teller.ask(ApiKey.JOIN_GROUP, join(teller, **changes), version=9)


def joins_of_old(teller: Teller) -> None:
    """Tell how members join, synchronize and leave with each version."""
    for version in range(4):
        answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller), version)
        teller.call(answer.member_id, f"member of {version}")
        teller.keep(ApiKey.JOIN_GROUP, answer, version=version)
        request = LeaveGroupRequest(teller.group_id, answer.member_id)
        teller.ask(ApiKey.LEAVE_GROUP, request, version=0)
    for version in range(4, 10):
        answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller), version)
        teller.call(answer.member_id, f"member of {version}")
        teller.keep(ApiKey.JOIN_GROUP, answer, version=version)
        answer = teller.ask(
            ApiKey.JOIN_GROUP, join(teller, member_id=answer.member_id), version=version
        )
        for sync_version in (0, 3, 5):
            request = sync(teller, answer.member_id, answer.generation_id)
            teller.ask(ApiKey.SYNC_GROUP, request, version=sync_version)
        leave = LeaveGroupRequest(teller.group_id, "", [MemberIdentity(answer.member_id)])
        teller.ask(ApiKey.LEAVE_GROUP, leave, version=5)


def unknown_groups(teller: Teller) -> None:
    """Tell what is said of groups and members that are not there."""
    group_id = teller.group_id
    for each in ("", group_id):
        teller.ask(ApiKey.HEARTBEAT, HeartbeatRequest(each, 1, "nobody"), version=4)
        teller.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(each, "nobody"), version=2)
        leave = LeaveGroupRequest(each, "", [MemberIdentity("nobody"), MemberIdentity("", "i")])
        teller.ask(ApiKey.LEAVE_GROUP, leave, version=5)
        teller.ask(ApiKey.SYNC_GROUP, sync(teller, "nobody", 1, group_id=each), version=5)
        deletion = OffsetDeleteRequest(
            each,
            [OffsetDeleteRequestTopic(teller.name("orders"), [OffsetDeleteRequestPartition(0)])],
        )
        teller.ask(ApiKey.OFFSET_DELETE, deletion, version=0)
    for version in (4, 5, 6):
        teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([group_id, ""]), version=version)
    teller.ask(
        ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id, ""]), version=1
    )
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group_id, ""]), version=2)


def refused_members(teller: Teller) -> None:
    """Tell what members may not do."""
    member_id, generation = joined(teller, "member")
    group_id = teller.group_id
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, member_id, generation), version=9)
    for request in (
        sync(teller, "nobody", generation),
        sync(teller, member_id, generation + 1),
        sync(teller, member_id, generation, protocol_type="connect"),
        sync(teller, member_id, generation, protocol_name="other"),
        sync(teller, member_id, generation, group_instance_id="i"),
        sync(teller, member_id, generation, protocol_type=None),
    ):
        teller.ask(ApiKey.SYNC_GROUP, request, version=5)
    for heartbeat_of in (
        HeartbeatRequest(group_id, generation, "nobody"),
        HeartbeatRequest(group_id, generation + 1, member_id),
        HeartbeatRequest(group_id, generation, member_id, "i"),
        HeartbeatRequest(group_id, generation, member_id),
    ):
        teller.ask(ApiKey.HEARTBEAT, heartbeat_of, version=4)
    for version in (2, 5, 8, 9):
        for request in (
            commit(teller, member_id, generation),
            commit(teller, member_id, generation + 1),
            commit(teller, "nobody", generation),
            commit(teller, "", -1),
        ):
            teller.ask(ApiKey.OFFSET_COMMIT, request, version=version)
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group_id]), version=2)
    leave = [MemberIdentity("nobody"), MemberIdentity("", "i"), MemberIdentity(member_id, "i")]
    teller.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id, "", leave), version=5)
    teller.ask(
        ApiKey.LEAVE_GROUP, LeaveGroupRequest(group_id, "", [MemberIdentity(member_id)]), version=5
    )
    teller.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group_id, generation, member_id), version=4)
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group_id]), version=2)


def static_members(teller: Teller) -> None:
    """Tell how static members (KIP-345) take the place of one another."""
    answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller, group_instance_id="i"), 9)
    first = teller.call(answer.member_id, "first")
    teller.keep(ApiKey.JOIN_GROUP, answer, version=9)
    request = sync(teller, first, answer.generation_id, group_instance_id="i")
    teller.ask(ApiKey.SYNC_GROUP, request, version=5)
    for version in (8, 9):
        request = join(teller, group_instance_id="i")
        answer = teller.quietly(ApiKey.JOIN_GROUP, request, version)
        teller.call(answer.member_id, f"second {version}")
        teller.keep(ApiKey.JOIN_GROUP, answer, version=version)
    second = answer.member_id
    alive = HeartbeatRequest(teller.group_id, answer.generation_id, first, "i")
    teller.ask(ApiKey.HEARTBEAT, alive, version=4)
    teller.ask(ApiKey.JOIN_GROUP, join(teller, member_id=first, group_instance_id="i"), version=9)
    alive = HeartbeatRequest(teller.group_id, answer.generation_id, second, "i")
    teller.ask(ApiKey.HEARTBEAT, alive, version=4)
    request = sync(teller, second, answer.generation_id, group_instance_id="i")
    teller.ask(ApiKey.SYNC_GROUP, request, version=5)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([teller.group_id]), version=6)
    leave = [MemberIdentity(first, "i"), MemberIdentity("", "i")]
    teller.ask(ApiKey.LEAVE_GROUP, LeaveGroupRequest(teller.group_id, "", leave), version=5)


def rebalances(teller: Teller) -> None:
    """Tell how a group of two members rebalances, and is listed meanwhile."""
    first, generation = stable(teller, "first")
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([teller.group_id]), version=6)
    answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller), 9)
    second = teller.call(answer.member_id, "second")
    waiting = teller.later(ApiKey.JOIN_GROUP, join(teller, member_id=second), version=9)
    beat_until_rebalance(teller, first, generation)
    teller.ask(ApiKey.SYNC_GROUP, sync(teller, first, generation), version=5)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([teller.group_id]), version=6)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, first, generation), version=9)
    generation = teller.ask(
        ApiKey.JOIN_GROUP, join(teller, member_id=first), version=9
    ).generation_id
    waiting()
    teller.ask(ApiKey.JOIN_GROUP, join(teller, member_id=second), version=9)
    waiting = teller.later(ApiKey.SYNC_GROUP, sync(teller, second, generation), version=5)
    assignments = [
        SyncGroupRequestAssignment(first, b"one"),
        SyncGroupRequestAssignment(second, b"two"),
    ]
    teller.ask(
        ApiKey.SYNC_GROUP, sync(teller, first, generation, assignments=assignments), version=5
    )
    waiting()
    teller.ask(ApiKey.JOIN_GROUP, join(teller, member_id=second), version=9)
    states: list[list[str]] = [["stable"], ["STABLE", "Empty"], ["empty"], []]
    for state in states:
        teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(state), version=5)
    for kind in (["classic"], ["Classic", "consumer"], ["consumer"], ["other"]):
        teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest([], kind), version=5)
    changed = [JoinGroupRequestProtocol("range", reads_orders(teller) + b"x")]
    waiting = teller.later(
        ApiKey.JOIN_GROUP, join(teller, member_id=second, protocols=changed), version=9
    )
    beat_until_rebalance(teller, first, generation)
    leave = LeaveGroupRequest(teller.group_id, "", [MemberIdentity(first)])
    teller.ask(ApiKey.LEAVE_GROUP, leave, version=5)
    waiting()


def other_protocols(teller: Teller) -> None:
    """Tell what is different in a group that is not of consumers."""
    changes: dict[str, Any] = {
        "protocol_type": "connect",
        "protocols": [JoinGroupRequestProtocol(n, n.encode()) for n in ("sessioned", "default")],
    }
    member_id, generation = joined(teller, "worker", **changes)
    request = sync(
        teller, member_id, generation, protocol_type="connect", protocol_name="sessioned"
    )
    teller.ask(ApiKey.SYNC_GROUP, request, version=5)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([teller.group_id]), version=6)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    deletion = OffsetDeleteRequest(
        teller.group_id,
        [OffsetDeleteRequestTopic(teller.name("orders"), [OffsetDeleteRequestPartition(0)])],
    )
    teller.ask(ApiKey.OFFSET_DELETE, deletion, version=0)
    teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, heartbeat(teller, "m", 0), version=1)


STORIES: Final = (
    Story(refused_joins, _TOPICS, newest_only=True),
    Story(joins_of_old, _TOPICS, newest_only=True),
    Story(unknown_groups, _TOPICS, newest_only=True),
    Story(refused_members, _TOPICS, newest_only=True),
    Story(static_members, _TOPICS, newest_only=True),
    Story(rebalances, _TOPICS, newest_only=True),
    Story(other_protocols, _TOPICS, newest_only=True),
)
