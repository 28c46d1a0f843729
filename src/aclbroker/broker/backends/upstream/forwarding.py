"""The way of a request to the cluster upstream and back: its frame, its answer, its addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aclbroker.broker.backends.backend import Later
from aclbroker.broker.backends.upstream.access import UpstreamUnavailable
from aclbroker.broker.backends.upstream.addresses import rewrite_addresses
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.showing import unnamed
from aclbroker.broker.turns import wait
from aclbroker.protocol.compile import encode
from aclbroker.protocol.header import RequestHeader, encode_request_header
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.tags import without_unknown_tags
from aclbroker.protocol.wire import decode_response


def forward(backend: UpstreamBackend, rights: RequestRights, request: Any) -> Later:
    """Forward a request at the client's version, as its original bytes if it may pass as it is."""
    return forward_at(backend, rights, request, rights.context.api_version)


def _check_offered(backend: UpstreamBackend, rights: RequestRights) -> None:
    """Raise `ProtocolError` for a version that the broker upstream does not offer."""
    _, key, version, _, _ = rights.context
    offered = backend.cluster.state.offered.get(key, range(0))
    if version not in offered:
        raise ProtocolError(f"{APIS[key].name} version {version} is not offered upstream")


def forward_at(
    backend: UpstreamBackend, rights: RequestRights, request: Any, version: int
) -> Later:
    """Forward a request at a version that may differ from the client's."""
    sent = send(backend, rights, request, version)
    return later(backend, rights, sent, partial(read_answer, backend, rights, request, version))


def later(
    backend: UpstreamBackend,
    rights: RequestRights,
    response: Awaitable[Frame],
    read: Callable[[Frame], Any],
) -> Later:
    """Return the answer that a broker makes; ``read`` makes a message of its frame."""
    pipeline = backend.pipelines[rights.context.session.connection]
    return Later(response, read, pipeline.answer_left)


def send(
    backend: UpstreamBackend, rights: RequestRights, request: Any, version: int
) -> Awaitable[Frame]:
    """Send a request to the broker, and return an awaitable of the frame of its answer.

    Raises `ProtocolError` for a version that the broker does not offer.
    """
    context = rights.context
    frame = request_frame(backend, rights, request, version)
    backend.cluster.decoded += 1
    return backend.pipelines[context.session.connection].send(frame, context.correlation_id)


def request_frame(
    backend: UpstreamBackend, rights: RequestRights, request: Any, version: int
) -> Frame:
    """Return the frame of a request without its length.

    It has the original bytes if the gate refused no part of the request, and the request has no
    undeclared tagged fields. Raises `ProtocolError` for a version that the broker does not offer.
    """
    _check_offered(backend, rights)
    context = rights.context
    declared = without_unknown_tags(request)
    if declared is rights.asked and version == context.api_version and rights.frame:
        return rights.frame
    api = APIS[context.api_key]
    header = RequestHeader(api.key, version, context.correlation_id, context.client_id, (), 0)
    return encode_request_header(api, header) + encode(declared, version)


def read_answer(
    backend: UpstreamBackend, rights: RequestRights, request: Any, version: int, frame: Frame
) -> Any:
    """Return the message of an answer, with the gateway's addresses; it may wait for topic ids."""
    key = rights.context.api_key
    try:
        _, response = decode_response(APIS[key], version, frame)
    except ProtocolError as error:
        raise UpstreamUnavailable(f"malformed answer to {APIS[key].name}: {error}") from error
    unknown = unnamed(key, response) - backend.directory.names.keys()
    if unknown:
        wait(backend.directory.learn(unknown))
    rewrite_addresses(key, response, partial(backend.address_of, rights))
    return response
