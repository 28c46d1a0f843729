"""What descriptions of groups and transactions must not show: topics that one may not describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode

_HIDDEN = "The group has topics that the principal may not describe."


def _hide_groups(rights: RequestRights, response: Any, topics_of: Callable[[Any], set[str]]) -> Any:
    """Refuse each described group that has a topic which may not be described."""
    topics = [topics_of(group) for group in response.groups]
    seen = rights.allowed("show", set().union(*topics))
    response.groups = [
        group
        if names <= seen
        else type(group)(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message=_HIDDEN,
            group_id=group.group_id,
        )
        for group, names in zip(response.groups, topics, strict=True)
    ]
    return response


def hide_consumer_groups(rights: RequestRights, response: Any) -> Any:
    """Look for topics in what the members have and are to have."""

    def topics_of(group: Any) -> set[str]:
        return {
            partition.topic_name
            for member in group.members
            for assignment in (member.assignment, member.target_assignment)
            for partition in assignment.topic_partitions
        }

    return _hide_groups(rights, response, topics_of)


def hide_share_groups(rights: RequestRights, response: Any) -> Any:
    """Look for topics in what the members have."""

    def topics_of(group: Any) -> set[str]:
        return {
            partition.topic_name
            for member in group.members
            for partition in member.assignment.topic_partitions
        }

    return _hide_groups(rights, response, topics_of)


def hide_streams_groups(rights: RequestRights, response: Any) -> Any:
    """Look for topics in the topology."""

    def topics_of(group: Any) -> set[str]:
        parts = (group.topology.subtopologies or ()) if group.topology else ()
        return {
            name
            for part in parts
            for name in (
                *part.source_topics,
                *part.repartition_sink_topics,
                *(info.name for info in part.repartition_source_topics),
                *(info.name for info in part.state_changelog_topics),
            )
        }

    return _hide_groups(rights, response, topics_of)


def hide_transaction_topics(rights: RequestRights, response: Any) -> Any:
    """Leave out of each transaction the topics that may not be described."""
    states = response.transaction_states
    seen = rights.allowed("show", {topic.topic for state in states for topic in state.topics})
    for state in states:
        state.topics = [topic for topic in state.topics if topic.topic in seen]
    return response
