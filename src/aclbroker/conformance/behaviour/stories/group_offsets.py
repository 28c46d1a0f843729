"""Stories of the offsets of groups."""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.behaviour.stories.group_requests import commit, stable
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.offset_commit import (
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

_TOPICS: Final = {"orders": TopicWanted(4), "payments": TopicWanted(2)}


def offsets_of_groups(teller: Teller) -> None:
    """Tell which offsets are kept, shown and deleted."""
    group_id, topic_id = teller.group_id, teller.ids["orders"]
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, "nobody", 3), version=8)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, "nobody", 3), version=9)
    parts = [
        OffsetCommitRequestPartition(0, 5, 1, committed_metadata="note"),
        OffsetCommitRequestPartition(1, 6, committed_metadata=None),
        OffsetCommitRequestPartition(2, 7, committed_metadata="x" * 4097),
        OffsetCommitRequestPartition(9, 7, committed_metadata=""),
        OffsetCommitRequestPartition(-1, 7, committed_metadata=""),
    ]
    topics = [
        OffsetCommitRequestTopic(teller.name("orders"), topic_id, parts),
        OffsetCommitRequestTopic("nothing", bytes(range(16)), parts[:1]),
    ]
    for version in (2, 6, 9, 10):
        teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, topics=topics), version=version)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, topics=topics[1:], epoch=3), version=9)
    teller.ask(ApiKey.OFFSET_COMMIT, commit(teller, topics=topics, group_id=""), version=9)
    teller.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest([group_id]), version=6)
    teller.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version=5)
    one = [
        OffsetFetchRequestTopic(teller.name("orders"), [0, 1, 9]),
        OffsetFetchRequestTopic("nothing", [0]),
    ]
    for version in (1, 2, 5, 7):
        teller.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(group_id, one), version=version)
    for version in (2, 7):
        teller.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(group_id, None), version=version)
    for version in (8, 9, 10):
        several = [
            OffsetFetchRequestTopics(teller.name("orders"), topic_id, [0, 1, 9]),
            OffsetFetchRequestTopics("nothing", bytes(range(16)), [0]),
        ]
        groups = [
            OffsetFetchRequestGroup(group_id, None, -1, several),
            OffsetFetchRequestGroup(group_id, None, -1, None),
            OffsetFetchRequestGroup(f"{group_id} other", None, -1, several[:1]),
        ]
        teller.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(groups=groups), version=version)
    deletion = OffsetDeleteRequest(
        group_id,
        [
            OffsetDeleteRequestTopic(
                teller.name("orders"), [OffsetDeleteRequestPartition(n) for n in (0, 9)]
            ),
            OffsetDeleteRequestTopic("nothing", [OffsetDeleteRequestPartition(0)]),
        ],
    )
    teller.ask(ApiKey.OFFSET_DELETE, deletion, version=0)
    teller.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(group_id, None), version=7)
    stable(teller)
    teller.ask(ApiKey.OFFSET_DELETE, deletion, version=0)


STORIES: Final = (Story(offsets_of_groups, _TOPICS, newest_only=True),)
