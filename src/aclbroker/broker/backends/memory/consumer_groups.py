"""ConsumerGroupHeartbeat: the protocol in which the broker assigns (KIP-848)."""

from __future__ import annotations

from functools import partial
from typing import Final
from uuid import uuid4

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.classic_groups import host_of
from aclbroker.broker.backends.memory.coordinators import check_here, told_assignment
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.groups.consumer import HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_group import LEAVES, LEAVES_FOR_A_WHILE
from aclbroker.broker.memory.groups.patterns import Viewer
from aclbroker.broker.turns import whole
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages import consumer_group_heartbeat as told
from aclbroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from aclbroker.turns import in_turns

_FIRST_WITH_IDS_OF_CLIENTS: Final = 1


def consumer_group_heartbeat(
    backend: MemoryBackend, rights: RequestRights, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Let a member join, stay in or leave a group, and tell it what it is to have."""
    try:
        _check(backend, rights, request)
        return _answered(backend, rights, request)
    except GroupError as error:
        return ConsumerGroupHeartbeatResponse(0, error.code, error.message)


def _answered(
    backend: MemoryBackend, rights: RequestRights, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    check_here(backend, rights, request.group_id)
    names = request.subscribed_topic_names
    owned = request.topic_partitions
    session = rights.context.session
    asked = HeartbeatRequest(
        request.group_id,
        request.member_id or str(uuid4()),
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        rights.context.client_id or "",
        host_of(rights),
        request.rebalance_timeout_ms,
        None if names is None else tuple(names),
        request.subscribed_topic_regex,
        request.server_assignor,
        None
        if owned is None
        else {each.topic_id: frozenset(each.partitions) for each in in_turns(owned)},
        Viewer(session.principals, session.host, session.listener),
    )
    visible = partial(rights.visible, "show")
    answer = backend.cluster.groups.consumer_heartbeat(asked, visible, whole)
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.interval_ms,
        assignment=told_assignment(told, backend.cluster.topics, rights, answer.assignment),
    )


def _check(
    backend: MemoryBackend, rights: RequestRights, request: ConsumerGroupHeartbeatRequest
) -> None:
    """Raise GroupError if a request contradicts itself."""
    needs_id = rights.context.api_version >= _FIRST_WITH_IDS_OF_CLIENTS
    if (needs_id or request.member_epoch > 0 or request.member_epoch == LEAVES) and (
        not request.member_id.strip()
    ):
        raise GroupError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    for what, text in (
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            raise GroupError(ErrorCode.INVALID_REQUEST, f"{what} can't be empty.")
    if request.member_epoch == 0:
        _check_first(request)
    elif request.member_epoch == LEAVES_FOR_A_WHILE:
        if request.instance_id is None:
            raise GroupError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif request.member_epoch < LEAVES_FOR_A_WHILE:
        raise GroupError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    allowed = backend.cluster.groups.settings.consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in allowed:
        raise GroupError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {shown_name(request.server_assignor)} is not supported. "
            f"Supported assignors: {', '.join(allowed)}.",
        )


def _check_first(request: ConsumerGroupHeartbeatRequest) -> None:
    why = None
    if request.rebalance_timeout_ms == -1:
        why = "RebalanceTimeoutMs must be provided in first request."
    elif request.topic_partitions is None or request.topic_partitions:
        why = "TopicPartitions must be empty when (re-)joining."
    elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        why = (
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )
    if why is not None:
        raise GroupError(ErrorCode.INVALID_REQUEST, why)
