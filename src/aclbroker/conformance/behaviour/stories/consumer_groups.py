"""Stories of groups of KIP-848, and of those that become one."""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.behaviour.stories.group_requests import (
    commit,
    heartbeat,
    join,
    joined,
    owned_orders,
    partitions_in,
    subscription,
    sync,
)
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from aclbroker.protocol.messages.consumer_group_heartbeat import (
    TopicPartitions,
)
from aclbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.heartbeat import HeartbeatRequest
from aclbroker.protocol.messages.join_group import JoinGroupRequestProtocol
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aclbroker.protocol.messages.sync_group import SyncGroupRequestAssignment
from aclbroker.protocol.primitives import ZERO_UUID

_TOPICS: Final = {"orders": TopicWanted(4), "payments": TopicWanted(2)}


def refused_consumers(teller: Teller) -> None:
    """Tell which heartbeats (KIP-848) are refused."""
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
            teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, version=version)


def consumers(teller: Teller) -> None:
    """Tell how partitions go from one member to another (KIP-848)."""
    topic_id = teller.ids["orders"]
    key, group_id = ApiKey.CONSUMER_GROUP_HEARTBEAT, teller.group_id
    teller.ask(key, heartbeat(teller, "m1", 0), version=1)
    teller.ask(key, heartbeat(teller, "m1", 2), version=1)
    teller.ask(key, heartbeat(teller, "m1", 1), version=1)
    teller.ask(key, heartbeat(teller, "m9", 1), version=1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([group_id]), version=6)
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id]), version=1)
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group_id]), version=2)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, "m1", 1), version=8)
    for member_id, epoch in (("m1", 1), ("m1", 0), ("m1", 7), ("nobody", 1), ("", -1)):
        teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, member_id, epoch), version=9)
        topics = [OffsetFetchRequestTopics(teller.name("orders"), topic_id, [0])]
        fetched = OffsetFetchRequestGroup(group_id, member_id or None, epoch, topics)
        teller.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=[fetched]), version=9)
    # The second member waits for what the first has to give up.
    teller.ask(key, heartbeat(teller, "m2", 0), version=1)
    teller.ask(key, heartbeat(teller, "m1", 1), version=1)
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id]), version=1)
    kept = [TopicPartitions(topic_id, [0, 1])]
    lost = [TopicPartitions(topic_id, [2, 3])]
    teller.ask(key, heartbeat(teller, "m1", 1, topic_partitions=kept), version=1)
    teller.ask(key, heartbeat(teller, "m1", 1, topic_partitions=lost), version=1)
    teller.ask(key, heartbeat(teller, "m2", 2), version=1)
    teller.ask(key, heartbeat(teller, "m2", 1), version=1)
    teller.ask(
        key,
        heartbeat(teller, "m2", 2, subscribed_topic_names=[teller.name("payments"), "none"]),
        version=1,
    )
    teller.ask(key, heartbeat(teller, "m2", 2, topic_partitions=[]), version=1)
    teller.ask(key, heartbeat(teller, "m1", -1), version=1)
    teller.ask(key, heartbeat(teller, "m1", 2), version=1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(key, heartbeat(teller, "m2", -1), version=1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(ApiKey.JOIN_GROUP, join(teller, protocols=[]), version=3)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    # The group is a classic one now, and stays so when a client without a member id commits.
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, "", -1), version=9)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)


def static_consumers(teller: Teller) -> None:
    """Tell how static members (KIP-848) leave and come back."""
    key, group_id = ApiKey.CONSUMER_GROUP_HEARTBEAT, teller.group_id
    teller.ask(key, heartbeat(teller, "m1", 0, instance_id="i"), version=1)
    teller.ask(key, heartbeat(teller, "m2", 0, instance_id="i"), version=1)
    teller.ask(key, heartbeat(teller, "m2", 1, instance_id="i"), version=1)
    teller.ask(key, heartbeat(teller, "m2", -2, instance_id="i"), version=1)
    teller.ask(key, heartbeat(teller, "m1", -2, instance_id="i"), version=1)
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id]), version=1)
    teller.ask(key, heartbeat(teller, "m2", 0, instance_id="i"), version=1)
    teller.ask(key, heartbeat(teller, "m1", 1, instance_id="i"), version=1)
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id]), version=1)
    teller.ask(key, heartbeat(teller, "m2", -1, instance_id="i"), version=1)


def upgrades(teller: Teller) -> None:
    """Tell how a group becomes one of KIP-848, and a classic one again."""
    key, group_id = ApiKey.CONSUMER_GROUP_HEARTBEAT, teller.group_id
    first, generation = joined(teller, "first")
    assignment = b"\0\1" + owned_orders(teller, range(4)) + b"\xff" * 4
    assignments = [SyncGroupRequestAssignment(first, assignment)]
    request = sync(teller, first, generation, assignments=assignments)
    teller.ask(ApiKey.SYNC_GROUP, request, version=5)
    teller.ask(key, heartbeat(teller, "m2", 0), version=1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id]), version=1)
    teller.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group_id, generation, first), version=4)
    teller.ask(ApiKey.SYNC_GROUP, sync(teller, first, generation), version=5)
    owned = subscription(teller.name("orders")) + owned_orders(teller, range(4))
    protocols = [JoinGroupRequestProtocol("range", owned)]
    request = join(teller, member_id=first, protocols=protocols)
    answer = teller.ask(ApiKey.JOIN_GROUP, request, version=9)
    request = sync(teller, first, answer.generation_id, assignments=[])
    half = partitions_in(teller.ask(ApiKey.SYNC_GROUP, request, version=5).assignment)
    teller.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group_id, answer.generation_id, first), version=4)
    owned = subscription(teller.name("orders")) + owned_orders(teller, half)
    protocols = [JoinGroupRequestProtocol("range", owned)]
    request = join(teller, member_id=first, protocols=protocols)
    answer = teller.ask(ApiKey.JOIN_GROUP, request, version=9)
    teller.ask(
        ApiKey.SYNC_GROUP, sync(teller, first, answer.generation_id, assignments=[]), version=5
    )
    teller.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group_id, answer.generation_id, first), version=4)
    teller.ask(key, heartbeat(teller, "m2", 2), version=1)
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest([group_id]), version=1)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, first, answer.generation_id), version=8)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, first, answer.generation_id + 1), version=8)
    # The last member of the newer protocol leaves, and the group is a classic one again.
    teller.ask(key, heartbeat(teller, "m2", -1), version=1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([group_id]), version=6)
    teller.ask(ApiKey.HEARTBEAT, HeartbeatRequest(group_id, answer.generation_id, first), version=4)


def invalid_expressions(teller: Teller) -> None:
    """Tell which regular expressions of topics are refused."""
    for regex in ("(", "[a", "a**", r"\1", "(?=a)", "x{1001}", "*"):
        request = heartbeat(
            teller, "m", 0, subscribed_topic_names=None, subscribed_topic_regex=regex
        )
        teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, regex, version=1)


STORIES: Final = (
    Story(refused_consumers, _TOPICS, newest_only=True),
    Story(consumers, _TOPICS, newest_only=True),
    Story(static_consumers, _TOPICS, newest_only=True),
    Story(upgrades, _TOPICS, newest_only=True),
    Story(invalid_expressions, _TOPICS, newest_only=True),
)
