"""ShareAcknowledge: what becomes of records that a member of a share group has."""

from __future__ import annotations

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.share.leaders import Leaders
from aclbroker.broker.backends.memory.share.said import (
    Outcome,
    carry_out,
    partition_at,
    said_of,
    session_key,
)
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.share import ShareError
from aclbroker.broker.memory.share.partitions import Place
from aclbroker.broker.memory.share.sessions import FINAL
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from aclbroker.turns import in_turns


def share_acknowledge(
    backend: MemoryBackend, rights: RequestRights, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    """Let what a member says of its records count, and end its session if that is its last word."""
    memory = backend.cluster
    key = session_key(backend, rights, request)
    try:
        if request.share_session_epoch == 0:
            raise ShareError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = memory.share_sessions.expected(key, request.share_session_epoch)
    except ShareError as why:
        return ShareAcknowledgeResponse(0, why.code, why.message)
    session.connection = rights.context.session.connection
    outcomes = carry_out(backend, rights, request, said_of(request.topics))
    if request.share_session_epoch == FINAL:
        memory.end_share_session(session)
    leaders = Leaders(backend, rights)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    for place, outcome in in_turns(list(outcomes.items())):
        entry = topics.setdefault(place[0], ShareAcknowledgeTopicResponse(place[0], []))
        entry.partitions.append(  # type: ignore[attr-defined] # made as a list above
            _told(backend, leaders, place, outcome)
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=memory.share_partitions.settings(key.group_id).lock_ms,
        responses=list(topics.values()),
        node_endpoints=[NodeEndpoint(*node) for node in leaders.nodes()],
    )


def _told(
    backend: MemoryBackend, leaders: Leaders, place: Place, outcome: Outcome
) -> PartitionData:
    data = PartitionData(place[1], outcome.code, outcome.message)
    partition = partition_at(backend, place)
    if outcome.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and partition is not None:
        data.current_leader = LeaderIdAndEpoch(*leaders.of(partition))
    return data
