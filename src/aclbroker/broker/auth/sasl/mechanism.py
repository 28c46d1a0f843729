"""What all SASL mechanisms have in common: they answer tokens until an identity is proved."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from aclbroker.protocol.errors import ErrorCode


class AuthenticationFailed(Exception):
    """The client is not authenticated. The text may be sent to it; ``reason`` is for the log.

    A mechanism that reports failures inside its exchange sets ``challenge``: the client gets it
    first, and the text after its next message, whatever that is.
    """

    def __init__(self, text: str, reason: str = "", challenge: bytes = b"") -> None:
        super().__init__(text)
        self.reason = reason or text
        self.challenge = challenge
        self.code = ErrorCode.SASL_AUTHENTICATION_FAILED
        """What SaslAuthenticate is answered with."""


class NotNow(AuthenticationFailed):
    """Nobody can be authenticated by this mechanism now. Clients do not give up after its code."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = ErrorCode.REQUEST_TIMED_OUT


class Unavailable:
    """Takes the place of a mechanism while what it needs is out of reach."""

    def __init__(self, text: str) -> None:
        self.identity: Identity | None = None
        self._text = text

    def evaluate(self, token: bytes) -> bytes:
        """Raise `NotNow`, whatever the client says."""
        raise NotNow(self._text)


class InvalidCredentials(AuthenticationFailed):
    """The client's credentials are not valid. The text is Kafka's, and does not say why.

    It is that for a SaslException in Kafka's SaslServerAuthenticator. ``once_more`` tells that it
    happened in a re-authentication (KIP-368).
    """

    def __init__(self, mechanism: str, reason: str, *, once_more: bool = False) -> None:
        during = "re-authentication" if once_more else "authentication"
        super().__init__(
            f"Authentication failed during {during} due to invalid credentials with SASL "
            f"mechanism {mechanism}",
            reason,
        )


class Identity(NamedTuple):
    """Who a mechanism has proved.

    ``name`` is the authorization id: the user of PLAIN and SCRAM, Kerberos' ``primary/host@REALM``,
    the subject of a JWT. ``expires_at`` is when its credential expires, in seconds since the epoch.
    ``claims`` are those of a JWT. ``token_authenticated`` tells that it was a delegation token.
    ``groups`` are the principals of the groups that a JWT names, or named when somebody who had it
    asked for the delegation token.
    """

    name: str
    expires_at: float | None = None
    token_authenticated: bool = False
    claims: Mapping[str, Any] = MappingProxyType({})
    groups: tuple[str, ...] = ()


class Mechanism(Protocol):
    """The server's side of one SASL mechanism, for one exchange.

    ``identity`` is None until the exchange is complete.
    """

    identity: Identity | None

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's token and return the challenge; raises `AuthenticationFailed`."""
