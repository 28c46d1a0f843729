"""ShareGroupHeartbeat and ShareGroupDescribe: the members of share groups."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.classic_groups import host_of
from aclbroker.broker.backends.memory.coordinators import (
    check_here,
    described_assignment,
    described_each,
    found_here,
    refusal_of_topics,
    told_assignment,
)
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.groups.share import ShareHeartbeatRequest
from aclbroker.broker.memory.groups.share_group import LEAVES, ShareGroup, ShareMember
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import share_group_describe as described
from aclbroker.protocol.messages import share_group_heartbeat as told
from aclbroker.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from aclbroker.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from aclbroker.turns import in_turns

_ASSIGNOR = "simple"
"""The only assignor of share groups."""


def share_group_heartbeat(
    backend: MemoryBackend, rights: RequestRights, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """Let a member join, stay in or leave a share group, and tell it what it is to read."""
    try:
        _check(request)
        return _answered(backend, rights, request)
    except GroupError as error:
        return ShareGroupHeartbeatResponse(0, error.code, error.message)


def _answered(
    backend: MemoryBackend, rights: RequestRights, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    check_here(backend, rights, request.group_id)
    names = request.subscribed_topic_names
    asked = ShareHeartbeatRequest(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        rights.context.client_id or "",
        host_of(rights),
        None if names is None else tuple(names),
    )
    answer = backend.cluster.groups.share_heartbeat(asked)
    return ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.interval_ms,
        assignment=told_assignment(told, backend.cluster.topics, rights, answer.assignment),
    )


def _check(request: ShareGroupHeartbeatRequest) -> None:
    """Raise GroupError if a request contradicts itself; the gate has looked at the member's id."""
    why = None
    if not request.group_id.strip():
        why = "GroupId can't be empty."
    elif not request.member_id.strip():
        why = "MemberId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        why = "RackId can't be empty."
    elif request.member_epoch == 0 and not request.subscribed_topic_names:
        why = "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < LEAVES:
        why = "MemberEpoch is invalid."
    if why is not None:
        raise GroupError(ErrorCode.INVALID_REQUEST, why)


def share_group_describe(
    backend: MemoryBackend, rights: RequestRights, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    """Describe share groups; any other is not found."""
    return ShareGroupDescribeResponse(
        groups=described_each(
            rights,
            request.group_ids,
            partial(_described, backend, rights),
            with_operations=request.include_authorized_operations,
        )
    )


def _described(
    backend: MemoryBackend, rights: RequestRights, group_id: str
) -> described.DescribedGroup:
    try:
        group = found_here(backend, rights, group_id, backend.cluster.groups.share_group)
        members = list(group.members.values())
        assigned = [each.assigned.keys() for each in in_turns(members)]
        if (why := refusal_of_topics(rights, group.topics, assigned)) is not None:
            raise why
    except GroupError as error:
        return described.DescribedGroup(error.code, error.message, group_id)
    names = {name for each in in_turns(members) for name in each.names}
    seen = set(rights.visible("show", names))
    return described.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=_ASSIGNOR,
        members=[_member(group, each, seen) for each in in_turns(members)],
    )


def _member(group: ShareGroup, member: ShareMember, seen: Collection[str]) -> described.Member:
    return described.Member(
        member.member_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        sorted(name for name in member.names if name in seen),
        described_assignment(described, group.topics, member.assigned),
    )
