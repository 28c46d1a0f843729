"""The handlers of a cluster upstream: each forwards the allowed part of a request."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from aclbroker.broker.backends.backend import BackendHandler, Later
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.fetch import forward_fetch
from aclbroker.broker.backends.upstream.forwarding import (
    forward,
    forward_at,
    later,
    read_answer,
    request_frame,
)
from aclbroker.broker.backends.upstream.keys import FORWARDED
from aclbroker.broker.backends.upstream.share import (
    forward_share_acknowledge,
    forward_share_fetch,
)
from aclbroker.broker.backends.upstream.streams import forward_streams_group_heartbeat
from aclbroker.broker.backends.upstream.topic_partitions import forward_describe_topic_partitions
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups.group import GroupError
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.produce import ProduceRequest, ProduceResponse
from aclbroker.protocol.primitives import Frame

_FIRST_METADATA_WITHOUT_CREATION: Final = 4
"""The first version of Metadata that can ask for topics without creating them."""


def forward_metadata(
    backend: UpstreamBackend, rights: RequestRights, request: MetadataRequest
) -> Later:
    """Forward a Metadata at a version with the field that forbids to create topics.

    Missing topics are created by a request of their own if the rest must not be.
    """
    version = max(rights.context.api_version, _FIRST_METADATA_WITHOUT_CREATION)
    if not backend.topics.auto_creates:
        # The gate has not asked for CREATE, because the configuration says that nothing is created.
        request = dataclasses.replace(request, allow_auto_topic_creation=False)
    forwarded = partial(forward_at, backend, rights, request, version)
    if not rights.creatable or request.allow_auto_topic_creation:
        return forwarded()

    async def created_before() -> Frame:
        topics = [MetadataRequestTopic(name=name) for name in rights.creatable]
        await backend.cluster.ask(ApiKey.METADATA, MetadataRequest(topics))
        frame: Frame = await forwarded().response
        return frame

    read = partial(read_answer, backend, rights, request, version)
    return later(backend, rights, created_before(), read)


def forward_consumer_group_heartbeat(
    backend: UpstreamBackend, rights: RequestRights, request: ConsumerGroupHeartbeatRequest
) -> Later | ConsumerGroupHeartbeatResponse:
    """Forward a heartbeat with the names of the topics that match its regular expression."""
    try:
        resolved = backend.subscriptions.resolved(rights, request)
    except GroupError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    forwarded = forward_at(backend, rights, resolved, rights.context.api_version)

    def noted(frame: Frame) -> Any:
        response = forwarded.read(frame)
        if response.error_code:
            backend.subscriptions.refused(request)
        return response

    return forwarded._replace(read=noted)


def forward_produce(
    backend: UpstreamBackend, rights: RequestRights, request: ProduceRequest
) -> Later | ProduceResponse:
    """Forward a Produce; with acks=0 the broker sends no answer."""
    if request.acks:
        return forward(backend, rights, request)
    frame = request_frame(backend, rights, request, rights.context.api_version)
    backend.cluster.decoded += 1
    sent = backend.pipelines[rights.context.session.connection].send(frame, None)
    return Later(sent, lambda _frame: ProduceResponse())


UPSTREAM_HANDLERS: Final[Mapping[int, BackendHandler]] = {
    **dict.fromkeys(FORWARDED, forward),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: forward_consumer_group_heartbeat,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: forward_describe_topic_partitions,
    ApiKey.FETCH: forward_fetch,
    ApiKey.METADATA: forward_metadata,
    ApiKey.PRODUCE: forward_produce,
    ApiKey.SHARE_ACKNOWLEDGE: forward_share_acknowledge,
    ApiKey.SHARE_FETCH: forward_share_fetch,
    ApiKey.STREAMS_GROUP_HEARTBEAT: forward_streams_group_heartbeat,
}
"""The handler of each API key that is forwarded."""
