"""The client's side of SCRAM (RFC 5802, RFC 7677), as Kafka's ScramSaslClient; no I/O.

With the option ``tokenauth=true`` of the JAAS text the user name is a delegation token's id, the
password its secret, and the broker looks among its tokens (KIP-48).
"""

from __future__ import annotations

import binascii
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final

from aclbroker.broker.auth.sasl.scram_credentials import (
    MIN_ITERATIONS,
    ScramMechanism,
    salted_password,
)
from aclbroker.broker.client.errors import AuthenticationRefused
from aclbroker.broker.client.sasl.mechanism import MakeClient, option

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings

_GS2_HEADER: Final = "n,,"
_NONCE_BYTES: Final = 24
_MOST_ITERATIONS: Final = 10_000_000
"""A broker must not keep the client busy for long: ten million take some seconds."""

_CHALLENGE: Final = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,9})"
    r"(?:,[A-Za-z]+=[^,\x00]*)*"
)


def from_settings(settings: ClientSettings) -> MakeClient:
    """Return what makes clients of the user, or of the token, that the JAAS text names."""
    options = settings.jaas.options if settings.jaas else {}
    user, password = option(options, "username"), option(options, "password")
    is_token = options.get("tokenauth", "").lower() == "true"
    mechanism = ScramMechanism[settings.mechanism.replace("-", "_")]
    return lambda host: ScramClient(mechanism, user, password, is_token=is_token)


class ScramClient:
    """One exchange: two messages, of which the second proves the password without showing it."""

    def __init__(
        self, mechanism: ScramMechanism, user: str, password: str, *, is_token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES)
        name = user.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if is_token else ""
        self._bare = f"n={name},r={self._nonce}{extension}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        """Return the name and a nonce."""
        return (_GS2_HEADER + self._bare).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        """Return the proof of the password, None when the broker has proved that it knows it."""
        if self._signature is None:
            return self._proof(challenge)
        given = challenge.partition(b",")[0]
        if not hmac.compare_digest(given, b"v=" + b64encode(self._signature)):
            raise AuthenticationRefused(
                "the broker did not prove that it knows the user's credentials"
            )
        return None

    def _proof(self, challenge: bytes) -> bytes:
        match = _CHALLENGE.fullmatch(challenge.decode(errors="replace"))
        salt = _decoded(match["salt"]) if match is not None else None
        if match is None or salt is None or not match["nonce"].startswith(self._nonce):
            raise AuthenticationRefused("the broker's challenge is no SCRAM challenge")
        iterations = int(match["iterations"])
        # As in Kafka: with fewer, who listened could try out passwords at leisure.
        if not MIN_ITERATIONS <= iterations <= _MOST_ITERATIONS:
            raise AuthenticationRefused(
                f"the broker asks for {iterations} iterations; "
                f"allowed: {MIN_ITERATIONS} to {_MOST_ITERATIONS}"
            )
        without_proof = f"c={b64encode(_GS2_HEADER.encode()).decode()},r={match['nonce']}"
        message = ",".join((self._bare, match[0], without_proof)).encode()
        mechanism = self._mechanism
        salted = salted_password(mechanism, self._password, salt, iterations)
        client_key = mechanism.hmac(salted, b"Client Key")
        signature = mechanism.hmac(mechanism.hash(client_key), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = mechanism.hmac(mechanism.hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()


def _decoded(salt: str) -> bytes | None:
    try:
        return b64decode(salt, validate=True)
    except binascii.Error:
        return None
