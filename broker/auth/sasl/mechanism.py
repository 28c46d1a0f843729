"""What all SASL mechanisms have in common: tokens in, challenges out, an identity in the end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol


class AuthenticationFailed(Exception):
    """The client is not authenticated. The text may be sent to it; ``reason`` is for the log.

    Where a mechanism tells of a failure inside its exchange, that is the ``challenge``: the client
    gets it first, and the text when it has sent something in return, whatever that is.
    """

    def __init__(self, text: str, reason: str = "", challenge: bytes = b"") -> None:
        super().__init__(text)
        self.reason = reason or text
        self.challenge = challenge


class InvalidCredentials(AuthenticationFailed):
    """What a client brought does not hold: with Kafka's text, which says nothing of why.

    It is the text for a SaslException in Kafka's SaslServerAuthenticator. ``once_more`` tells that
    somebody who had authenticated did it again (KIP-368).
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
    the subject of a JWT. ``expires_at`` is when what proved it ends, in seconds since the epoch.
    ``claims`` are those of a JWT. ``token_authenticated`` tells that it was a delegation token.
    """

    name: str
    expires_at: float | None = None
    token_authenticated: bool = False
    claims: Mapping[str, Any] = MappingProxyType({})


class Mechanism(Protocol):
    """The server's side of one SASL mechanism, for one exchange.

    ``identity`` is None until the exchange is complete.
    """

    identity: Identity | None

    def evaluate(self, token: bytes) -> bytes:
        """Take the client's token and return the challenge; raises `AuthenticationFailed`."""
