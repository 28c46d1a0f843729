"""The SASL exchange on one connection, without I/O: takes frames, returns answers and an identity.

Requests come in Kafka's order: ApiVersions (at most one that succeeds), SaslHandshake, then the
tokens of the mechanism. After a handshake of version 1 the tokens are inside SaslAuthenticate
requests (KIP-152), after one of version 0 they are bare frames. Any other request ends the
connection. In place of a SaslAuthenticate a short one is first answered with ILLEGAL_SASL_STATE, as
in Kafka; everywhere else the connection is closed before the request is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from aclbroker.broker.auth.sasl.mechanism import (
    AuthenticationFailed,
    Identity,
    InvalidCredentials,
    Mechanism,
)
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.header import api_of
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import Frame, ProtocolError
from aclbroker.protocol.wire import Request, decode_request, framed, response_frame

_LARGEST_WITHOUT_TOKEN: Final = 8192
"""The largest request, in bytes, that is answered before login, other than a SaslAuthenticate.

Kafka has no such limit. Without it, a client that has not logged in could cause a third of a second
of work with each 100 KiB, and would get an answer several times as long.
"""

_ANSWERED = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class ApiVersionsAnswer(NamedTuple):
    """The answer to an ApiVersions request; ``accepted`` is False if it is an error."""

    frame: bytes
    accepted: bool


class Answers(NamedTuple):
    """The answers to requests that are not part of SASL."""

    api_versions: Callable[[Request], ApiVersionsAnswer]
    out_of_order: Callable[[Request], bytes]
    """Returns the response frame with ILLEGAL_SASL_STATE.

    Raises `ProtocolError` for a request whose response cannot say so.
    """


class Reply(NamedTuple):
    """The bytes to write, and whether to close the connection after them.

    ``failure`` is the reason for the log in the reply that first refuses the client, else None.
    """

    frame: bytes
    failure: str | None = None
    closes: bool = False


class _State(Enum):
    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    REQUESTS = auto()
    BARE_TOKENS = auto()
    OVER = auto()


class _Refusing:
    """Takes the place of the mechanism once the client has failed; it refuses every token."""

    def __init__(self, text: str) -> None:
        self.identity: Identity | None = None
        self._text = text

    def evaluate(self, token: bytes) -> bytes:
        raise AuthenticationFailed(self._text)


class SaslExchange:
    """One authentication: pass each frame to ``receive`` until it is ``complete`` or has failed.

    ``mechanisms`` has a factory for each enabled mechanism, by name. ``answers`` makes the answers
    to requests that are not part of SASL. ``accept`` takes the name of the mechanism and the
    identity that it proved, and returns the lifetime of the session in milliseconds, 0 if it does
    not expire; it raises `AuthenticationFailed` if the identity may not log in. ``again`` is the
    mechanism of the first authentication if a session authenticates again (KIP-368): the exchange
    then begins with the handshake, and any other mechanism is refused. The attribute ``mechanism``
    is the enabled mechanism that the client asked for, "" until it has.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, Callable[[], Mechanism]],
        answers: Answers,
        accept: Callable[[str, Identity], int],
        again: str | None = None,
    ) -> None:
        self.complete = False
        self._mechanisms = mechanisms
        self._answers = answers
        self._accept = accept
        self._again = again
        self._state = _State.VERSIONS_OR_HANDSHAKE if again is None else _State.HANDSHAKE
        self._mechanism: Mechanism | None = None
        self._failure_is_known = False
        self.mechanism = ""

    def receive(self, frame: Frame) -> Reply:
        """Answer one frame; raises `ProtocolError` if it is malformed or out of order."""
        if self._state is _State.BARE_TOKENS:
            return self._token(bytes(frame), lambda challenge, _: framed(challenge), lambda *_: b"")
        key, _ = api_of(frame)
        if key not in _ANSWERED and self._state is not _State.REQUESTS:
            raise ProtocolError(f"{_name(key)} before the client has authenticated")
        if key != ApiKey.SASL_AUTHENTICATE and len(frame) > _LARGEST_WITHOUT_TOKEN:
            raise ProtocolError(
                f"{_name(key)} of {len(frame)} bytes before the client has authenticated; "
                f"{_LARGEST_WITHOUT_TOKEN} are allowed"
            )
        request = decode_request(frame)
        match self._state, key:
            case _State.VERSIONS_OR_HANDSHAKE, ApiKey.API_VERSIONS:
                return self._versions(request)
            case _State.VERSIONS_OR_HANDSHAKE | _State.HANDSHAKE, ApiKey.SASL_HANDSHAKE:
                return self._handshake(request)
            case _State.REQUESTS, ApiKey.SASL_AUTHENTICATE:
                return self._authenticate(request)
            case _State.REQUESTS, _ if request.message is not None:
                self._state = _State.OVER
                failure = f"{request.api.name} in place of SaslAuthenticate"
                return Reply(self._answers.out_of_order(request), failure, closes=True)
        raise ProtocolError(f"{request.api.name} out of its order in the SASL exchange")

    def _versions(self, request: Request) -> Reply:
        answer = self._answers.api_versions(request)
        if answer.accepted:
            self._state = _State.HANDSHAKE
        return Reply(answer.frame)

    def _handshake(self, request: Request) -> Reply:
        name: str = request.message.mechanism
        enabled = list(self._mechanisms)
        make = self._mechanisms.get(name)
        if make is None:
            self._state = _State.OVER
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            reason = f"SASL mechanism {name[:64]} is not enabled; enabled: {', '.join(enabled)}"
            response = _answer(request, error_code=code, mechanisms=enabled)
            return Reply(response, reason, closes=True)
        self.mechanism = name
        if self._again in (None, name):
            self._mechanism = make()
        else:
            text = f"SASL mechanism {name} is not the {self._again} of the first authentication"
            self._mechanism = _Refusing(text)
        with_requests = request.header.api_version > 0
        self._state = _State.REQUESTS if with_requests else _State.BARE_TOKENS
        return Reply(_answer(request, mechanisms=enabled))

    def _authenticate(self, request: Request) -> Reply:
        return self._token(
            request.message.auth_bytes,
            lambda challenge, lifetime: _answer(
                request, auth_bytes=challenge, session_lifetime_ms=lifetime
            ),
            lambda code, text: _answer(request, error_code=code, error_message=text),
        )

    def _token(
        self,
        token: bytes,
        accept: Callable[[bytes, int], bytes],
        refuse: Callable[[ErrorCode, str], bytes],
    ) -> Reply:
        mechanism = self._mechanism
        if mechanism is None:
            raise ProtocolError("a SASL token before the handshake")
        lifetime = 0
        try:
            challenge = mechanism.evaluate(token)
            if mechanism.identity is not None:
                lifetime = self._accept(self.mechanism, mechanism.identity)
                self._state, self.complete = _State.OVER, True
        except AuthenticationFailed as error:
            if error.challenge:
                self._mechanism, self._failure_is_known = _Refusing(str(error)), True
                return Reply(accept(error.challenge, 0), error.reason)
            self._state = _State.OVER
            failure = None if self._failure_is_known else error.reason
            return Reply(refuse(error.code, self._text(error)), failure, closes=True)
        return Reply(accept(challenge, lifetime))

    def _text(self, error: AuthenticationFailed) -> str:
        if isinstance(error, InvalidCredentials) and self._again is not None:
            error = InvalidCredentials(self.mechanism, error.reason, once_more=True)
        return str(error)


def _name(key: int) -> str:
    return APIS[key].name if key in APIS else f"API key {key}"


def _answer(request: Request, **fields: Any) -> bytes:
    header = request.header
    response = request.api.response(**fields)
    return response_frame(request.api, header.api_version, header.correlation_id, response)
