"""The classic protocol of groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Who waits for a rebalance or an assignment waits with a `Reply`. If its client goes away meanwhile,
its place in the group is left to the time-outs, as in Kafka.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.coordinators import is_elsewhere
from aclbroker.broker.backends.memory.waiting import Reply
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.groups.classic import JoinRequest, SyncRequest
from aclbroker.broker.memory.groups.classic_group import JoinAnswer, SyncAnswer
from aclbroker.broker.turns import whole
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from aclbroker.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from aclbroker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from aclbroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from aclbroker.turns import in_turns

_MOST_PROTOCOLS: Final = 100
"""How many assignors a member may offer; each vote goes through them."""

_FIRST_WITH_REBALANCE_TIMEOUT: Final = 1
_FIRST_WITH_REQUIRED_ID: Final = 4
_FIRST_WITHOUT_NAME: Final = 7
_FIRST_THAT_SKIPS: Final = 9
_FIRST_OF_SEVERAL: Final = 3


def host_of(rights: RequestRights) -> str:
    """Return the host of a client as groups show it."""
    return f"/{rights.context.session.host}"


def join_group(
    backend: MemoryBackend, rights: RequestRights, request: JoinGroupRequest
) -> JoinGroupResponse:
    """Let a member join; the answer comes when all have joined."""
    if request.group_id and is_elsewhere(backend, rights, request.group_id):
        return _joined(rights, JoinAnswer(ErrorCode.NOT_COORDINATOR, request.member_id))
    if len(request.protocols) > _MOST_PROTOCOLS:
        return _joined(rights, JoinAnswer(ErrorCode.INVALID_REQUEST, request.member_id))
    version = rights.context.api_version
    reply = Reply[JoinAnswer](backend.cluster)
    asked = JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        rights.context.client_id or "",
        host_of(rights),
        request.protocol_type,
        [(each.name, bytes(each.metadata)) for each in request.protocols],
        request.session_timeout_ms,
        request.rebalance_timeout_ms
        if version >= _FIRST_WITH_REBALANCE_TIMEOUT
        else request.session_timeout_ms,
        needs_id=version >= _FIRST_WITH_REQUIRED_ID,
        skips_assignment=version >= _FIRST_THAT_SKIPS,
    )
    with whole():
        backend.cluster.groups.join(asked, reply.say)
    answer = reply.wait()
    if answer is None:
        answer = JoinAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE, request.member_id)
    return _joined(rights, answer)


def sync_group(
    backend: MemoryBackend, rights: RequestRights, request: SyncGroupRequest
) -> SyncGroupResponse:
    """Tell a member its assignment; the answer comes when the leader has assigned."""
    if request.group_id and is_elsewhere(backend, rights, request.group_id):
        return SyncGroupResponse(0, ErrorCode.NOT_COORDINATOR)
    assignments = {each.member_id: bytes(each.assignment) for each in in_turns(request.assignments)}
    asked = SyncRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        assignments,
        request.protocol_type,
        request.protocol_name,
    )
    reply = Reply[SyncAnswer](backend.cluster)
    with whole():
        backend.cluster.groups.sync(asked, reply.say, partial(rights.visible, "show"))
    answer = reply.wait() or SyncAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return SyncGroupResponse(0, *answer)


def heartbeat(
    backend: MemoryBackend, rights: RequestRights, request: HeartbeatRequest
) -> HeartbeatResponse:
    """Keep a member's session alive, and tell it of a rebalance."""
    if request.group_id and is_elsewhere(backend, rights, request.group_id):
        return HeartbeatResponse(0, ErrorCode.NOT_COORDINATOR)
    code = backend.cluster.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(0, code)


def leave_group(
    backend: MemoryBackend, rights: RequestRights, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    """Remove members from a group; before version 3 it is one, whose code is the answer's."""
    if request.group_id and is_elsewhere(backend, rights, request.group_id):
        return LeaveGroupResponse(0, ErrorCode.NOT_COORDINATOR)
    is_one = rights.context.api_version < _FIRST_OF_SEVERAL
    members = [MemberIdentity(request.member_id)] if is_one else request.members
    try:
        codes = backend.cluster.groups.leave(
            request.group_id,
            [(each.member_id, each.group_instance_id) for each in in_turns(members)],
        )
    except GroupError as error:
        return LeaveGroupResponse(0, error.code)
    if is_one:
        return LeaveGroupResponse(0, codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(each.member_id, each.group_instance_id, code)
            for each, code in in_turns(list(zip(members, codes, strict=True)))
        ]
    )


def _joined(rights: RequestRights, answer: JoinAnswer) -> JoinGroupResponse:
    has_name = rights.context.api_version >= _FIRST_WITHOUT_NAME
    return JoinGroupResponse(
        0,
        answer.code,
        answer.generation,
        answer.protocol_type,
        answer.protocol_name if has_name else answer.protocol_name or "",
        answer.leader,
        answer.skip_assignment,
        answer.member_id,
        [JoinGroupResponseMember(*member) for member in in_turns(answer.members)],
    )
