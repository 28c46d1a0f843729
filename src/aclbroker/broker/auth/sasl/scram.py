"""The server's side of SCRAM (RFC 5802, RFC 7677) by the rules of Kafka's ScramSaslServer; no I/O.

Differences from Kafka's: the channel binding data and extensions of the client's last message are
verified as the RFC wants it, and a reserved attribute (m=) is refused.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity, InvalidCredentials
from aclbroker.broker.auth.sasl.scram_credentials import ScramCredential, ScramMechanism

# The client's messages are ASCII in Kafka, user names included. Of the GS2 headers Kafka takes "n",
# no channel binding, and not "y". All repetitions are possessive, so that a long text that does not
# match costs no more time and memory than one that does.
_SASLNAME = rb"(?:[^\x00=,\x80-\xff]++|=2C|=3D)++"
_EXTENSIONS = rb"(?:,[A-Za-z]++=[^\x00,\x80-\xff]++)*+"
_NONCE = rb"[\x21-\x2b\x2d-\x7e]++"
_BASE64_TEXT = rb"(?:[a-zA-Z0-9/+]{4})*+(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_CLIENT_FIRST: Final = re.compile(
    rb"(?P<gs2_header>n,(?:a=(?P<authorization_id>%(saslname)s))?,)"
    rb"(?P<bare>n=(?P<username>%(saslname)s),r=(?P<nonce>%(nonce)s)(?P<extensions>%(extensions)s))"
    % {b"saslname": _SASLNAME, b"nonce": _NONCE, b"extensions": _EXTENSIONS}
)
_WITHOUT_PROOF: Final = re.compile(
    rb"c=(?P<channel_binding>%(base64)s),r=(?P<nonce>%(nonce)s)%(extensions)s"
    % {b"base64": _BASE64_TEXT, b"nonce": _NONCE, b"extensions": _EXTENSIONS}
)
_BASE64: Final = re.compile(_BASE64_TEXT)
_TOKEN_AUTHENTICATED: Final = b",tokenauth="
_SHOWN: Final = 64
"""How many characters of a name that a client sent are logged."""


class ScramLogin(NamedTuple):
    """What a proof is checked against. Without an identity the login fails even if it is right."""

    credential: ScramCredential
    identity: Identity | None


LookUp = Callable[[str, bool], ScramLogin]
"""Looks up the login of a user by name or, if true, of a delegation token by its id.

For a name that it does not know it returns a decoy, the same one each time (`scram_decoys`).
"""


class _Challenge(NamedTuple):
    gs2_header: bytes
    client_first_bare: bytes
    server_first: bytes
    nonce: bytes
    login: ScramLogin


class ScramServer:
    """One authentication exchange: two messages of the client, each answered by one of the server.

    All failures have one text, which does not tell who exists. Only an authorization id that is not
    the user's has another: it is refused before the user is looked up.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        look_up: LookUp,
        new_nonce: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        self.identity: Identity | None = None
        self._mechanism = mechanism
        self._look_up = look_up
        self._new_nonce = new_nonce
        self._challenge: _Challenge | None = None
        self._who = ""
        self._over = False

    def evaluate(self, token: bytes) -> bytes:
        """Answer the client's first or final message. Raises AuthenticationFailed."""
        if self._over:
            raise self._failure("the exchange is over")
        challenge, self._challenge = self._challenge, None
        self._over = True
        if challenge is not None:
            return self._finish(challenge, token)
        self._challenge = self._begin(token)
        self._over = False
        return self._challenge.server_first

    def _begin(self, message: bytes) -> _Challenge:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise self._failure("the first message is malformed, or of a kind not supported")
        username = _unescaped(match["username"])
        if match["authorization_id"] and _unescaped(match["authorization_id"]) != username:
            raise AuthenticationFailed(
                "Authentication failed: "
                "Client requested an authorization id that is different from username"
            )
        is_token = _is_token(match["extensions"])
        login = self._look_up(username, is_token)
        nonce = match["nonce"] + self._new_nonce().encode()
        salt, iterations = b64encode(login.credential.salt), login.credential.iterations
        server_first = b"r=%s,s=%s,i=%d" % (nonce, salt, iterations)
        self._who = f"{'token' if is_token else 'user'} {username[:_SHOWN]!r}"
        return _Challenge(match["gs2_header"], match["bare"], server_first, nonce, login)

    def _finish(self, challenge: _Challenge, message: bytes) -> bytes:
        without_proof, _, proof = message.rpartition(b",p=")
        match = _WITHOUT_PROOF.fullmatch(without_proof)
        if match is None or _BASE64.fullmatch(proof) is None:
            raise self._failure("the last message is malformed")
        if not hmac.compare_digest(match["nonce"], challenge.nonce):
            raise self._failure("the nonce is another")
        if b64decode(match["channel_binding"]) != challenge.gs2_header:
            raise self._failure("the channel binding is another")
        parts = (challenge.client_first_bare, challenge.server_first, without_proof)
        auth_message = b",".join(parts)
        credential, identity = challenge.login
        proved = self._proves(credential, auth_message, b64decode(proof))
        if identity is None:
            raise self._failure(f"no {self._who}")
        if not proved:
            raise self._failure(f"wrong password of {self._who}")
        self.identity = identity
        return b"v=" + b64encode(self._mechanism.hmac(credential.server_key, auth_message))

    def _proves(self, credential: ScramCredential, auth_message: bytes, proof: bytes) -> bool:
        signature = self._mechanism.hmac(credential.stored_key, auth_message)
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=True))
        return hmac.compare_digest(self._mechanism.hash(client_key), credential.stored_key)

    def _failure(self, reason: str) -> AuthenticationFailed:
        mechanism = self._mechanism.mechanism_name
        return InvalidCredentials(mechanism, f"{mechanism}: {reason}")


def _is_token(extensions: bytes) -> bool:
    # If an extension occurs twice the last one counts, as in Kafka.
    _, found, rest = extensions.rpartition(_TOKEN_AUTHENTICATED)
    return bool(found) and rest.partition(b",")[0].lower() == b"true"


def _unescaped(saslname: bytes) -> str:
    return saslname.replace(b"=2C", b",").replace(b"=3D", b"=").decode()
