"""StreamsGroupHeartbeat (KIP-1071): internal topics are created only for members that may."""

from __future__ import annotations

from typing import Any

from aclbroker.broker.backends.backend import Later
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.forwarding import forward
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.turns import wait
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from aclbroker.turns import in_turns


def forward_streams_group_heartbeat(
    backend: UpstreamBackend, rights: RequestRights, request: StreamsGroupHeartbeatRequest
) -> Later | StreamsGroupHeartbeatResponse:
    """Forward a heartbeat if its member may create the missing internal topics of its topology.

    The coordinator would create them with the rights of the gateway. A Kafka answers such a
    heartbeat with a status that names the missing topics. The gateway refuses it as a whole.
    """
    subtopologies = request.topology.subtopologies if request.topology else ()
    if any(part.source_topic_regex for part in in_turns(subtopologies)):
        return StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY,
            error_message="Regular expressions for source topics are not supported.",
        )
    internal = _internal_topics(subtopologies)
    missing = internal - wait(backend.directory.existing(internal)).keys() if internal else set()
    refused = missing - rights.allowed("create internal topics", missing) if missing else set()
    if refused:
        names = ", ".join(shown_name(name) for name in sorted(refused))
        return StreamsGroupHeartbeatResponse(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message=f"Unauthorized to CREATE on topics {names}.",
        )
    return forward(backend, rights, request)


def _internal_topics(subtopologies: Any) -> set[str]:
    """Return the names of the topics that the coordinator creates."""
    return {
        topic.name
        for part in in_turns(subtopologies)
        for topics in (part.repartition_source_topics, part.state_changelog_topics)
        for topic in in_turns(topics)
    }
