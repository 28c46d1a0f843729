"""An authorization server in miniature: keys, their JWK set, and tokens, valid and broken.

Tokens are signed with `cryptography` and put together by hand, so that PyJWT, with which the broker
checks them, is not judged by itself.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER = "https://issuer.example/realms/kafka"
AUDIENCE = "kafka"

Sign = Callable[[bytes], bytes]
_HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


class Key(NamedTuple):
    """A private key and the name that its public half has in the JWK set."""

    kid: str
    private: Any

    def jwk(self, **members: Any) -> dict[str, Any]:
        """The public half as an entry of a JWK set, with `members` added or replaced."""
        return {"kid": self.kid, **_public_members(self.private.public_key()), **members}

    def sign(self, algorithm: str) -> Sign:
        """What signs with one of the algorithms of RFC 7518 or RFC 8037."""
        return functools.partial(_signature, self.private, algorithm)

    def pem(self) -> bytes:
        """The public half as everybody may know it."""
        return bytes(
            self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )


@functools.cache
def rsa_key(kid: str, bits: int = 2048) -> Key:
    """The RSA key of this name."""
    return Key(kid, rsa.generate_private_key(65537, bits))


@functools.cache
def ec_key(kid: str, bits: int = 256) -> Key:
    """The key on a NIST curve of this name."""
    curves = {256: ec.SECP256R1(), 384: ec.SECP384R1(), 521: ec.SECP521R1()}
    return Key(kid, ec.generate_private_key(curves[bits]))


@functools.cache
def ed25519_key(kid: str) -> Key:
    """The Ed25519 key of this name."""
    return Key(kid, ed25519.Ed25519PrivateKey.generate())


def jwks(*keys: Key | dict[str, Any]) -> str:
    """A JWK set of keys, or of entries as they are."""
    return json.dumps({"keys": [key.jwk() if isinstance(key, Key) else key for key in keys]})


def claims(subject: str = "alice", **changes: Any) -> dict[str, Any]:
    """The claims of a token that is good for an hour; one that is changed to None is left out."""
    now = int(time.time())
    made = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 3600}
    return {name: value for name, value in (made | changes).items() if value is not None}


def token(key: Key, payload: Any = None, algorithm: str = "RS256", **header: Any) -> str:
    """A token of `claims` (default), or of any payload; a header that is None is left out."""
    head = {"alg": algorithm, "typ": "JWT", "kid": key.kid} | header
    head = {name: value for name, value in head.items() if value is not None}
    return compact(head, claims() if payload is None else payload, key.sign(algorithm))


def compact(header: Any, payload: Any, sign: Sign) -> str:
    """A JWS in the compact serialization (RFC 7515 section 3.1); bytes are taken as they are."""
    signed = f"{encoded(header)}.{encoded(payload)}"
    return f"{signed}.{encoded(sign(signed.encode()))}"


def hmac_sha256(secret: bytes) -> Sign:
    """What signs as HS256."""
    return lambda message: hmac.digest(secret, message, hashlib.sha256)


def unsigned(_: bytes) -> bytes:
    """What signs as `none`."""
    return b""


def encoded(value: Any) -> str:
    """Bytes, or JSON, as base64url without padding."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def initial_response(access_token: str, authorization_id: str = "", extensions: str = "") -> bytes:
    """The first message of a client of OAUTHBEARER; an extension is `KEY=VALUE` with its \\x01."""
    authzid = f"a={authorization_id}" if authorization_id else ""
    return f"n,{authzid},\x01auth=Bearer {access_token}\x01{extensions}\x01".encode()


def _signature(key: Any, algorithm: str, message: bytes) -> bytes:
    if algorithm == "EdDSA":
        return bytes(key.sign(message))
    digest = _HASHES[algorithm[2:]]
    if algorithm.startswith("RS"):
        return bytes(key.sign(message, padding.PKCS1v15(), digest))
    if algorithm.startswith("PS"):
        pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
        return bytes(key.sign(message, pss, digest))
    r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(digest)))
    size = (key.curve.key_size + 7) // 8
    return bytes(r.to_bytes(size) + s.to_bytes(size))


def _public_members(public: Any) -> dict[str, str]:
    if isinstance(public, rsa.RSAPublicKey):
        numbers = public.public_numbers()
        return {"kty": "RSA", "n": _integer(numbers.n), "e": _integer(numbers.e)}
    if isinstance(public, ec.EllipticCurvePublicKey):
        point, size = public.public_numbers(), (public.key_size + 7) // 8
        x, y = encoded(point.x.to_bytes(size)), encoded(point.y.to_bytes(size))
        return {"kty": "EC", "crv": f"P-{public.key_size}", "x": x, "y": y}
    return {"kty": "OKP", "crv": "Ed25519", "x": encoded(public.public_bytes_raw())}


def _integer(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8))
