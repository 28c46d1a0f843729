"""Requests of members of groups, of both protocols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct, unpack_from
from typing import Any, Final

from aclbroker.conformance.behaviour.story import StoryEnded, Teller
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from aclbroker.protocol.messages.heartbeat import HeartbeatRequest
from aclbroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aclbroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aclbroker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_MOST_BEATS: Final = 1_000


def _text(value: str) -> bytes:
    return _SHORT.pack(len(value)) + value.encode()


def subscription(topic: str) -> bytes:
    """Return what a consumer says that it reads, as bytes of version 1 without what it owns."""
    return _SHORT.pack(1) + _INT.pack(1) + _text(topic) + _INT.pack(-1)


def reads_orders(teller: Teller) -> bytes:
    """Return what a consumer of orders says that it reads; it owns nothing."""
    return subscription(teller.name("orders")) + _INT.pack(0)


def owned_orders(teller: Teller, partitions: Iterable[int]) -> bytes:
    """Return partitions of orders as subscriptions and assignments have them."""
    numbers = list(partitions)
    packed = b"".join(map(_INT.pack, numbers))
    return _INT.pack(1) + _text(teller.name("orders")) + _INT.pack(len(numbers)) + packed


def partitions_in(assignment: bytes) -> Sequence[int]:
    """Return the partitions in an assignment of one topic; none in one that is empty."""
    if len(assignment) <= 2 * _INT.size:
        return ()
    (length,) = _SHORT.unpack_from(assignment, _SHORT.size + _INT.size)
    at = 2 * _SHORT.size + _INT.size + length
    (count,) = _INT.unpack_from(assignment, at)
    return unpack_from(f">{count}i", assignment, at + _INT.size)


def join(teller: Teller, **changes: Any) -> Any:
    """Return a JoinGroup of a consumer of orders, with these changes."""
    request = JoinGroupRequest(
        teller.group_id,
        10_000,
        60_000,
        "",
        None,
        "consumer",
        [JoinGroupRequestProtocol("range", reads_orders(teller))],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def joined(teller: Teller, name: str, **changes: Any) -> tuple[str, int]:
    """Let a dynamic member join alone; returns its id and generation."""
    answer = teller.quietly(ApiKey.JOIN_GROUP, join(teller, **changes), 9)
    member_id = teller.call(answer.member_id, name)
    answer = teller.ask(ApiKey.JOIN_GROUP, join(teller, member_id=member_id, **changes), version=9)
    return member_id, answer.generation_id


def sync(teller: Teller, member_id: str, generation: int, **changes: Any) -> Any:
    """Return a SyncGroup of the leader of a group."""
    request = SyncGroupRequest(teller.group_id, generation, member_id)
    request.protocol_type, request.protocol_name = "consumer", "range"
    request.assignments = [SyncGroupRequestAssignment(member_id, b"mine")]
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def stable(teller: Teller, name: str = "member") -> tuple[str, int]:
    """Make a group of one member that is stable."""
    member_id, generation = joined(teller, name)
    teller.ask(ApiKey.SYNC_GROUP, sync(teller, member_id, generation), version=5)
    return member_id, generation


def commit(teller: Teller, member_id: str = "", epoch: int = -1, **changes: Any) -> Any:
    """Return an OffsetCommit of one partition of orders."""
    partitions = [OffsetCommitRequestPartition(0, 5, committed_metadata="note")]
    request = OffsetCommitRequest(
        teller.group_id,
        epoch,
        member_id,
        topics=[OffsetCommitRequestTopic(teller.name("orders"), partitions=partitions)],
    )
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def heartbeat(teller: Teller, member_id: str, epoch: int, **changes: Any) -> Any:
    """Return a ConsumerGroupHeartbeat; with the epoch 0 that of a new member."""
    request = ConsumerGroupHeartbeatRequest(teller.group_id, member_id, epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 5_000
        request.subscribed_topic_names = [teller.name("orders")]
        request.topic_partitions = []
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def beat_until_rebalance(teller: Teller, member_id: str, generation: int) -> None:
    """Send heartbeats until the broker has taken notice of what another connection sent."""
    alive = HeartbeatRequest(teller.group_id, generation, member_id)
    for _ in range(_MOST_BEATS):
        answer = teller.quietly(ApiKey.HEARTBEAT, alive, 4)
        if answer.error_code:
            teller.keep(ApiKey.HEARTBEAT, answer, version=4)
            return
    raise StoryEnded
