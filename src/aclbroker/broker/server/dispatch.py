"""The way of one request of an authenticated session: frame, gate, handler, response frame."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from sys import getrefcount
from typing import Any, Final

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.broker.auth.sasl.exchange import Answers, ApiVersionsAnswer
from aclbroker.broker.backends.backend import Relayed
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers.answering import (
    LaterAnswer,
    Unfinished,
    answer_request,
    complete,
    wholly_allowed,
)
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.handlers.session import answer_api_versions
from aclbroker.broker.server.errors import error_response, not_yet, unread
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.pieces import Encoded, Pieces
from aclbroker.protocol.primitives import Frame, ProtocolError, TooMany
from aclbroker.protocol.wire import (
    REMEMBERED_BYTES,
    Request,
    decode_request,
    response_frame,
    response_in_pieces,
)
from aclbroker.turns import pause

_SHORT: Final = 512
"""The largest frame, in bytes, whose work is so little that it needs no turns."""

_LARGE: Final = 16_384

_PRODUCE: Final = int(ApiKey.PRODUCE)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)

_FREED_AT_ONCE: Final = 1024

Dispatched = Encoded | LaterAnswer | Awaitable[Encoded | LaterAnswer]
"""An answer, or an awaitable of it, or one that a backend makes later."""


def answer_versions(services: Services, request: Request) -> ApiVersionsAnswer:
    """Answer ApiVersions of any version, known or not, of any session."""
    header = request.header
    response = answer_api_versions(
        header.api_version, request.message, services.answered_here, services.backend
    )
    # An unknown version cannot be encoded; every client can read version 0 (KIP-511).
    version = header.api_version if request.message is not None else 0
    frame = response_frame(request.api, version, header.correlation_id, response)
    return ApiVersionsAnswer(frame, response.error_code == ErrorCode.NONE)


def answer_out_of_order(request: Request) -> bytes:
    """Answer a request that came in place of a SaslAuthenticate, as the key answers errors."""
    why = Denial(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate was expected.")
    return bytes(_frame(request, error_response(request, why)))


def before_login(services: Services) -> Answers:
    """Return the answers to a client that has not authenticated yet."""
    return Answers(partial(answer_versions, services), answer_out_of_order)


def dispatch(services: Services, session: Session, frame: Frame) -> Dispatched:
    """Answer one frame: at once, or later where it waits for something, or for its next turn.

    The answer is empty where the client wants none. Raises `ProtocolError` for a frame that cannot
    be answered: the connection must be closed. Raises `RequestRefused` for one that was answered
    unread.
    """
    if len(frame) <= _SHORT and int.from_bytes(frame[:2]) in services.short_answers:
        return answer_frame(services, session, frame)
    return services.turns.run(session.principals[0], answer_frame, services, session, frame)


def answer_frame(services: Services, session: Session, frame: Frame) -> Encoded | LaterAnswer:
    """Answer one frame, in the worker that may wait for it. Returns and raises as `dispatch`."""
    try:
        request = decode_request(frame)
    except TooMany as why:
        if int.from_bytes(frame[:2]) == _PRODUCE:
            raise  # It may want no answer, as acks in the unread part says.
        raise unread(frame, why) from None
    key, version, correlation_id, client_id, _, _ = request.header
    row, answer = GATE.get(key), services.answers.get(key) or services.answer_to(key)
    if row is None or answer is None:
        raise ProtocolError(f"{request.api.name} is not answered")
    if request.message is None:
        return answer_versions(services, request).frame
    if services.waits and key != _API_VERSIONS:
        return _frame(request, not_yet(request, services.waits))
    if services.faults is not None and (code := services.faults.happen(key)) is not None:
        return _frame(request, error_response(request, Denial(code, "A fault was asked for.")))
    # As RequestContext(...), whose __new__ is Python code and takes twice as long.
    asked_with = (session, key, version, client_id, correlation_id)
    context = tuple.__new__(RequestContext, asked_with)
    # The backend may get the frame as it came, unless its header has undeclared tagged fields.
    whole = b"" if request.header.unknown_tags else frame
    response = answer_request(services, row, context, request.message, answer, whole)
    if isinstance(response, Unfinished):
        finish = partial(_finished, services, session, frame, request, response)
        return LaterAnswer(response.later, finish)
    return _encoded(frame, request, response)


def _finished(
    services: Services,
    session: Session,
    frame: Frame,
    request: Request,
    unfinished: Unfinished,
    response: Any,
) -> Encoded | Awaitable[Encoded]:
    """Return the answer to a request whose response has come from the backend."""

    def finish(_services: Services, _session: Session, frame: Frame) -> Encoded:
        message = unfinished.later.read(response)
        return _encoded(frame, request, complete(unfinished.checked, message))

    return services.turns.run(session.principals[0], finish, services, session, frame)


async def answer_relayed(services: Services, relayed: Relayed) -> Encoded:
    """Return the answer to a relayed request whose answer must be decoded."""
    answer = services.turns.run(
        relayed.session.principals[0], _read, services, relayed.session, relayed.unread, relayed
    )
    encoded: Encoded = await answer if isinstance(answer, Awaitable) else answer
    return encoded


def _read(services: Services, session: Session, frame: Frame, relayed: Relayed) -> Encoded:
    request = relayed.request()
    key, version, correlation_id, client_id, _, _ = request.header
    context = RequestContext(session, key, version, client_id, correlation_id)
    checked = wholly_allowed(services, GATE[ApiKey(key)], context, request.message)
    message = relayed.read(checked[0], request.message)
    return _encoded(frame, request, complete(checked, message))


def _encoded(frame: Frame, request: Request, response: Any) -> Encoded:
    """Return the encoded answer; free the entries of large messages in turns."""
    answered = _frame(request, response)
    if len(frame) > _LARGE or isinstance(answered, Pieces):
        _let_go(response)
        # Those of short requests may be asked for again.
        if len(frame) > REMEMBERED_BYTES:
            _let_go(request.message)
    return answered


class _Holder:
    """Has a list of its own."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[None] = [None]


def _references(message: Any, name: str) -> int:
    entries = getattr(message, name)
    return getrefcount(entries)


_OF_MESSAGE_ALONE: Final = _references(_Holder(), "entries")
"""How many references there are to a list of a message alone; Python's versions count variously."""


def _let_go(message: Any) -> None:
    """Free the entries of a message in turns: all at once would take longer than one.

    A list with other references stays as it is.
    """
    if isinstance(message, (bytes, Pieces)):
        return
    pause()
    for name in message.__slots__:
        if _references(message, name) != _OF_MESSAGE_ALONE:
            continue
        entries = getattr(message, name)
        if type(entries) is list:
            while entries:
                del entries[-_FREED_AT_ONCE:]
                pause()


def _frame(request: Request, response: Any) -> Encoded:
    header = request.header
    if header.api_key == _PRODUCE and request.message.acks == 0:
        return _unacknowledged(response)
    return response_in_pieces(request.api, header.api_version, header.correlation_id, response)


def _unacknowledged(response: Any) -> bytes:
    """Answer a Produce with acks=0, which gets no response: as in Kafka, an error closes the
    connection.
    """
    if any(
        partition.error_code
        for topic in response.responses
        for partition in topic.partition_responses
    ):
        raise ProtocolError("records with acks=0 were refused")
    return b""
