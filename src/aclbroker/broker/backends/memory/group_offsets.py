"""The offsets of groups: OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.coordinators import is_elsewhere
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.groups.offsets import CommittedOffset, NewOffset
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from aclbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns

_FIRST_COMMIT_BY_ID: Final = 10
_FIRST_FETCH_BY_ID: Final = 10
_FIRST_FETCH_OF_GROUPS: Final = 8
_FIRST_FETCH_WITH_CODE: Final = 2


def offset_commit(
    backend: MemoryBackend, rights: RequestRights, request: OffsetCommitRequest
) -> OffsetCommitResponse:
    """Keep offsets of topics and partitions that exist, if who commits may."""
    by_id = rights.context.api_version >= _FIRST_COMMIT_BY_ID
    topics = [_Committing(backend, topic, by_id=by_id) for topic in in_turns(request.topics)]
    new = [offset for topic in in_turns(topics) for offset in topic.offsets()]
    codes = iter(_committed(backend, rights, request, new) if new else ())
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.asked.name,
                topic.asked.topic_id,
                [
                    OffsetCommitResponsePartition(each.partition_index, code or next(codes))
                    for each, code in in_turns(topic.partitions)
                ],
            )
            for topic in in_turns(topics)
        ]
    )


class _Committing:
    """A topic of an OffsetCommit; ``name`` is None if there is no such topic.

    ``partitions`` has those asked for, each with why it cannot have offsets, NONE if it can: what
    is so when it is made, whatever becomes of the topic while others have their turn.
    """

    def __init__(
        self, backend: MemoryBackend, asked: OffsetCommitRequestTopic, *, by_id: bool
    ) -> None:
        self.asked = asked
        self._topics = backend.cluster.topics
        self._unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.name: str | None = asked.name if self._topics.exists(asked.name) else None
        if by_id:
            self.name = self._topics.name_of(asked.topic_id)
            self._unknown = ErrorCode.UNKNOWN_TOPIC_ID
        self._topic_id = ZERO_UUID if self.name is None else self._topics.id_of(self.name)
        self.partitions = [
            (each, self._code(each.partition_index)) for each in in_turns(asked.partitions)
        ]

    def _code(self, partition: int) -> ErrorCode:
        if self.name is None:
            return self._unknown
        if not self._topics.has_partition(self.name, partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def offsets(self) -> list[NewOffset]:
        """Return the offsets of partitions that can have some."""
        if self.name is None:
            return []
        return [
            NewOffset(
                self.name,
                each.partition_index,
                each.committed_offset,
                each.committed_leader_epoch,
                each.committed_metadata or "",
                self._topic_id,
            )
            for each, code in in_turns(self.partitions)
            if not code
        ]


def _committed(
    backend: MemoryBackend,
    rights: RequestRights,
    request: OffsetCommitRequest,
    new: Sequence[NewOffset],
) -> list[ErrorCode]:
    if is_elsewhere(backend, rights, request.group_id):
        return [ErrorCode.NOT_COORDINATOR] * len(new)
    try:
        return backend.cluster.groups.offsets.commit(
            request.group_id,
            new,
            member_id=request.member_id,
            epoch=request.generation_id_or_member_epoch,
            instance_id=request.group_instance_id,
            version=rights.context.api_version,
            retention_ms=request.retention_time_ms,
        )
    except GroupError as error:
        return [error.code] * len(new)


def offset_fetch(
    backend: MemoryBackend, rights: RequestRights, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Tell committed offsets, -1 where there is none; of all partitions if none is named."""
    if rights.context.api_version >= _FIRST_FETCH_OF_GROUPS:
        return OffsetFetchResponse(
            groups=[
                _fetched(backend, rights, group, stable=request.require_stable)
                for group in in_turns(request.groups)
            ]
        )
    asked = OffsetFetchRequestGroup(
        request.group_id,
        topics=None
        if request.topics is None
        else [
            OffsetFetchRequestTopics(topic.name, ZERO_UUID, topic.partition_indexes)
            for topic in in_turns(request.topics)
        ],
    )
    group = _fetched(backend, rights, asked, stable=request.require_stable)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.metadata,
                        each.error_code,
                    )
                    for each in in_turns(topic.partitions)
                ],
            )
            for topic in in_turns(group.topics)
        ],
        error_code=group.error_code,
    )


def _fetched(
    backend: MemoryBackend, rights: RequestRights, asked: OffsetFetchRequestGroup, *, stable: bool
) -> OffsetFetchResponseGroup:
    group_id, groups = asked.group_id, backend.cluster.groups
    code = ErrorCode.NONE
    if is_elsewhere(backend, rights, group_id):
        code = ErrorCode.NOT_COORDINATOR
    elif (group := groups.table.groups.get(group_id)) is not None:
        try:
            group.check_fetch(asked.member_id, asked.member_epoch)
        except GroupError as error:
            code = error.code
    if code:
        return _fetch_refused(rights, asked, code)
    of_group = groups.offsets.of_group(group_id)
    if asked.topics is None:
        seen = rights.visible("show", of_group)
        everything = {topic: list(of_group.get(topic, ())) for topic in in_turns(seen)}
        return OffsetFetchResponseGroup(
            group_id, _all_fetched(backend, rights, group_id, everything, stable=stable)
        )
    known = backend.cluster.topics
    by_id = rights.context.api_version >= _FIRST_FETCH_BY_ID
    topics = []
    for topic in in_turns(asked.topics):
        name = known.name_of(topic.topic_id) if by_id else topic.name
        partitions = [
            OffsetFetchResponsePartitions(index, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
            if name is None
            else _partition(backend, group_id, name, index, stable=stable)
            for index in in_turns(topic.partition_indexes)
        ]
        topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
    return OffsetFetchResponseGroup(group_id, topics)


def _fetch_refused(
    rights: RequestRights, asked: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """Answer with a code: before version 2 it is each partition's."""
    if rights.context.api_version >= _FIRST_FETCH_WITH_CODE:
        return OffsetFetchResponseGroup(asked.group_id, error_code=code)
    return OffsetFetchResponseGroup(
        asked.group_id,
        [
            OffsetFetchResponseTopics(
                topic.name,
                topic.topic_id,
                [
                    OffsetFetchResponsePartitions(index, -1, -1, "", code)
                    for index in in_turns(topic.partition_indexes)
                ],
            )
            for topic in in_turns(asked.topics or ())
        ],
    )


def _all_fetched(
    backend: MemoryBackend,
    rights: RequestRights,
    group_id: str,
    everything: dict[str, list[int]],
    *,
    stable: bool,
) -> list[OffsetFetchResponseTopics]:
    known = backend.cluster.topics
    by_id = rights.context.api_version >= _FIRST_FETCH_BY_ID
    return [
        OffsetFetchResponseTopics(
            name,
            known.id_of(name) if by_id else ZERO_UUID,
            [
                _partition(backend, group_id, name, index, stable=stable)
                for index in in_turns(partitions)
            ],
        )
        for name, partitions in in_turns(list(everything.items()))
        if not by_id or known.exists(name)
    ]


def _partition(
    backend: MemoryBackend, group_id: str, topic: str, index: int, *, stable: bool
) -> OffsetFetchResponsePartitions:
    offsets = backend.cluster.groups.offsets
    if stable and offsets.is_unstable(group_id, topic, index):
        code = ErrorCode.UNSTABLE_OFFSET_COMMIT
        return OffsetFetchResponsePartitions(index, -1, -1, "", code)
    kept: CommittedOffset | None = offsets.get(group_id, topic, index)
    if kept is None:
        return OffsetFetchResponsePartitions(index, -1, -1, "")
    return OffsetFetchResponsePartitions(index, kept.offset, kept.leader_epoch, kept.metadata)


def offset_delete(
    backend: MemoryBackend, rights: RequestRights, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Forget offsets of partitions that exist and that no member of the group reads."""
    group_id, groups = request.group_id, backend.cluster.groups
    if not group_id:
        return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)
    if is_elsewhere(backend, rights, group_id):
        return OffsetDeleteResponse(ErrorCode.NOT_COORDINATOR)
    try:
        group = groups.table.find(group_id)
        group.check_offset_delete()
    except GroupError as error:
        return OffsetDeleteResponse(error.code)
    topics = []
    for topic in in_turns(request.topics):
        indexes = [each.partition_index for each in in_turns(topic.partitions)]
        codes = _deleted(backend, group_id, topic.name, indexes, group.is_subscribed(topic.name))
        topics.append(
            OffsetDeleteResponseTopic(
                topic.name, [OffsetDeleteResponsePartition(*each) for each in codes]
            )
        )
    return OffsetDeleteResponse(topics=topics)


def _deleted(
    backend: MemoryBackend, group_id: str, topic: str, indexes: Sequence[int], is_read: bool
) -> Iterable[tuple[int, ErrorCode]]:
    for index in in_turns(indexes):
        if not backend.cluster.topics.has_partition(topic, index):
            yield index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_read:
            yield index, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            backend.cluster.groups.offsets.delete(group_id, topic, index)
            yield index, ErrorCode.NONE
