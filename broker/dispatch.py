"""The way of one request of an authenticated session: frame, handler, response frame."""

from __future__ import annotations

from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any

from broker.acl.authorizer import RequestContext, Session
from broker.auth.sasl import ApiVersionsAnswer
from broker.handlers import HANDLERS
from broker.handlers.services import Services
from broker.handlers.session import answer_api_versions
from protocol.errors import ErrorCode
from protocol.header import api_of
from protocol.leaves import ProtocolError
from protocol.wire import Request, decode_request, response_frame


def answer_versions(request: Request) -> ApiVersionsAnswer:
    """Answer ApiVersions of any version, known or not, of any session."""
    header = request.header
    response = answer_api_versions(header.api_version, request.message, HANDLERS)
    # A version that is not known here is not known how to encode either; every client reads 0.
    version = header.api_version if request.message is not None else 0
    frame = response_frame(request.api, version, header.correlation_id, response)
    return ApiVersionsAnswer(frame, response.error_code == ErrorCode.NONE)


def dispatch(services: Services, session: Session, frame: bytes) -> bytes | Awaitable[bytes]:
    """Answer one frame, at once or, where a store is asked, later.

    Raises `ProtocolError` for a frame that cannot be answered: the connection must be closed.
    """
    key, _ = api_of(frame)
    if key not in HANDLERS:
        raise ProtocolError(f"API key {key} is not answered")
    request = decode_request(frame)
    if request.message is None:
        return answer_versions(request).frame
    header = request.header
    context = RequestContext(
        session, header.api_key, header.api_version, header.client_id, header.correlation_id
    )
    response = HANDLERS[header.api_key](services, context, request.message)
    return _later(request, response) if isawaitable(response) else _frame(request, response)


async def _later(request: Request, response: Awaitable[Any]) -> bytes:
    return _frame(request, await response)


def _frame(request: Request, response: Any) -> bytes:
    header = request.header
    return response_frame(request.api, header.api_version, header.correlation_id, response)
