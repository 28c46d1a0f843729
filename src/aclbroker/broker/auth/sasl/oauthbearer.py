r"""The server's side of SASL OAUTHBEARER (RFC 7628), as Kafka's OAuthBearerSaslServer; no I/O.

The client's only message is `n,[a=AUTHZID],^Aauth=Bearer TOKEN^A[KEY=VALUE^A]...^A` with ^A for the
byte 1. A token that is refused is answered with a JSON text, upon which the client sends a single
^A, and the exchange fails. Where Kafka would check a token that comes in place of ^A, it fails too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from aclbroker.broker.auth.sasl.access_token import InvalidToken
from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity, InvalidCredentials

_SEPARATOR: Final = "\x01"
_REFUSED: Final = '{"status":"invalid_token"}'

_GS2_HEADER: Final = re.compile(r"n,(?:a=(?P<authzid>(?:[^,=\x00\x01]++|=2C|=3D)++))?,")
_PAIR: Final = re.compile(r"(?P<key>[A-Za-z]+)=(?P<value>[\x21-\x7e \t\r\n]+)")
_BEARER: Final = re.compile(r"(?i:bearer) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class InitialResponse(NamedTuple):
    """What a client sends: its token, and an authorization id, "" for none."""

    token: str
    authorization_id: str


class OAuthBearerServer:
    """One exchange. ``validate`` tells who a token is for, or raises `InvalidToken`."""

    def __init__(self, validate: Callable[[str], Identity]) -> None:
        self.identity: Identity | None = None
        self._validate = validate

    def evaluate(self, token: bytes) -> bytes:
        """Check the client's message; raises `AuthenticationFailed`."""
        response = parse_initial_response(token)
        try:
            identity = self._validate(response.token)
        except InvalidToken as error:
            raise AuthenticationFailed(
                _REFUSED, f"invalid token: {error}", _REFUSED.encode()
            ) from None
        if response.authorization_id not in ("", identity.name):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id "
                f"({response.authorization_id}) that is different from the token's principal name "
                f"({identity.name})"
            )
        self.identity = identity
        return b""


def parse_initial_response(message: bytes) -> InitialResponse:
    """Take the client's message apart; raises `AuthenticationFailed`.

    Extensions (KIP-342) are checked for their form and have no effect.
    """
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise _malformed("not UTF-8") from None
    head, _, rest = text.partition(_SEPARATOR)
    header = _GS2_HEADER.fullmatch(head)
    if header is None:
        raise _malformed("the GS2 header is neither n,, nor n,a=NAME,")
    if not rest.endswith(_SEPARATOR * 2):
        raise _malformed("it does not end with two separators")
    auth = _pairs(rest[:-2].split(_SEPARATOR)).get("auth", "")
    bearer = _BEARER.fullmatch(auth)
    if bearer is None:
        raise _malformed("auth is not Bearer and a token")
    authorization_id = header["authzid"] or ""
    return InitialResponse(
        bearer["token"], authorization_id.replace("=2C", ",").replace("=3D", "=")
    )


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        pair = _PAIR.fullmatch(text)
        if pair is None:
            raise _malformed("a part is not KEY=VALUE")
        # Kafka takes the last of two; no honest client sends two.
        if pair["key"] in pairs:
            raise _malformed("a key is there twice")
        pairs[pair["key"]] = pair["value"]
    return pairs


def _malformed(reason: str) -> AuthenticationFailed:
    return InvalidCredentials("OAUTHBEARER", f"invalid OAUTHBEARER client first message: {reason}")
