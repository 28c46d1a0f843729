"""Bodies and answers of calls, as JSON: what is read, and how errors are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, Final

from aiohttp import HttpVersion11, hdrs, web

from aclbroker.broker.http_api.errors import ApiError

MOST_OF_BODY: Final = 131_072
"""The longest body of a request, in bytes."""

JSON: Final = "application/json"

SERVER_NAME: Final = "aclbroker"
"""What answers say of what serves, and no more."""

_BODY_SECONDS: Final = 10.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

Room = Callable[[int], AbstractAsyncContextManager[None]]
"""Waits until a body of a size may be read; the block reads it."""


async def body_of(request: web.Request, room: Room) -> bytes:
    """Return the body of a request; raises `ApiError`."""
    if request.content_type != JSON or hdrs.CONTENT_ENCODING in request.headers:
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body must be {JSON}, not encoded.", ends=True
        )
    size = size_of_body(request)
    if size > MOST_OF_BODY:
        raise _too_large()
    has_room = False
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async with room(size):
                has_room = True
                if hdrs.EXPECT in request.headers and request.version >= HttpVersion11:
                    await request.writer.write(_CONTINUE)
                    # aiohttp would count these bytes as part of the answer.
                    request.writer.output_size = 0
                return await request.read()
    except TimeoutError:
        raise _timed_out(has_room=has_room) from None


def size_of_body(request: web.BaseRequest) -> int:
    """Return the length of a request's body, or the limit if the request declares no length."""
    if not request.body_exists:
        return 0
    return MOST_OF_BODY if request.content_length is None else request.content_length


async def expect_body(request: web.Request) -> None:
    """Accept ``Expect: 100-continue``; raise ``HTTPExpectationFailed`` for any other value.

    aiohttp's own handler sends 100 Continue at once. Here `body_of` sends it, after the login.
    """
    expected = request.headers.get(hdrs.EXPECT, "")
    if expected.lower() != "100-continue":
        raise web.HTTPExpectationFailed(text=f"Unknown Expect: {expected[:64]}")


def _timed_out(*, has_room: bool) -> ApiError:
    if has_room:
        text = f"The body has not come within {_BODY_SECONDS:g} seconds."
        return ApiError(HTTPStatus.REQUEST_TIMEOUT, text, ends=True)
    text = (
        f"The server had no memory for the body within {_BODY_SECONDS:g} seconds, "
        "because other calls of this principal hold it. Try again later."
    )
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, text, ends=True)


def _too_large() -> ApiError:
    text = f"The body is longer than {MOST_OF_BODY} bytes."
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text, ends=True)


def refusal_of_http(request: web.BaseRequest, error: web.HTTPException) -> web.Response:
    """Return an error of aiohttp's in the form of MDS: no such path, no such method."""
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return refusal_of(_too_large())
    text = f"{request.method[:16]} {request.path[:256]}: {error.reason}."
    answer = refusal_of(ApiError(HTTPStatus(error.status), text, ends=True))
    if isinstance(error, web.HTTPMethodNotAllowed):
        answer.headers[hdrs.ALLOW] = ", ".join(sorted(error.allowed_methods))
    return answer


def refusal_of(error: ApiError) -> web.Response:
    """Return the answer of a call that is refused."""
    answer = answer_of(error.body(), error.status)
    if error.ends:
        answer.force_close()
    return answer


def answer_of(
    value: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return the answer that is a value."""
    text = json.dumps(value, separators=(",", ":"))
    return web.Response(text=text, status=status, content_type=JSON, headers=headers)
