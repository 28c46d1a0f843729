"""The SASL exchange on one connection, without I/O: frames in, answers out, a principal in the end.

It follows Kafka's order of requests: ApiVersions (at most one answered), SaslHandshake, then tokens
of the mechanism, inside SaslAuthenticate requests after a handshake of version 1 (KIP-152), bare
after one of version 0. Any other request ends the connection before it is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from broker.auth.plain import AuthenticationFailed
from protocol.errors import ErrorCode
from protocol.header import api_of
from protocol.leaves import ProtocolError
from protocol.messages import APIS, ApiKey
from protocol.wire import Request, decode_request, framed, response_frame

_ANSWERED = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class Mechanism(Protocol):
    """The server's side of one SASL mechanism, for one exchange."""

    complete: bool
    username: str | None

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's token and return the challenge; raises `AuthenticationFailed`."""


class ApiVersionsAnswer(NamedTuple):
    """The answer to an ApiVersions request, and whether it tells the versions or an error."""

    frame: bytes
    accepted: bool


class Reply(NamedTuple):
    """What to write; with a ``failure``, the reason to close the connection after it."""

    frame: bytes
    failure: str | None = None


class _State(Enum):
    VERSIONS_OR_HANDSHAKE = auto()
    HANDSHAKE = auto()
    REQUESTS = auto()
    BARE_TOKENS = auto()
    OVER = auto()


class SaslExchange:
    """One authentication: ``receive`` its frames until ``principal`` is known or a failure comes.

    ``mechanisms`` makes a fresh mechanism by its name; ``api_versions`` answers that request.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, Callable[[], Mechanism]],
        api_versions: Callable[[Request], ApiVersionsAnswer],
    ) -> None:
        self.principal: str | None = None
        self._mechanisms = mechanisms
        self._api_versions = api_versions
        self._state = _State.VERSIONS_OR_HANDSHAKE
        self._mechanism: Mechanism | None = None

    def receive(self, frame: bytes) -> Reply:
        """Answer one frame; raises `ProtocolError` for what cannot be answered."""
        if self._state is _State.BARE_TOKENS:
            return self._token(frame, framed, lambda _: b"")
        key, _ = api_of(frame)
        if key not in _ANSWERED:
            name = APIS[key].name if key in APIS else f"API key {key}"
            raise ProtocolError(f"{name} before authentication; SaslHandshake is expected")
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
                response = _answer(request, error_code=ErrorCode.ILLEGAL_SASL_STATE)
                return Reply(response, f"{request.api.name} in place of SaslAuthenticate")
        raise ProtocolError(f"{request.api.name} out of its order in the SASL exchange")

    def _versions(self, request: Request) -> Reply:
        answer = self._api_versions(request)
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
            return Reply(_answer(request, error_code=code, mechanisms=enabled), reason)
        self._mechanism = make()
        with_requests = request.header.api_version > 0
        self._state = _State.REQUESTS if with_requests else _State.BARE_TOKENS
        return Reply(_answer(request, mechanisms=enabled))

    def _authenticate(self, request: Request) -> Reply:
        return self._token(
            request.message.auth_bytes,
            lambda challenge: _answer(request, auth_bytes=challenge),
            lambda reason: _answer(
                request, error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=reason
            ),
        )

    def _token(
        self, token: bytes, accept: Callable[[bytes], bytes], refuse: Callable[[str], bytes]
    ) -> Reply:
        mechanism = self._mechanism
        if mechanism is None:
            raise ProtocolError("a SASL token before the handshake")
        try:
            challenge = mechanism.evaluate(token)
        except AuthenticationFailed as error:
            self._state = _State.OVER
            return Reply(refuse(str(error)), str(error))
        if mechanism.complete:
            self._state = _State.OVER
            self.principal = f"User:{mechanism.username}"
        return Reply(accept(challenge))


def _answer(request: Request, **fields: Any) -> bytes:
    header = request.header
    response = request.api.response(**fields)
    return response_frame(request.api, header.api_version, header.correlation_id, response)
