"""The handlers of a cluster upstream: each forwards the allowed part of a request."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final

from aclbroker.acl.authorizer import Position
from aclbroker.broker.backends.backend import BackendHandler, Later
from aclbroker.broker.backends.upstream.access import UpstreamUnavailable
from aclbroker.broker.backends.upstream.addresses import rewrite_addresses
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.keys import FORWARDED
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.showing import unnamed
from aclbroker.broker.turns import wait
from aclbroker.protocol.compile import encode
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.header import RequestHeader, encode_request_header
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from aclbroker.protocol.messages.fetch import FetchRequest, PartitionData
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.produce import ProduceRequest, ProduceResponse
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.tags import drop_unknown_tags, has_unknown_tags
from aclbroker.protocol.wire import decode_response
from aclbroker.turns import in_turns

_FIRST_METADATA_WITHOUT_CREATION: Final = 4
"""The first version of Metadata that can ask for topics without creating them."""

_NO_SESSION: Final = -1
"""The epoch of a Fetch that neither begins nor continues a session (KIP-227)."""


def forward(backend: UpstreamBackend, rights: RequestRights, request: Any) -> Later:
    """Forward a request at the client's version, as its original bytes if it may pass as it is."""
    _check_offered(backend, rights)
    return _later(backend, rights, request, rights.context.api_version)


def forward_fetch(backend: UpstreamBackend, rights: RequestRights, request: FetchRequest) -> Later:
    """Forward a Fetch outside of any session, because each names all topics then.

    The answer begins with the check whether the rights have changed while the broker waited.
    """
    _check_offered(backend, rights)
    full = dataclasses.replace(
        request, session_id=0, session_epoch=_NO_SESSION, forgotten_topics_data=()
    )
    version, position = rights.context.api_version, rights.position()
    read = partial(_read_fetch, backend, rights, full, version, position)
    return Later(_sent(backend, rights, full, version), read)


def forward_metadata(
    backend: UpstreamBackend, rights: RequestRights, request: MetadataRequest
) -> Later:
    """Forward a Metadata at a version that tells whether missing topics are to be created.

    Missing topics are created by a request of their own if the rest must not be.
    """
    _check_offered(backend, rights)
    version = max(rights.context.api_version, _FIRST_METADATA_WITHOUT_CREATION)
    if not backend.topics.auto_creates:
        # The gate has not asked for CREATE, because the configuration says that nothing is created.
        request = dataclasses.replace(request, allow_auto_topic_creation=False)
    later = partial(_later, backend, rights, request, version)
    if not rights.creatable or request.allow_auto_topic_creation:
        return later()

    async def created_before() -> Frame:
        topics = [MetadataRequestTopic(name=name) for name in rights.creatable]
        await backend.cluster.ask(ApiKey.METADATA, MetadataRequest(topics))
        frame: Frame = await later().response
        return frame

    read = partial(_read, backend, rights, request, version)
    return Later(created_before(), read)


def forward_describe_topic_partitions(
    backend: UpstreamBackend, rights: RequestRights, request: DescribeTopicPartitionsRequest
) -> Later:
    """Forward a DescribeTopicPartitions, whose cursor must name one of the topics in its list."""
    cursor = request.cursor
    names = [topic.name for topic in in_turns(request.topics)]
    if cursor is not None and names and cursor.topic_name not in names:
        # The gate has refused the topic of the cursor. All others in the list come after it.
        request = dataclasses.replace(request, cursor=None)
    return forward(backend, rights, request)


def forward_produce(
    backend: UpstreamBackend, rights: RequestRights, request: ProduceRequest
) -> Later | ProduceResponse:
    """Forward a Produce; with acks=0 the broker sends no answer."""
    if request.acks:
        return forward(backend, rights, request)
    _check_offered(backend, rights)
    frame = _frame(rights, request, rights.context.api_version)
    sent = backend.pipelines[rights.context.session.connection].send(frame, None)
    return Later(sent, lambda _frame: ProduceResponse())


def _check_offered(backend: UpstreamBackend, rights: RequestRights) -> None:
    """Raise `ProtocolError` for a version that the broker upstream does not offer."""
    _, key, version, _, _ = rights.context
    offered = backend.cluster.state.offered.get(key, range(0))
    if version not in offered:
        raise ProtocolError(f"{APIS[key].name} version {version} is not offered upstream")


def _later(backend: UpstreamBackend, rights: RequestRights, request: Any, version: int) -> Later:
    sent = _sent(backend, rights, request, version)
    return Later(sent, partial(_read, backend, rights, request, version))


def _sent(
    backend: UpstreamBackend, rights: RequestRights, request: Any, version: int
) -> Awaitable[Frame]:
    context = rights.context
    frame = _frame(rights, request, version)
    return backend.pipelines[context.session.connection].send(frame, context.correlation_id)


def _frame(rights: RequestRights, request: Any, version: int) -> Frame:
    """Return the frame of a request without its length.

    It has the original bytes if the gate refused no part of the request, and the request has no
    undeclared tagged fields.
    """
    context = rights.context
    is_original = request is rights.asked and version == context.api_version and rights.frame
    if is_original and not has_unknown_tags(request):
        return rights.frame
    drop_unknown_tags(request)
    api = APIS[context.api_key]
    header = RequestHeader(api.key, version, context.correlation_id, context.client_id, (), 0)
    return encode_request_header(api, header) + encode(request, version)


def _read(
    backend: UpstreamBackend, rights: RequestRights, request: Any, version: int, frame: Frame
) -> Any:
    """Return the message of an answer, with the gateway's addresses; it may wait for topic ids."""
    key = rights.context.api_key
    try:
        _, response = decode_response(APIS[key], version, frame)
    except ProtocolError as error:
        raise UpstreamUnavailable(f"malformed answer to {APIS[key].name}: {error}") from error
    unknown = unnamed(key, response) - backend.topics.names.keys()
    if unknown:
        wait(backend.topics.learn(unknown))
    rewrite_addresses(key, response, partial(backend.address_of, rights))
    return response


def _read_fetch(
    backend: UpstreamBackend,
    rights: RequestRights,
    request: FetchRequest,
    version: int,
    position: Position | None,
    frame: Frame,
) -> Any:
    """Return the answer to a Fetch, without the records of topics whose right was revoked."""
    response = _read(backend, rights, request, version, frame)
    if position is None or rights.position() != position:
        names = {
            topic.topic or backend.topics.names.get(topic.topic_id)
            for topic in in_turns(response.responses)
        }
        allowed = rights.allowed("session", names)
        for topic in in_turns(response.responses):
            if (topic.topic or backend.topics.names.get(topic.topic_id)) not in allowed:
                topic.partitions = [
                    PartitionData(
                        partition.partition_index,
                        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        high_watermark=-1,
                        records=b"",
                    )
                    for partition in in_turns(topic.partitions)
                ]
    return response


UPSTREAM_HANDLERS: Final[Mapping[int, BackendHandler]] = {
    **dict.fromkeys(FORWARDED, forward),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: forward_describe_topic_partitions,
    ApiKey.FETCH: forward_fetch,
    ApiKey.METADATA: forward_metadata,
    ApiKey.PRODUCE: forward_produce,
}
"""The handler of each API key that is forwarded."""
