"""Stories of the members of share groups (KIP-932), and of how far groups are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aclbroker.conformance.behaviour.stories.group_requests import commit, heartbeat, join
from aclbroker.conformance.behaviour.stories.requests import fill
from aclbroker.conformance.behaviour.stories.share_requests import (
    Session,
    beat,
    configured,
    joined,
)
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import alter_share_group_offsets as altered
from aclbroker.protocol.messages import delete_share_group_offsets as deleted
from aclbroker.protocol.messages import describe_configs as configs
from aclbroker.protocol.messages import describe_share_group_offsets as described
from aclbroker.protocol.messages import incremental_alter_configs as changed
from aclbroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from aclbroker.protocol.messages.delete_groups import DeleteGroupsRequest
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aclbroker.protocol.messages.share_group_describe import ShareGroupDescribeRequest

_ONE: Final = {"orders": TopicWanted(1)}
_THREE: Final = {"orders": TopicWanted(3)}
_GROUP: Final = 32
_SET: Final = 0
_DELETE: Final = 1


def refused_sharers(teller: Teller) -> None:
    """Tell which heartbeats of share groups are refused."""
    for request in (
        beat(teller, "", 0),
        beat(teller, "x" * 37, 0),
        beat(teller, "m", 0, group_id=""),
        beat(teller, "m", 0, group_id=" "),
        beat(teller, "m", 0, rack_id=""),
        beat(teller, "m", 0, subscribed_topic_names=None),
        beat(teller, "m", 0, subscribed_topic_names=[]),
        beat(teller, "m", 1),
        beat(teller, "m", -1),
        beat(teller, "m", -2),
    ):
        teller.ask(ApiKey.SHARE_GROUP_HEARTBEAT, request, version=1)


def _describe(teller: Teller, about: str) -> None:
    group_ids = [teller.group_id, teller.name("none"), ""]
    for operations in (False, True):
        request = ShareGroupDescribeRequest(group_ids, operations)
        teller.ask(ApiKey.SHARE_GROUP_DESCRIBE, request, about, version=1)


def sharers(teller: Teller) -> None:
    """Tell how members of a share group come and go."""
    key, group_id = ApiKey.SHARE_GROUP_HEARTBEAT, teller.group_id
    epoch = joined(teller, "m1")
    for wrong in (epoch + 1, epoch - 2, 0):
        teller.ask(key, beat(teller, "m1", wrong), f"m1 in {wrong - epoch:+}", 1)
    teller.ask(key, beat(teller, "nobody", epoch), version=1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest([], ["share"]), version=5)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest([], ["consumer"]), version=5)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([group_id]), version=6)
    _describe(teller, "of one")
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group_id]), version=2)
    second = teller.ask(key, beat(teller, "m2", 0), "m2 joins", 1).member_epoch
    teller.ask(key, beat(teller, "m1", epoch), "m1 learns of it", 1)
    teller.ask(key, beat(teller, "m1", epoch), "m1 asks again", 1)
    _describe(teller, "of two")
    nowhere = beat(teller, "m2", second, subscribed_topic_names=[teller.name("nowhere")])
    third = teller.ask(key, nowhere, "m2 reads nothing", 1).member_epoch
    teller.ask(key, beat(teller, "m2", third, rack_id="here"), "m2 is in a rack", 1)
    teller.ask(key, beat(teller, "m1", second), "m1 goes on", 1)
    _describe(teller, "of one that reads and one that does not")
    teller.ask(key, beat(teller, "m1", -1), "m1 leaves", 1)
    teller.ask(key, beat(teller, "m1", -1), "m1 leaves again", 1)
    teller.ask(key, beat(teller, "m2", -1), "m2 leaves", 1)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    _describe(teller, "of none")
    joined(teller, "m3")
    teller.ask(key, beat(teller, "m3", -1), "m3 leaves", 1)
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([group_id]), version=2)
    _describe(teller, "gone")


def groups_of_other_kinds(teller: Teller) -> None:
    """Tell what share groups are to other protocols, and other groups to share groups."""
    key = ApiKey.SHARE_GROUP_HEARTBEAT
    joined(teller, "m1")
    _as_other(teller, "with a member")
    teller.ask(key, beat(teller, "m1", -1), "m1 leaves", 1)
    _as_other(teller, "without members")
    other = teller.name("other")
    joins = heartbeat(teller, "c1", 0, group_id=other)
    teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, joins, version=1)
    for epoch in (0, 1, -1):
        teller.ask(key, beat(teller, "m1", epoch, group_id=other), "of a consumer group", 1)
    teller.ask(ApiKey.SHARE_GROUP_DESCRIBE, ShareGroupDescribeRequest([other]), version=1)
    _alter(teller, "of a consumer group", {"orders": [(0, 1)]}, group_id=other)
    _delete(teller, "of a consumer group", ["orders"], group_id=other)
    _offsets(teller, "of a consumer group", None, group_id=other)


def _as_other(teller: Teller, about: str) -> None:
    group_id = teller.group_id
    teller.ask(ApiKey.JOIN_GROUP, join(teller), about, 9)
    for epoch in (0, 3):
        request = heartbeat(teller, "c1", epoch)
        teller.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, about, 1)
    describe = ConsumerGroupDescribeRequest([group_id])
    teller.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, describe, about, 1)
    for member_id, epoch in (("", -1), ("m1", 3)):
        teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, member_id, epoch), about, 9)
    topics = [OffsetFetchRequestTopics(teller.name("orders"), teller.ids["orders"], [0])]
    fetched = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id, None, -1, topics)])
    teller.ask(ApiKey.OFFSET_FETCH, fetched, about, 9)


def _offsets(
    teller: Teller,
    about: str,
    topics: Sequence[tuple[str, Sequence[int]]] | None,
    group_id: str | None = None,
) -> None:
    asked = None
    if topics is not None:
        asked = [
            described.DescribeShareGroupOffsetsRequestTopic(teller.name(name), partitions)
            for name, partitions in topics
        ]
    group = described.DescribeShareGroupOffsetsRequestGroup(group_id or teller.group_id, asked)
    request = described.DescribeShareGroupOffsetsRequest([group])
    for version in (0, 1):
        teller.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, request, about, version)


def _alter(
    teller: Teller,
    about: str,
    topics: dict[str, list[tuple[int, int]]],
    group_id: str | None = None,
) -> None:
    m = altered
    request = m.AlterShareGroupOffsetsRequest(
        teller.group_id if group_id is None else group_id,
        [
            m.AlterShareGroupOffsetsRequestTopic(
                teller.name(name),
                [m.AlterShareGroupOffsetsRequestPartition(*each) for each in some],
            )
            for name, some in topics.items()
        ],
    )
    teller.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, request, about, 0)


def _delete(teller: Teller, about: str, topics: Sequence[str], group_id: str | None = None) -> None:
    m = deleted
    request = m.DeleteShareGroupOffsetsRequest(
        teller.group_id if group_id is None else group_id,
        [m.DeleteShareGroupOffsetsRequestTopic(teller.name(name)) for name in topics],
    )
    teller.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, request, about, 0)


def progress_of_share_groups(teller: Teller) -> None:
    """Tell how far a share group is, and how that is changed and forgotten."""
    fill(teller, "orders")
    _offsets(teller, "of no group", None)
    _offsets(teller, "of no group", [("orders", [0, 1])])
    _delete(teller, "of no group", ["orders"])
    configured(teller, auto_offset_reset="earliest")
    joined(teller, "m1")
    _offsets(teller, "before it reads", None)
    session = Session(teller, "m1")
    session.fetch("all")
    _offsets(teller, "before anything is acknowledged", None)
    session.say("two", (0, 1, [1]))
    session.say("one further on", (3, 3, [3]))
    _offsets(teller, "of what is acknowledged", None)
    _offsets(teller, "of some", [("orders", [0, 2])])
    _alter(teller, "with a member", {"orders": [(0, 1)]})
    _delete(teller, "with a member", ["orders"])
    session.say("the rest", (2, 2, [1]))
    _offsets(teller, "of all", None)
    teller.ask(ApiKey.SHARE_GROUP_HEARTBEAT, beat(teller, "m1", -1), version=1)
    _alter(teller, "without members", {"orders": [(0, 1), (9, 0)], "nowhere": [(0, 0)]})
    _offsets(teller, "after that", None)
    _alter(teller, "behind the end", {"orders": [(0, 300)]})
    _offsets(teller, "after that", None)
    _alter(teller, "to none", {"orders": [(0, -1)]})
    _offsets(teller, "after that", None)
    _alter(teller, "of a group without an id", {"orders": [(0, 1)]}, group_id="")
    _delete(teller, "of a group without an id", ["orders"], group_id="")
    _delete(teller, "of some that is there", ["orders", "nowhere"])
    _offsets(teller, "after that", None)
    _delete(teller, "of nothing", [])
    new = teller.name("new")
    _alter(teller, "of a new group", {"orders": [(0, 2)]}, group_id=new)
    _offsets(teller, "of a new group", None, group_id=new)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    teller.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest([new, teller.group_id]), version=2)


def settings_of_share_groups(teller: Teller) -> None:
    """Tell how settings of single groups are changed and described."""
    names = (
        *("share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"),
        *("share.session.timeout.ms", "share.heartbeat.interval.ms", "share.delivery.count.limit"),
        *("share.record.lock.duration.ms", "share.partition.max.record.locks"),
    )

    def describe(about: str, group_id: str) -> None:
        resource = configs.DescribeConfigsResource(_GROUP, group_id, names)
        request = configs.DescribeConfigsRequest([resource], include_synonyms=True)
        teller.ask(ApiKey.DESCRIBE_CONFIGS, request, about, 4)

    def alter(about: str, *changes: tuple[str, int, Any], group_id: str | None = None) -> None:
        entries = [changed.AlterableConfig(*each) for each in changes]
        own = teller.group_id if group_id is None else group_id
        resource = changed.AlterConfigsResource(_GROUP, own, entries)
        request = changed.IncrementalAlterConfigsRequest([resource])
        teller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, about, 1)
        teller.settle()
        describe(f"after {about}", teller.group_id)

    describe("at first", teller.group_id)
    describe("of no group", "")
    alter("none")
    alter("a time", ("share.session.timeout.ms", _SET, "50000"))
    alter("two", ("share.auto.offset.reset", _SET, "by_duration:PT1H"),
          ("share.isolation.level", _SET, "read_committed"))  # fmt: skip
    alter("one deleted", ("share.session.timeout.ms", _DELETE, None))
    alter("a list", ("share.isolation.level", 2, "x"))
    for name, values in {
        "share.session.timeout.ms": ("1", "44999", "60001", "soon", "-1"),
        "share.heartbeat.interval.ms": ("4999", "15001"),
        "share.record.lock.duration.ms": ("14999", "60001"),
        "share.delivery.count.limit": ("1", "11"),
        "share.partition.max.record.locks": ("99", "4001"),
        "share.auto.offset.reset": ("none", "by_duration:", "by_duration:1h", "by_duration:-PT1H"),
        "share.isolation.level": ("committed",),
        "share.renew.acknowledge.enable": ("perhaps",),
        "share.colour": ("red",),
    }.items():
        for value in values:
            alter(f"{name} {value}", (name, _SET, value))
    alter("one right, one wrong", ("share.delivery.count.limit", _SET, "3"),
          ("share.colour", _SET, "red"))  # fmt: skip
    alter("of no group", ("share.delivery.count.limit", _SET, "3"), group_id="")


STORIES: Final = (
    Story(refused_sharers, _ONE, newest_only=True),
    Story(sharers, _ONE, newest_only=True),
    Story(groups_of_other_kinds, _THREE, newest_only=True),
    Story(progress_of_share_groups, _THREE, newest_only=True),
    Story(settings_of_share_groups, newest_only=True),
)
