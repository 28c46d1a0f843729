"""Bodies and answers of calls, as JSON: what is read, and how errors are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import hdrs, web

from aclbroker.broker.mds.errors import ApiError
from aclbroker.broker.mds.reading import parsed

MOST_OF_BODY: Final = 131_072
"""The longest body of a request, in bytes."""

JSON: Final = "application/json"

SERVER_NAME: Final = "aclbroker"
"""What answers say of what serves, and no more."""

_BODY_SECONDS: Final = 10.0


async def body_of(request: web.Request) -> Any:
    """Return what the body of a request says; raises `ApiError`."""
    if request.content_type != JSON or hdrs.CONTENT_ENCODING in request.headers:
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"The body must be {JSON}, not encoded.", ends=True
        )
    if (request.content_length or 0) > MOST_OF_BODY:
        raise _too_large()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return parsed(await request.read())
    except TimeoutError:
        text = f"The body has not come within {_BODY_SECONDS:g} seconds."
        raise ApiError(HTTPStatus.REQUEST_TIMEOUT, text, ends=True) from None


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
