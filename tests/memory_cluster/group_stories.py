"""What clients may ask of groups, right and wrong, as stories that any broker can be told."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.client.blocking import BlockingClient
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from aclbroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from aclbroker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.heartbeat import HeartbeatRequest
from aclbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aclbroker.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aclbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from aclbroker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from aclbroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from aclbroker.protocol.primitives import ZERO_UUID
from tests.memory.groups.support import subscription
from tests.memory.records import batch
from tests.memory_cluster.stories import Story, Teller
from tests.support.process import wait_for

TOPICS: Final = {"orders": 4, "payments": 2}
READS_ORDERS: Final = subscription("orders", version=1) + b"\0\0\0\0"


def join(teller: Teller, **changes: Any) -> Any:
    request = JoinGroupRequest(
        teller.group_id,
        10_000,
        60_000,
        "",
        None,
        "consumer",
        [JoinGroupRequestProtocol("range", READS_ORDERS)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def joined(teller: Teller, name: str, **changes: Any) -> tuple[str, int]:
    """Let a dynamic member join alone; returns its id and generation."""
    answer = teller.client().ask(ApiKey.JOIN_GROUP, 9, join(teller, **changes))
    member_id = teller.call(answer.member_id, name)
    answer = teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, member_id=member_id, **changes))
    return member_id, answer.generation_id


def sync(teller: Teller, member_id: str, generation: int, **changes: Any) -> Any:
    request = SyncGroupRequest(teller.group_id, generation, member_id)
    request.protocol_type, request.protocol_name = "consumer", "range"
    request.assignments = [SyncGroupRequestAssignment(member_id, b"mine")]
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def stable(teller: Teller, name: str = "member") -> tuple[str, int]:
    """Make a group of one member that is stable."""
    member_id, generation = joined(teller, name)
    teller.ask(ApiKey.SYNC_GROUP, 5, sync(teller, member_id, generation))
    return member_id, generation


def commit(teller: Teller, member_id: str = "", epoch: int = -1, **changes: Any) -> Any:
    partitions = [OffsetCommitRequestPartition(0, 5, committed_metadata="note")]
    request = OffsetCommitRequest(
        teller.group_id,
        epoch,
        member_id,
        topics=[OffsetCommitRequestTopic("orders", partitions=partitions)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def heartbeat(teller: Teller, member_id: str, epoch: int, **changes: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(teller.group_id, member_id, epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 5_000
        request.subscribed_topic_names = ["orders"]
        request.topic_partitions = []
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def refused_joins(teller: Teller) -> None:
    refused: list[dict[str, Any]] = [
        {"group_id": ""},
        {"session_timeout_ms": 5_999},
        {"session_timeout_ms": 1_800_001},
        {"member_id": "nobody"},
        {"protocols": []},
        {"protocol_type": ""},
    ]
    for changes in refused:
        teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, **changes))
    teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, member_id="nobody"))
    teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, group_instance_id="i", member_id="nobody"))
    member_id, _ = stable(teller)
    for changes in (
        {"protocol_type": "connect"},
        {"protocols": [JoinGroupRequestProtocol("other", READS_ORDERS)]},
        {"member_id": "nobody"},
        {"member_id": member_id, "group_instance_id": "i"},
    ):
        teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, **changes))


def joins_of_old(teller: Teller) -> None:
    for version in range(4):
        answer = teller.client().ask(ApiKey.JOIN_GROUP, version, join(teller))
        teller.call(answer.member_id, f"member of {version}")
        teller.keep(answer)
        request = LeaveGroupRequest(teller.group_id, answer.member_id)
        teller.ask(ApiKey.LEAVE_GROUP, 0, request)
    for version in range(4, 10):
        answer = teller.client().ask(ApiKey.JOIN_GROUP, version, join(teller))
        teller.call(answer.member_id, f"member of {version}")
        teller.keep(answer)
        answer = teller.ask(ApiKey.JOIN_GROUP, version, join(teller, member_id=answer.member_id))
        for sync_version in (0, 3, 5):
            request = sync(teller, answer.member_id, answer.generation_id)
            teller.ask(ApiKey.SYNC_GROUP, sync_version, request)
        leave = LeaveGroupRequest(teller.group_id, "", [MemberIdentity(answer.member_id)])
        teller.ask(ApiKey.LEAVE_GROUP, 5, leave)


def unknown_groups(teller: Teller) -> None:
    group_id = teller.group_id
    for each in ("", group_id):
        teller.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(each, 1, "nobody"))
        teller.ask(ApiKey.LEAVE_GROUP, 2, LeaveGroupRequest(each, "nobody"))
        leave = LeaveGroupRequest(each, "", [MemberIdentity("nobody"), MemberIdentity("", "i")])
        teller.ask(ApiKey.LEAVE_GROUP, 5, leave)
        teller.ask(ApiKey.SYNC_GROUP, 5, sync(teller, "nobody", 1, group_id=each))
        deletion = OffsetDeleteRequest(
            each, [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]
        )
        teller.ask(ApiKey.OFFSET_DELETE, 0, deletion)
    for version in (4, 5, 6):
        teller.ask(ApiKey.DESCRIBE_GROUPS, version, DescribeGroupsRequest([group_id, ""]))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id, ""]))
    teller.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([group_id, ""]))


def refused_members(teller: Teller) -> None:
    member_id, generation = joined(teller, "member")
    group_id = teller.group_id
    teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, member_id, generation))
    for request in (
        sync(teller, "nobody", generation),
        sync(teller, member_id, generation + 1),
        sync(teller, member_id, generation, protocol_type="connect"),
        sync(teller, member_id, generation, protocol_name="other"),
        sync(teller, member_id, generation, group_instance_id="i"),
        sync(teller, member_id, generation, protocol_type=None),
    ):
        teller.ask(ApiKey.SYNC_GROUP, 5, request)
    for heartbeat_of in (
        HeartbeatRequest(group_id, generation, "nobody"),
        HeartbeatRequest(group_id, generation + 1, member_id),
        HeartbeatRequest(group_id, generation, member_id, "i"),
        HeartbeatRequest(group_id, generation, member_id),
    ):
        teller.ask(ApiKey.HEARTBEAT, 4, heartbeat_of)
    for version in (2, 5, 8, 9):
        for request in (
            commit(teller, member_id, generation),
            commit(teller, member_id, generation + 1),
            commit(teller, "nobody", generation),
            commit(teller, "", -1),
        ):
            teller.ask(ApiKey.OFFSET_COMMIT, version, request)
    teller.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([group_id]))
    leave = [MemberIdentity("nobody"), MemberIdentity("", "i"), MemberIdentity(member_id, "i")]
    teller.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(group_id, "", leave))
    teller.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(group_id, "", [MemberIdentity(member_id)]))
    teller.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id, generation, member_id))
    teller.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([group_id]))


def static_members(teller: Teller) -> None:
    answer = teller.client().ask(ApiKey.JOIN_GROUP, 9, join(teller, group_instance_id="i"))
    first = teller.call(answer.member_id, "first")
    teller.keep(answer)
    request = sync(teller, first, answer.generation_id, group_instance_id="i")
    teller.ask(ApiKey.SYNC_GROUP, 5, request)
    for version in (8, 9):
        answer = teller.client().ask(
            ApiKey.JOIN_GROUP, version, join(teller, group_instance_id="i")
        )
        teller.call(answer.member_id, f"second {version}")
        teller.keep(answer)
    second = answer.member_id
    alive = HeartbeatRequest(teller.group_id, answer.generation_id, first, "i")
    teller.ask(ApiKey.HEARTBEAT, 4, alive)
    teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, member_id=first, group_instance_id="i"))
    alive = HeartbeatRequest(teller.group_id, answer.generation_id, second, "i")
    teller.ask(ApiKey.HEARTBEAT, 4, alive)
    request = sync(teller, second, answer.generation_id, group_instance_id="i")
    teller.ask(ApiKey.SYNC_GROUP, 5, request)
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([teller.group_id]))
    leave = [MemberIdentity(first, "i"), MemberIdentity("", "i")]
    teller.ask(ApiKey.LEAVE_GROUP, 5, LeaveGroupRequest(teller.group_id, "", leave))


def rebalances(teller: Teller) -> None:
    first, generation = stable(teller, "first")
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([teller.group_id]))
    answer = teller.client().ask(ApiKey.JOIN_GROUP, 9, join(teller))
    second = teller.call(answer.member_id, "second")
    waiting = teller.later(ApiKey.JOIN_GROUP, 9, join(teller, member_id=second))
    rejoins = heartbeat_until_rebalance(teller, first, generation)
    teller.keep(rejoins)
    teller.ask(ApiKey.SYNC_GROUP, 5, sync(teller, first, generation))
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([teller.group_id]))
    teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, first, generation))
    generation = teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, member_id=first)).generation_id
    waiting()
    teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, member_id=second))
    waiting = teller.later(ApiKey.SYNC_GROUP, 5, sync(teller, second, generation))
    assignments = [
        SyncGroupRequestAssignment(first, b"one"),
        SyncGroupRequestAssignment(second, b"two"),
    ]
    teller.ask(ApiKey.SYNC_GROUP, 5, sync(teller, first, generation, assignments=assignments))
    waiting()
    teller.ask(ApiKey.JOIN_GROUP, 9, join(teller, member_id=second))
    states: list[list[str]] = [["stable"], ["STABLE", "Empty"], ["empty"], []]
    for state in states:
        teller.keep(listed(teller, ListGroupsRequest(state)))
    for kind in (["classic"], ["Classic", "consumer"], ["consumer"], ["other"]):
        teller.keep(listed(teller, ListGroupsRequest([], kind)))
    changed = [JoinGroupRequestProtocol("range", READS_ORDERS + b"x")]
    waiting = teller.later(ApiKey.JOIN_GROUP, 9, join(teller, member_id=second, protocols=changed))
    teller.keep(heartbeat_until_rebalance(teller, first, generation))
    leave = LeaveGroupRequest(teller.group_id, "", [MemberIdentity(first)])
    teller.ask(ApiKey.LEAVE_GROUP, 5, leave)
    waiting()


def heartbeat_until_rebalance(teller: Teller, member_id: str, generation: int) -> Any:
    """Send heartbeats until the broker has taken notice of what another connection sent."""
    client = teller.client()
    for _ in range(1_000):
        alive = HeartbeatRequest(teller.group_id, generation, member_id)
        answer = client.ask(ApiKey.HEARTBEAT, 4, alive)
        if answer.error_code:
            return answer
    raise TimeoutError("there is no rebalance")


def listed(teller: Teller, request: ListGroupsRequest) -> list[Any]:
    answer = teller.client().ask(ApiKey.LIST_GROUPS, 5, request)
    return [group for group in answer.groups if group.group_id == teller.group_id]


def other_protocols(teller: Teller) -> None:
    changes: dict[str, Any] = {
        "protocol_type": "connect",
        "protocols": [JoinGroupRequestProtocol(n, n.encode()) for n in ("sessioned", "default")],
    }
    member_id, generation = joined(teller, "worker", **changes)
    request = sync(
        teller, member_id, generation, protocol_type="connect", protocol_name="sessioned"
    )
    teller.ask(ApiKey.SYNC_GROUP, 5, request)
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([teller.group_id]))
    teller.keep(listed(teller, ListGroupsRequest()))
    deletion = OffsetDeleteRequest(
        teller.group_id, [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]
    )
    teller.ask(ApiKey.OFFSET_DELETE, 0, deletion)
    teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat(teller, "m", 0))


def offsets(teller: Teller) -> None:
    group_id, topic_id = teller.group_id, teller.topic_id("orders")
    teller.ask(ApiKey.OFFSET_COMMIT, 8, commit(teller, "nobody", 3))
    teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, "nobody", 3))
    parts = [
        OffsetCommitRequestPartition(0, 5, 1, committed_metadata="note"),
        OffsetCommitRequestPartition(1, 6, committed_metadata=None),
        OffsetCommitRequestPartition(2, 7, committed_metadata="x" * 4097),
        OffsetCommitRequestPartition(9, 7, committed_metadata=""),
        OffsetCommitRequestPartition(-1, 7, committed_metadata=""),
    ]
    topics = [
        OffsetCommitRequestTopic("orders", topic_id, parts),
        OffsetCommitRequestTopic("nothing", bytes(range(16)), parts[:1]),
    ]
    for version in (2, 6, 9, 10):
        teller.ask(ApiKey.OFFSET_COMMIT, version, commit(teller, topics=topics))
    teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, topics=topics[1:], epoch=3))
    teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, topics=topics, group_id=""))
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([group_id]))
    teller.keep(listed(teller, ListGroupsRequest()))
    one = [OffsetFetchRequestTopic("orders", [0, 1, 9]), OffsetFetchRequestTopic("nothing", [0])]
    for version in (1, 2, 5, 7):
        teller.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(group_id, one))
    for version in (2, 7):
        teller.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(group_id, None))
    for version in (8, 9, 10):
        several = [
            OffsetFetchRequestTopics("orders", topic_id, [0, 1, 9]),
            OffsetFetchRequestTopics("nothing", bytes(range(16)), [0]),
        ]
        groups = [
            OffsetFetchRequestGroup(group_id, None, -1, several),
            OffsetFetchRequestGroup(group_id, None, -1, None),
            OffsetFetchRequestGroup(f"{group_id} other", None, -1, several[:1]),
        ]
        teller.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=groups))
    deletion = OffsetDeleteRequest(
        group_id,
        [
            OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(n) for n in (0, 9)]),
            OffsetDeleteRequestTopic("nothing", [OffsetDeleteRequestPartition(0)]),
        ],
    )
    teller.ask(ApiKey.OFFSET_DELETE, 0, deletion)
    teller.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id, None))
    stable(teller)
    teller.ask(ApiKey.OFFSET_DELETE, 0, deletion)


def refused_consumers(teller: Teller) -> None:
    teller.topic_id("orders")
    for version in (0, 1):
        for request in (
            heartbeat(teller, "", 0, group_id=""),
            heartbeat(teller, " ", 0),
            heartbeat(teller, "m", 0, instance_id=""),
            heartbeat(teller, "m", 0, rack_id=""),
            heartbeat(teller, "m", 0, rebalance_timeout_ms=-1),
            heartbeat(teller, "m", 0, topic_partitions=None),
            heartbeat(teller, "m", 0, topic_partitions=[TopicPartitions(ZERO_UUID, [0])]),
            heartbeat(teller, "m", 0, subscribed_topic_names=None),
            heartbeat(teller, "m", 0, server_assignor="other"),
            heartbeat(teller, "m", 1),
            heartbeat(teller, "", 1),
            heartbeat(teller, "m", -1),
            heartbeat(teller, "", -1),
            heartbeat(teller, "m", -2),
            heartbeat(teller, "m", -2, instance_id="i"),
            heartbeat(teller, "m", -3),
        ):
            teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)


def consumers(teller: Teller) -> None:
    topic_id = teller.topic_id("orders")
    key, group_id = ApiKey.CONSUMER_GROUP_HEARTBEAT, teller.group_id
    teller.ask(key, 1, heartbeat(teller, "m1", 0))
    teller.ask(key, 1, heartbeat(teller, "m1", 2))
    teller.ask(key, 1, heartbeat(teller, "m1", 1))
    teller.ask(key, 1, heartbeat(teller, "m9", 1))
    teller.keep(listed(teller, ListGroupsRequest()))
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([group_id]))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id]))
    teller.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest([group_id]))
    teller.ask(ApiKey.OFFSET_COMMIT, 8, commit(teller, "m1", 1))
    for member_id, epoch in (("m1", 1), ("m1", 0), ("m1", 7), ("nobody", 1), ("", -1)):
        teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, member_id, epoch))
        topics = [OffsetFetchRequestTopics("orders", topic_id, [0])]
        fetched = OffsetFetchRequestGroup(group_id, member_id or None, epoch, topics)
        teller.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[fetched]))
    # The second member waits for what the first has to give up.
    teller.ask(key, 1, heartbeat(teller, "m2", 0))
    teller.ask(key, 1, heartbeat(teller, "m1", 1))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id]))
    kept = [TopicPartitions(topic_id, [0, 1])]
    lost = [TopicPartitions(topic_id, [2, 3])]
    teller.ask(key, 1, heartbeat(teller, "m1", 1, topic_partitions=kept))
    teller.ask(key, 1, heartbeat(teller, "m1", 1, topic_partitions=lost))
    teller.ask(key, 1, heartbeat(teller, "m2", 2))
    teller.ask(key, 1, heartbeat(teller, "m2", 1))
    teller.ask(key, 1, heartbeat(teller, "m2", 2, subscribed_topic_names=["payments", "none"]))
    teller.ask(key, 1, heartbeat(teller, "m2", 2, topic_partitions=[]))
    teller.ask(key, 1, heartbeat(teller, "m1", -1))
    teller.ask(key, 1, heartbeat(teller, "m1", 2))
    teller.keep(listed(teller, ListGroupsRequest()))
    teller.ask(key, 1, heartbeat(teller, "m2", -1))
    teller.keep(listed(teller, ListGroupsRequest()))
    teller.ask(ApiKey.JOIN_GROUP, 3, join(teller, protocols=[]))
    # It is another group now, which Kafka lists when it has written something of it.
    teller.ask(ApiKey.OFFSET_COMMIT, 9, commit(teller, "", -1))
    teller.keep(listed(teller, ListGroupsRequest()))


def static_consumers(teller: Teller) -> None:
    key, group_id = ApiKey.CONSUMER_GROUP_HEARTBEAT, teller.group_id
    teller.topic_id("orders")
    teller.ask(key, 1, heartbeat(teller, "m1", 0, instance_id="i"))
    teller.ask(key, 1, heartbeat(teller, "m2", 0, instance_id="i"))
    teller.ask(key, 1, heartbeat(teller, "m2", 1, instance_id="i"))
    teller.ask(key, 1, heartbeat(teller, "m2", -2, instance_id="i"))
    teller.ask(key, 1, heartbeat(teller, "m1", -2, instance_id="i"))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id]))
    teller.ask(key, 1, heartbeat(teller, "m2", 0, instance_id="i"))
    teller.ask(key, 1, heartbeat(teller, "m1", 1, instance_id="i"))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id]))
    teller.ask(key, 1, heartbeat(teller, "m2", -1, instance_id="i"))


def upgrades(teller: Teller) -> None:
    key, group_id = ApiKey.CONSUMER_GROUP_HEARTBEAT, teller.group_id
    topic_id = teller.topic_id("orders")
    first, generation = joined(teller, "first")
    assignment = b"\0\1\0\0\0\1\0\6orders\0\0\0\4" + bytes(3) + b"\0" + bytes(3) + b"\1"
    assignment += bytes(3) + b"\2" + bytes(3) + b"\3" + b"\xff" * 4
    assignments = [SyncGroupRequestAssignment(first, assignment)]
    request = sync(teller, first, generation, assignments=assignments)
    teller.ask(ApiKey.SYNC_GROUP, 5, request)
    teller.ask(key, 1, heartbeat(teller, "m2", 0))
    teller.keep(listed(teller, ListGroupsRequest()))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id]))
    teller.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id, generation, first))
    teller.ask(ApiKey.SYNC_GROUP, 5, sync(teller, first, generation))
    owned = subscription("orders", version=1)
    owned += b"\0\0\0\1\0\6orders\0\0\0\4" + assignment[-20:-4]
    protocols = [JoinGroupRequestProtocol("range", owned)]
    request = join(teller, member_id=first, protocols=protocols)
    answer = teller.ask(ApiKey.JOIN_GROUP, 9, request)
    request = sync(teller, first, answer.generation_id, assignments=[])
    half = teller.ask(ApiKey.SYNC_GROUP, 5, request).assignment[-12:-4]
    teller.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id, answer.generation_id, first))
    owned = subscription("orders", version=1) + b"\0\0\0\1\0\6orders\0\0\0\2" + half
    protocols = [JoinGroupRequestProtocol("range", owned)]
    request = join(teller, member_id=first, protocols=protocols)
    answer = teller.ask(ApiKey.JOIN_GROUP, 9, request)
    teller.ask(ApiKey.SYNC_GROUP, 5, sync(teller, first, answer.generation_id, assignments=[]))
    teller.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id, answer.generation_id, first))
    teller.ask(key, 1, heartbeat(teller, "m2", 2))
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest([group_id]))
    teller.ask(ApiKey.OFFSET_COMMIT, 8, commit(teller, first, answer.generation_id))
    teller.ask(ApiKey.OFFSET_COMMIT, 8, commit(teller, first, answer.generation_id + 1))
    # The last member of the newer protocol leaves, and the group is a classic one again.
    teller.ask(key, 1, heartbeat(teller, "m2", -1))
    teller.keep(listed(teller, ListGroupsRequest()))
    teller.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest([group_id]))
    teller.ask(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id, answer.generation_id, first))
    assert topic_id


def invalid_expressions(teller: Teller) -> None:
    for regex in ("(", "[a", "a**", r"\1", "(?=a)", "x{1001}", "*"):
        request = heartbeat(
            teller, "m", 0, subscribed_topic_names=None, subscribed_topic_regex=regex
        )
        client = teller.client()
        teller.keep(client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request).error_code)


def internal_topics(teller: Teller) -> None:
    """Write to a topic that a cluster makes for itself, and delete from it."""
    name = "__share_group_state"
    creation = CreateTopicsRequest([CreatableTopic(name, 1, 1)], 1000)
    teller.client().ask(ApiKey.CREATE_TOPICS, 7, creation)
    metadata = MetadataRequest([MetadataRequestTopic(name=name)])

    def shown() -> Any:
        return teller.client().ask(ApiKey.METADATA, 12, metadata).topics[0]

    wait_for(name, lambda: not shown().error_code or None, 20)
    teller.keep(shown().is_internal)
    data = [PartitionProduceData(0, batch(b"value")), PartitionProduceData(1, batch(b"value"))]
    write = ProduceRequest(None, -1, 1000, [TopicProduceData(name, partition_data=data)])
    for version in (3, 8, 12):
        teller.ask(ApiKey.PRODUCE, version, write)
    for client_id in ("__admin_client", "__admin"):
        with BlockingClient(teller.client().socket, client_id) as client:
            teller.keep(client.ask(ApiKey.PRODUCE, 12, write).responses[0].partition_responses)
    deletions = [DeleteRecordsPartition(each, 0) for each in (0, 1)]
    request = DeleteRecordsRequest([DeleteRecordsTopic(name, deletions)], 1000)
    teller.ask(ApiKey.DELETE_RECORDS, 2, request)


STORIES: Final[tuple[Story, ...]] = (
    refused_joins,
    joins_of_old,
    unknown_groups,
    refused_members,
    static_members,
    rebalances,
    other_protocols,
    offsets,
    refused_consumers,
    consumers,
    static_consumers,
    upgrades,
    invalid_expressions,
    internal_topics,
)
