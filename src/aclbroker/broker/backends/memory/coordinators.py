"""What coordinators of groups and transactional ids have in common: which it is, what is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from aclbroker.acl.bindings import ResourceType
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.showing import HIDDEN_TOPICS
from aclbroker.broker.memory.groups import GroupError
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

T = TypeVar("T")


def is_elsewhere(backend: MemoryBackend, rights: RequestRights, key: str) -> bool:
    """Tell whether another node coordinates a group or a transactional id."""
    return backend.cluster.coordinator(key) != backend.node(rights).node_id


def check_here(backend: MemoryBackend, rights: RequestRights, group_id: str) -> None:
    """Raise GroupError with NOT_COORDINATOR if another node coordinates a group."""
    if is_elsewhere(backend, rights, group_id):
        raise GroupError(ErrorCode.NOT_COORDINATOR)


def found_here(
    backend: MemoryBackend, rights: RequestRights, group_id: str, find: Callable[[str], T]
) -> T:
    """Return a group that this node coordinates; raises GroupError."""
    if not group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID)
    check_here(backend, rights, group_id)
    return find(group_id)


def described_each(
    rights: RequestRights,
    group_ids: Collection[str],
    described: Callable[[str], T],
    *,
    with_operations: bool,
) -> list[T]:
    """Return the description of each group, with the operations on it where they are wanted."""
    groups = []
    for group_id in in_turns(group_ids):
        group: Any = described(group_id)
        if with_operations and not group.error_code:
            group.authorized_operations = rights.operations(ResourceType.GROUP, group_id)
        groups.append(group)
    return groups


def refusal_of_topics(
    rights: RequestRights, topics: Catalog, assigned: Sequence[Collection[bytes]]
) -> GroupError | None:
    """Return the error of a group with topics that the session may not describe, else None.

    A handler checks this before it describes the group, so its time reveals no hidden topic.
    """
    ids = {topic for some in in_turns(assigned) for topic in some}
    names = [name for topic in in_turns(ids) if (name := topics.name_of(topic)) is not None]
    if len(rights.visible("show", names)) == len(names):
        return None
    return GroupError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)


def described_assignment(
    messages: Any, topics: Catalog, partitions: Mapping[bytes, Collection[int]]
) -> Any:
    """Return partitions of topics that exist, in the classes of a key that describes groups."""
    return messages.Assignment(
        [
            messages.TopicPartitions(topic, name, sorted(some))
            for topic, some in partitions.items()
            if (name := topics.name_of(topic)) is not None
        ]
    )


def told_assignment(
    messages: Any,
    topics: Catalog,
    rights: RequestRights,
    partitions: Mapping[bytes, Collection[int]] | None,
) -> Any:
    """Return the partitions of topics that the session may describe; None if none have changed.

    They are in the classes of ``messages``, the module of a heartbeat's key. The rights count here
    because a session may send the id of another client's member.
    """
    if partitions is None:
        return None
    names = {topic: topics.name_of(topic) for topic in in_turns(list(partitions))}
    seen = set(rights.visible("show", [name for name in names.values() if name is not None]))
    return messages.Assignment(
        [
            messages.TopicPartitions(topic, sorted(some))
            for topic, some in in_turns(list(partitions.items()))
            if names[topic] in seen
        ]
    )
