"""How far share groups are: Describe-, Alter- and DeleteShareGroupOffsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.coordinators import is_elsewhere
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.groups.share_group import ShareGroup
from aclbroker.broker.memory.share.partitions import UNKNOWN, Place
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from aclbroker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from aclbroker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns

_NO_PARTITION: Final = "This server does not host this topic-partition."


def describe_share_group_offsets(
    backend: MemoryBackend, rights: RequestRights, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Tell how far groups are; of all partitions that they share if none is named."""
    return DescribeShareGroupOffsetsResponse(
        groups=[_described(backend, rights, each) for each in in_turns(request.groups)]
    )


def _described(
    backend: MemoryBackend, rights: RequestRights, asked: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = asked.group_id
    if is_elsewhere(backend, rights, group_id):
        code = ErrorCode.NOT_COORDINATOR
        return DescribeShareGroupOffsetsResponseGroup(group_id, error_code=code)
    if asked.topics is None:
        wanted = _shared(backend, rights, group_id)
    else:
        wanted = {each.topic_name: each.partitions for each in in_turns(asked.topics)}
    return DescribeShareGroupOffsetsResponseGroup(
        group_id,
        [
            _topic(backend, group_id, name, indexes)
            for name, indexes in in_turns(list(wanted.items()))
        ],
    )


def _shared(
    backend: MemoryBackend, rights: RequestRights, group_id: str
) -> Mapping[str, Iterable[int]]:
    """Return the partitions that a group shares of topics that the session may describe."""
    group = backend.cluster.groups.table.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return {}
    shared = {
        name: some
        for topic_id, some in in_turns(list(group.initialized.items()))
        if (name := backend.cluster.topics.name_of(topic_id)) is not None
    }
    return {name: sorted(shared[name]) for name in in_turns(rights.visible("show", shared))}


def _topic(
    backend: MemoryBackend, group_id: str, name: str, indexes: Iterable[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    topics = backend.cluster.topics
    topic_id = topics.id_of(name) if topics.exists(name) else ZERO_UUID
    return DescribeShareGroupOffsetsResponseTopic(
        name,
        topic_id,
        [_partition(backend, group_id, (topic_id, each), name) for each in in_turns(list(indexes))],
    )


def _partition(
    backend: MemoryBackend, group_id: str, place: Place, name: str
) -> DescribeShareGroupOffsetsResponsePartition:
    memory = backend.cluster
    partition = memory.topics.partition(name, place[1])
    if partition is None:
        return DescribeShareGroupOffsetsResponsePartition(place[1], UNKNOWN)
    start, lag = memory.share_partitions.progress(group_id, place, partition.log)
    return DescribeShareGroupOffsetsResponsePartition(place[1], start, lag=lag)


def alter_share_group_offsets(
    backend: MemoryBackend, rights: RequestRights, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    """Let a group without members begin partitions at offsets; it is made if there is none."""
    try:
        group = _empty_group(backend, rights, request.group_id, makes=True)
    except GroupError as why:
        return AlterShareGroupOffsetsResponse(0, why.code, why.message)
    return AlterShareGroupOffsetsResponse(
        responses=[_altered(backend, group, topic) for topic in in_turns(request.topics)]
    )


def _altered(
    backend: MemoryBackend, group: ShareGroup, asked: AlterShareGroupOffsetsRequestTopic
) -> AlterShareGroupOffsetsResponseTopic:
    memory, name = backend.cluster, asked.topic_name
    topic_id = memory.topics.id_of(name) if memory.topics.exists(name) else ZERO_UUID
    partitions = []
    for each in in_turns(asked.partitions):
        index = each.partition_index
        code, message = ErrorCode.NONE, None
        # The topic may be another one by now, or none.
        is_there = memory.topics.name_of(topic_id) == name
        if not is_there or memory.topics.partition(name, index) is None:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_PARTITION
        else:
            try:
                if memory.groups.table.find(group.group_id) is not group:
                    raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND)
                group.share(topic_id, [index])
                memory.share_partitions.begin_at(
                    group.group_id, (topic_id, index), each.start_offset
                )
            except GroupError as why:
                code, message = why.code, why.message
        partitions.append(AlterShareGroupOffsetsResponsePartition(index, code, message))
    return AlterShareGroupOffsetsResponseTopic(name, topic_id, partitions)


def delete_share_group_offsets(
    backend: MemoryBackend, rights: RequestRights, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    """Let a group without members forget how far it is in topics."""
    try:
        group = _empty_group(backend, rights, request.group_id, makes=False)
    except GroupError as why:
        return DeleteShareGroupOffsetsResponse(0, why.code, why.message)
    return DeleteShareGroupOffsetsResponse(
        responses=[_deleted(backend, group, each.topic_name) for each in in_turns(request.topics)]
    )


def _deleted(
    backend: MemoryBackend, group: ShareGroup, name: str
) -> DeleteShareGroupOffsetsResponseTopic:
    memory = backend.cluster
    if not memory.topics.exists(name):
        return DeleteShareGroupOffsetsResponseTopic(
            name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _NO_PARTITION
        )
    topic_id = memory.topics.id_of(name)
    group.unshare(topic_id)
    memory.share_partitions.forget_topic(group.group_id, topic_id)
    return DeleteShareGroupOffsetsResponseTopic(name, topic_id)


def _empty_group(
    backend: MemoryBackend, rights: RequestRights, group_id: str, *, makes: bool
) -> ShareGroup:
    """Return a share group without members; raises GroupError."""
    groups = backend.cluster.groups
    if not group_id:
        raise GroupError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    if is_elsewhere(backend, rights, group_id):
        raise GroupError(ErrorCode.NOT_COORDINATOR)
    if makes and group_id not in groups.table.groups:
        return groups.new_share_group(group_id)
    group = groups.share_group(group_id)
    group.check_delete()
    return group
