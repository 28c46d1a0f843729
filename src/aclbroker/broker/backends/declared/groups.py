"""The keys about groups; a declared group exists and has no members and no offsets."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.acl.bindings import ResourceType
from aclbroker.broker.backends.declared.answers import by_topic, with_code, with_codes
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from aclbroker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from aclbroker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from aclbroker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from aclbroker.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from aclbroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from aclbroker.protocol.messages.share_fetch import ShareFetchRequest
from aclbroker.turns import in_turns

_FIRST_VERSION_WITH_GROUPS: Final = 8
_PROTOCOL: Final = "consumer"
_STATE: Final = "Empty"
_TYPE: Final = "classic"
_FIRST_VERSION_THAT_TELLS_OF_NO_GROUP: Final = 6


def list_groups(
    backend: DeclaredBackend, rights: RequestRights, request: ListGroupsRequest
) -> ListGroupsResponse:
    """List the declared groups, unless the filters exclude their state (empty) or their type."""
    group_ids = rights.visible("show", backend.catalog.groups)
    states = {state.lower() for state in in_turns(request.states_filter)} or {_STATE.lower()}
    types = {group_type.lower() for group_type in in_turns(request.types_filter)} or {_TYPE}
    if _STATE.lower() not in states or _TYPE not in types:
        return ListGroupsResponse()
    return ListGroupsResponse(
        groups=[ListedGroup(group_id, _PROTOCOL, _STATE, _TYPE) for group_id in in_turns(group_ids)]
    )


def offset_fetch(
    backend: DeclaredBackend, rights: RequestRights, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Answer offset -1 (nothing is committed) for each partition asked for.

    A request for all partitions of a group gets an empty list.
    """
    if rights.context.api_version >= _FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(
                    group.group_id,
                    [
                        OffsetFetchResponseTopics(
                            topic.name,
                            topic.topic_id,
                            [
                                OffsetFetchResponsePartitions(index, committed_offset=-1)
                                for index in in_turns(topic.partition_indexes)
                            ],
                        )
                        for topic in in_turns(group.topics or ())
                    ],
                )
                for group in in_turns(request.groups)
            ]
        )
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                topic.name,
                [
                    OffsetFetchResponsePartition(index, committed_offset=-1)
                    for index in in_turns(topic.partition_indexes)
                ],
            )
            for topic in in_turns(request.topics or ())
        ]
    )


def share_group_offsets(
    backend: DeclaredBackend, _rights: RequestRights, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Answer start offset -1 for each partition: no share group has begun to read it."""
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(
                group.group_id,
                [
                    DescribeShareGroupOffsetsResponseTopic(
                        topic.topic_name,
                        partitions=[
                            DescribeShareGroupOffsetsResponsePartition(index, start_offset=-1)
                            for index in in_turns(topic.partitions)
                        ],
                    )
                    for topic in in_turns(group.topics or ())
                ],
                ErrorCode.NONE if group.group_id else ErrorCode.INVALID_GROUP_ID,
            )
            for group in in_turns(request.groups)
        ]
    )


def alter_share_group_offsets(
    backend: DeclaredBackend, rights: RequestRights, request: AlterShareGroupOffsetsRequest
) -> Any:
    """Refuse to set offsets, topic by topic; an empty group id gets INVALID_GROUP_ID at the top."""
    if not request.group_id:
        return with_code(ErrorCode.INVALID_GROUP_ID)(backend, rights, request)
    response: Any = by_topic(ErrorCode.POLICY_VIOLATION, "topic_name")(backend, rights, request)
    for topic in in_turns(response.responses):
        if backend.catalog.exists(topic.topic_name):
            topic.topic_id = backend.catalog.id_of(topic.topic_name)
    return response


def delete_share_group_offsets(
    backend: DeclaredBackend, rights: RequestRights, request: DeleteShareGroupOffsetsRequest
) -> Any:
    """Answer that no such share group exists, because declared groups are consumer groups.

    As in Kafka, the error is at the top level, whatever topics the request names.
    """
    code = ErrorCode.GROUP_ID_NOT_FOUND if request.group_id else ErrorCode.INVALID_GROUP_ID
    return with_code(code)(backend, rights, request)


def share_fetch(backend: DeclaredBackend, rights: RequestRights, request: ShareFetchRequest) -> Any:
    """Answer COORDINATOR_NOT_AVAILABLE.

    The code is in the entry of each topic for a new share session (epoch 0), else at the top.
    """
    no_coordinator = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.share_session_epoch:
        return with_code(no_coordinator)(backend, rights, request)
    return with_codes(lambda *_: no_coordinator)(backend, rights, request)


def offset_delete(
    backend: DeclaredBackend, _rights: RequestRights, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Confirm the deletion for each partition that exists; a declared group has no offsets."""
    if not request.group_id:
        return OffsetDeleteResponse(ErrorCode.INVALID_GROUP_ID)
    if request.group_id not in backend.catalog.groups:
        return OffsetDeleteResponse(ErrorCode.GROUP_ID_NOT_FOUND)

    def partition(name: str, index: int) -> OffsetDeleteResponsePartition:
        exists = backend.catalog.has_partition(name, index)
        code = ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return OffsetDeleteResponsePartition(index, code)

    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                topic.name,
                [
                    partition(topic.name, entry.partition_index)
                    for entry in in_turns(topic.partitions)
                ],
            )
            for topic in in_turns(request.topics)
        ]
    )


def describe_groups(
    backend: DeclaredBackend, rights: RequestRights, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe each declared group as empty and any other as dead.

    From version 6 on, a group that is not declared also gets GROUP_ID_NOT_FOUND.
    """
    tells = rights.context.api_version >= _FIRST_VERSION_THAT_TELLS_OF_NO_GROUP
    groups = []
    for group_id in in_turns(request.groups):
        if group_id in backend.catalog.groups:
            group = DescribedGroup(group_id=group_id, group_state=_STATE, protocol_type=_PROTOCOL)
        else:
            code = ErrorCode.GROUP_ID_NOT_FOUND if tells else ErrorCode.NONE
            why = f"Group {shown_name(group_id)} not found." if tells else None
            group = DescribedGroup(code, why, group_id, "Dead")
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = rights.operations(ResourceType.GROUP, group_id)
        groups.append(group)
    return DescribeGroupsResponse(groups=groups)
