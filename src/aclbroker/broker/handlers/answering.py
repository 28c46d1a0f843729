"""The way of a decoded request: rights and gate, then an answer, then the refused parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Any, NamedTuple

from aclbroker.acl.authorizer import RequestContext
from aclbroker.broker.backends.backend import Later
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.engine import Verdict, check, filtered, hiding, unchanged
from aclbroker.broker.gate.need import Row
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.broker.handlers.services import Answer, Services
from aclbroker.broker.turns import wait
from aclbroker.protocol.pieces import Encoded
from aclbroker.protocol.primitives import Frame

CheckedRequest = tuple[RequestRights, Verdict]
"""The rights of the session that sent a request, and the outcome of the check.

The verdict's ``request`` is the part to be answered; None if the gate refused the whole request.
A class of its own would cost a small request 3 % more time.
"""


class Unfinished(NamedTuple):
    """A checked request whose response a backend makes later."""

    checked: CheckedRequest
    later: Later


class LaterAnswer:
    """The answer to a request that a backend answers later.

    ``finish`` makes the encoded answer to the request from the backend's response. ``left`` must be
    called once the answer has left for the client.
    """

    __slots__ = ("_finish", "_response", "left")

    def __init__(self, later: Later, finish: Callable[[Any], Encoded | Awaitable[Encoded]]) -> None:
        self._response = later.response
        self._finish = finish
        self.left = later.left

    async def encoded(self) -> Encoded:
        """Return the encoded answer, when the response is there."""
        answer = self._finish(await self._response)
        return await answer if isinstance(answer, Awaitable) else answer


def check_request(
    services: Services, row: Row, context: RequestContext, message: Any, frame: Frame
) -> CheckedRequest:
    """Check a request against its row; this may wait until its topics are known."""
    rights = services.rights(row, context)
    topics = known_topics(services, row, message)
    verdict = check(message, rights, topics)
    if services.backend.exceeds_rights and row.key not in services.handlers:
        verdict = filtered(verdict, rights, topics)
    rights.asked, rights.creatable = message, verdict.creatable
    rights.is_whole, rights.frame = verdict.complete is unchanged, frame
    return rights, verdict


def wholly_allowed(
    services: Services, row: Row, context: RequestContext, message: Any
) -> CheckedRequest:
    """Return a request as checked that was allowed as a whole; this may wait."""
    rights = services.rights(row, context)
    topics = known_topics(services, row, message)
    rights.asked, rights.is_whole = message, False
    verdict = Verdict(message, None, unchanged)
    return rights, hiding(verdict, rights, topics)


def complete(checked: CheckedRequest, response: Any) -> Any:
    """Return the answer to the whole request, made of the answer to its allowed part."""
    return checked[1].complete(response)


def answer_request(
    services: Services,
    row: Row,
    context: RequestContext,
    message: Any,
    answer: Answer,
    frame: Frame = b"",
) -> Any:
    """Check a request, and return the response that ``answer`` makes, with the refused parts.

    ``frame`` has the bytes of the request, if the backend may get them as they came. Returns
    `Unfinished` if a backend makes the response later. It may wait, so `Turns.run` must run it.
    """
    checked = check_request(services, row, context, message, frame)
    rights, verdict = checked
    if verdict.request is None:
        return verdict.response
    response = answer(rights, verdict.request)
    if isinstance(response, CoroutineType):
        response = wait(response)
    elif isinstance(response, Later):
        return Unfinished(checked, response)
    return verdict.complete(response)


def known_topics(services: Services, row: Row, message: Any) -> Topics:
    """Return the topics of a request, as far as the gate must know them; this may wait."""
    topics = services.backend.topics.known(row, message)
    # The catalog comes first, because isinstance of Awaitable runs Python code.
    if not isinstance(topics, Catalog) and isinstance(topics, Awaitable):
        return wait(topics)
    return topics
