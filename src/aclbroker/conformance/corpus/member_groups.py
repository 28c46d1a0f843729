"""Cases of the group protocols of KIP-848 (consumer) and KIP-1071 (streams)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from aclbroker.conformance.case import Case
from aclbroker.conformance.resources import ABSENT_GROUPS, GROUPS, group, topic
from aclbroker.protocol.messages import (
    ApiKey,
    consumer_group_describe,
    consumer_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
)

_EVERY_GROUP: Final = (*GROUPS, *ABSENT_GROUPS)
_MEMBER: Final = "nobody"
_EPOCH: Final = 7
"""The epoch of a member that has joined; none has, so the coordinator knows no such member."""

SUBSCRIPTIONS: Final[dict[str, Sequence[str] | None]] = {
    "nothing": None,
    "an empty list": (),
    "allowed topics": (topic("read"), topic("describe"), topic("prefixed")),
    "a closed topic": (topic("read"), topic("closed"), topic("prefixed")),
}
"""The topics that a member subscribes to, by a description of them."""


def cases() -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    for name in (*GROUPS, ""):
        for label, topics in SUBSCRIPTIONS.items():
            yield _consumer_heartbeat(f"{name!r} with {label}", name, topics)
    yield _consumer_heartbeat("by a pattern", group("read"), None, regex="conformance-.*")
    for name in (*GROUPS, ""):
        yield Case(ApiKey.STREAMS_GROUP_HEARTBEAT, f"{name!r} without topology", _streams(name))
    for label, topology in _topologies().items():
        message = _streams(group("read"), member_epoch=0)
        message.topology = topology
        yield Case(ApiKey.STREAMS_GROUP_HEARTBEAT, f"with {label}", message)
    for include in (False, True):
        label = "with authorized operations" if include else "each"
        yield Case(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            label,
            consumer_group_describe.ConsumerGroupDescribeRequest(_EVERY_GROUP, include),
        )
        yield Case(
            ApiKey.STREAMS_GROUP_DESCRIBE,
            label,
            streams_group_describe.StreamsGroupDescribeRequest(_EVERY_GROUP, include),
        )


def _consumer_heartbeat(
    label: str, name: str, topics: Sequence[str] | None, regex: str | None = None
) -> Case:
    return Case(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        label,
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=name,
            member_id=_MEMBER,
            member_epoch=_EPOCH,
            instance_id=None,
            rack_id=None,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=None,
            topic_partitions=(),
        ),
        "1+" if regex else "0+",
    )


def _streams(
    name: str, member_epoch: int = _EPOCH
) -> streams_group_heartbeat.StreamsGroupHeartbeatRequest:
    return streams_group_heartbeat.StreamsGroupHeartbeatRequest(
        group_id=name,
        member_id=_MEMBER,
        member_epoch=member_epoch,
        endpoint_information_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=10_000,
        topology=None,
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        process_id=None,
        user_endpoint=None,
        client_tags=None,
        task_offsets=None,
        task_end_offsets=None,
    )


def _topologies() -> dict[str, streams_group_heartbeat.Topology]:
    def topology(
        sources: Sequence[str], changelogs: Sequence[str] = (), repartitions: Sequence[str] = ()
    ) -> streams_group_heartbeat.Topology:
        m = streams_group_heartbeat
        return m.Topology(
            epoch=0,
            subtopologies=[
                m.Subtopology(
                    subtopology_id="0",
                    source_topics=sources,
                    state_changelog_topics=[m.TopicInfo(name) for name in changelogs],
                    repartition_source_topics=[m.TopicInfo(name) for name in repartitions],
                )
            ],
        )

    allowed, closed = topic("read"), topic("closed")
    return {
        "a closed source topic": topology((allowed, closed)),
        "a closed changelog topic": topology((allowed,), (closed,)),
        "a closed repartition topic": topology((allowed,), (), (closed,)),
        "an internal source topic": topology(("__consumer_offsets",)),
    }
